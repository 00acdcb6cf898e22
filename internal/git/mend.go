package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/internal/wait"
)

var (
	// ErrDamaged: the cache was damaged again soon after it was replaced. The cause is likely to be the disk.
	ErrDamaged = errors.New("the clone on this server is damaged again after it was replaced: check its disk")

	errBorrowed = errors.New("the clone on this server is damaged; Pawl replaces it when no attempt uses it any more")
	errUnknown  = errors.New("the clone on this server may be damaged: Pawl could not check it")
)

// Our choice.
const (
	checkEach   = 10 * time.Minute // between two checks of one cache
	checkTime   = 2 * time.Minute  // for one check: git reads some GB in it
	replaceEach = time.Hour        // between two replacements of one cache, which fetch the repository whole
)

// finding is the result of a check.
type finding string

const (
	sound    finding = "sound"
	unknown  finding = "unknown"
	damaged  finding = "damaged"
	replaced finding = "replaced" // it was damaged
)

// Damaged is where a damaged cache is put before it is deleted. A killed process may leave it.
func Damaged(dir string) string { return dir + ".damaged" }

// Mend deletes a damaged cache after an error that nothing else explains, so that the next Open begins an empty one. It
// reports whether it did. Attempts borrow objects from the cache, so that it stays until the last of them has ended. A
// check of the same cache that another goroutine or process began is not waited for.
func Mend(ctx context.Context, dir string, cause error) (bool, error) {
	if ctx.Err() != nil || explained(cause) {
		return false, nil
	}
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	log, err := wait.Lock(ctx, dir+".checked", 0)
	if errors.Is(err, wait.ErrLocked) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%w (%w: %w)", cause, errUnknown, err)
	}
	defer log.Close()
	found, why := look(ctx, dir, log)
	switch found {
	case replaced:
		return true, nil
	case sound:
		return false, nil
	default:
		return false, fmt.Errorf("%w (%w)", why, cause)
	}
}

// look checks a cache, and replaces it if it is damaged. The file has the result of the last check, and gets the new one.
func look(ctx context.Context, dir string, log *os.File) (found finding, why error) {
	last, err := readCheck(log)
	if err != nil {
		return unknown, fmt.Errorf("%w: %w", errUnknown, err)
	}
	if found, why = last.found, errUnknown; !last.counts() {
		found, why = check(ctx, dir)
		last.found = ""
	}
	if ctx.Err() != nil {
		return unknown, context.Cause(ctx)
	}
	if found == damaged {
		found, why = replace(ctx, dir, last.replaced)
	}
	if found == replaced {
		last.replaced = time.Now()
	}
	if found == last.found { // a result counts from its check on
		return found, why
	}
	last.found = found
	return found, errors.Join(why, last.write(log))
}

// counts reports whether the result makes a new check needless. A replaced cache has not been checked.
func (c lastCheck) counts() bool {
	switch c.found {
	case sound, unknown, damaged:
		return ago(c.at) < checkEach
	}
	return false
}

// lastCheck is the last check of a cache, as its file has it: "sound 1764379200" on a line.
type lastCheck struct {
	found    finding   // empty: there was no check
	at       time.Time // of the file
	replaced time.Time // when the cache was last replaced
}

func readCheck(log *os.File) (c lastCheck, err error) {
	text, err := io.ReadAll(log)
	if err != nil {
		return c, err
	}
	info, err := log.Stat()
	if err != nil {
		return c, err
	}
	var seconds int64
	_, _ = fmt.Sscan(string(text), &c.found, &seconds) // noise is as no check
	c.at, c.replaced = info.ModTime(), time.Unix(seconds, 0)
	return c, nil
}

func (c lastCheck) write(log *os.File) error {
	text := fmt.Sprintf("%s %d\n", c.found, c.replaced.Unix())
	if err := log.Truncate(0); err != nil {
		return err
	}
	_, err := log.WriteAt([]byte(text), 0)
	return err
}

// ago is the time since then. A time to come, which the clock was set back from, is as long ago.
func ago(then time.Time) time.Duration { return time.Since(then).Abs() }

// replace deletes a damaged cache that nobody uses.
func replace(ctx context.Context, dir string, last time.Time) (finding, error) {
	if ago(last) < replaceEach {
		return damaged, ErrDamaged
	}
	// A lock that cannot be opened is damaged as well, and nobody has it.
	writer, err := wait.Lock(ctx, filepath.Join(dir, lockFile), 0)
	if errors.Is(err, wait.ErrLocked) {
		return damaged, errBorrowed
	}
	if err == nil {
		defer writer.Close()
	}
	borrower, err := borrow(dir, unix.LOCK_EX)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return damaged, errBorrowed
	}
	if err == nil {
		defer borrower.Close()
	}
	gone := Damaged(dir)
	if err := Remove(gone); err != nil {
		return damaged, fmt.Errorf("delete a damaged clone: %w", err)
	}
	if err := os.Rename(dir, gone); err != nil {
		return damaged, fmt.Errorf("set a damaged clone aside: %w", err)
	}
	_ = Remove(gone) // what is left goes with the next one, or at the next start
	return replaced, nil
}

// borrow locks a cache against its replacement until the file is closed: shared among checkouts.
func borrow(dir string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "pawl.borrowed"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("use the cache: %w", err)
	}
	return f, nil
}

// explained reports whether an error has a reason outside of the cache: it is of a kind of this package, or no error of
// git and of the files that it works on.
func explained(err error) bool {
	if failed, ok := errors.AsType[*commandError](err); ok {
		return failed.kind != nil
	}
	_, ofFile := errors.AsType[*os.PathError](err)
	return !ofFile
}

// check looks for damage: quickly for missing objects and broken references, then in every object.
func check(ctx context.Context, dir string) (finding, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return damaged, nil
	}
	if err := tryFiles(ctx, dir); misplaced(err) {
		return damaged, err
	}
	p, err := findProgram()
	if err != nil {
		return unknown, fmt.Errorf("%w: %w", errUnknown, err)
	}
	bounded, cancel := context.WithTimeoutCause(ctx, checkTime, fmt.Errorf("no result after %s", checkTime))
	defer cancel()
	for _, depth := range []string{"--connectivity-only", "--full"} {
		args := []string{"fsck", "--no-dangling", "--no-progress", depth}
		_, err := p.with("GIT_DIR="+dir).run(bounded, command{args: args})
		found := judge(err)
		if found != sound {
			return found, fmt.Errorf("%w: %w", errUnknown, err)
		}
	}
	return sound, nil
}

// tryFiles tries what Open and Checkout do with the files of a cache. A lock in use is no error.
func tryFiles(ctx context.Context, dir string) error {
	writer, err := wait.Lock(ctx, filepath.Join(dir, lockFile), time.Second) // another process may be making the cache
	if errors.Is(err, wait.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer writer.Close()
	borrowed, err := borrow(dir, unix.LOCK_SH)
	if err != nil {
		return err
	}
	return errors.Join(complete(dir), borrowed.Close())
}

// misplaced reports whether a folder is in the place of a file or the other way round.
func misplaced(err error) bool {
	return errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// shortages are texts of errno(3), and of git, for a machine that lacks memory, processes, open files or a permission.
var shortages = []string{"ut of memory", "Cannot allocate memory", "Resource temporarily unavailable", "Too many open files", "Permission denied"}

// judge reads the result of git fsck. A check that was killed, ran out of time or lacked memory proves no damage.
func judge(err error) finding {
	failed, ofGit := errors.AsType[*commandError](err)
	switch {
	case err == nil:
		return sound
	case errors.Is(err, ErrTooLarge): // a list of faults
		return damaged
	case !ofGit, containsAny(failed.stderr, shortages):
		return unknown
	case exitCode(err) > 0, strings.Contains(failed.stderr, "error: "):
		return damaged
	default:
		return unknown
	}
}
