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
	replaced finding = "replaced" // damaged, and deleted
)

// Damaged returns the folder that a damaged cache is renamed to before it is deleted. A killed process may leave it.
func Damaged(dir string) string { return dir + ".damaged" }

// Mend deletes a damaged cache after an error without another explanation, and reports whether it did. The next Open
// creates an empty one. While attempts borrow objects from the cache, it stays. Mend does not wait for another
// goroutine's or process's check of the same cache.
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

// look checks a cache, unless log holds a recent result, and replaces a damaged one. It writes the new result to log.
func look(ctx context.Context, dir string, log *os.File) (found finding, why error) {
	last, err := readCheck(log)
	if err != nil {
		return unknown, fmt.Errorf("%w: %w", errUnknown, err)
	}
	known := last.counts()
	found, why = last.found, errUnknown
	if !known {
		found, why = check(ctx, dir)
	}
	if ctx.Err() != nil {
		return unknown, context.Cause(ctx)
	}
	if found == damaged {
		found, why = replace(ctx, dir, last.replaced)
	}
	switch {
	case found == replaced:
		last.replaced = time.Now()
	case known: // the file keeps the time of the check
		return found, why
	}
	last.found = found
	return found, errors.Join(why, last.write(log))
}

// counts reports whether the result is recent enough to skip a check. A replaced cache has no result yet.
func (c lastCheck) counts() bool {
	switch c.found {
	case sound, unknown, damaged:
		return ago(c.at) < checkEach
	}
	return false
}

// lastCheck is the content of a cache's .checked file, such as "sound 1764379200".
type lastCheck struct {
	found    finding   // empty without a check
	at       time.Time // modification time of the file
	replaced time.Time // last replacement of the cache
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
	_, _ = fmt.Sscan(string(text), &c.found, &seconds) // an unreadable file counts as no check
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

// ago returns the time since then. After the clock was set back, then lies in the future and counts as equally far away.
func ago(then time.Time) time.Duration { return time.Since(then).Abs() }

// replace deletes a damaged cache that no attempt uses.
func replace(ctx context.Context, dir string, last time.Time) (finding, error) {
	if ago(last) < replaceEach {
		return damaged, ErrDamaged
	}
	// If the lock file cannot be opened, it is damaged too, and no process holds it.
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
	_ = Remove(gone) // the next replacement or start deletes what is left
	return replaced, nil
}

// borrow keeps a cache from being replaced until the returned file is closed. Checkouts share the lock.
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

// explained reports whether an error has a cause outside the cache: it has one of this package's kinds, or it comes
// neither from git nor from a file.
func explained(err error) bool {
	if failed, ok := errors.AsType[*commandError](err); ok {
		return failed.kind != nil
	}
	_, ofFile := errors.AsType[*os.PathError](err)
	return !ofFile
}

// check first looks for missing objects and broken references, which is quick, and then reads every object.
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

// tryFiles opens a cache's files as Open and Checkout do. A lock in use is no error.
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

// misplaced reports whether a folder stands where a file belongs, or a file where a folder belongs.
func misplaced(err error) bool {
	return errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// shortages are errno(3) and git messages for a lack of memory, processes, open files or permission.
var shortages = []string{"ut of memory", "Cannot allocate memory", "Resource temporarily unavailable", "Too many open files", "Permission denied"}

// judge returns the finding of git fsck. A check that was killed, timed out or lacked memory is unknown.
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
