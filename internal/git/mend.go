package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/internal/wait"
)

var (
	// ErrDamaged means that the cache was damaged again soon after it was replaced, probably by its disk.
	ErrDamaged = errors.New("the clone on this server is damaged again after it was replaced: check its disk")

	errBorrowed = errors.New("the clone on this server is damaged; Pawl replaces it once no attempt uses it")
	errUnknown  = errors.New("the clone on this server may be damaged: Pawl could not check it")
)

// Our choice.
const (
	checkEach   = 10 * time.Minute // between two checks of one cache
	checkTime   = 2 * time.Minute  // for one check; git reads several GB in that time
	replaceEach = time.Hour        // between two replacements of one cache; each fetches the whole repository
)

// finding is the result of a check.
type finding string

const (
	sound    finding = "sound"
	unknown  finding = "unknown"
	damaged  finding = "damaged"
	replaced finding = "replaced" // damaged, and deleted
)

// Damaged returns where a damaged cache is moved before its deletion. A killed process may leave it behind.
func Damaged(dir string) string { return dir + ".damaged" }

// Mend checks a cache after an error that nothing else explains. It deletes a damaged cache and reports whether it did.
// The next Open creates an empty cache. Mend never deletes a cache that attempts borrow objects from. If another
// goroutine or process is checking the cache, Mend returns false at once.
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
	if err != nil && !containsAny(err.Error(), shortages) { // something other than a file is at the lock's path
		err = os.RemoveAll(dir + ".checked")
		if err == nil {
			log, err = wait.Lock(ctx, dir+".checked", 0)
		}
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

// counts reports whether the result is recent enough to skip a check. A replacement leaves no result.
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

// ago returns the time since then. The result is positive even if the clock was set back.
func ago(then time.Time) time.Duration { return time.Since(then).Abs() }

// replace deletes a damaged cache that no attempt uses.
func replace(ctx context.Context, dir string, last time.Time) (finding, error) {
	if ago(last) < replaceEach {
		return damaged, ErrDamaged
	}
	// If the lock file cannot be opened, it is damaged too, and no process holds it.
	for _, name := range []string{lockFile, borrowFile} {
		// Wait a second: a new child process briefly holds copies of all open files, and thus their locks.
		lock, err := wait.Lock(ctx, filepath.Join(dir, name), time.Second)
		if errors.Is(err, wait.ErrLocked) {
			return damaged, errBorrowed
		}
		if err == nil {
			defer lock.Close()
		}
	}
	gone := Damaged(dir)
	if err := Remove(gone); err != nil {
		return damaged, fmt.Errorf("delete a damaged clone: %w", err)
	}
	if err := os.Rename(dir, gone); err != nil {
		return damaged, fmt.Errorf("rename a damaged clone: %w", err)
	}
	_ = Remove(gone) // the next replacement or start deletes what is left
	return replaced, nil
}

const borrowFile = "pawl.borrowed"

// borrow keeps a cache from being replaced until the returned file is closed. Any number of checkouts may borrow.
func borrow(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, borrowFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
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

// check looks for foreign files, missing objects and broken references, and reads every object. Finally it tries to
// write a reference.
func check(ctx context.Context, dir string) (finding, error) {
	if foreign(dir) {
		return damaged, nil
	}
	if found, err := tryFiles(ctx, dir); found != sound {
		return found, err
	}
	p, err := findProgram()
	if err != nil {
		return unknown, fmt.Errorf("%w: %w", errUnknown, err)
	}
	p = p.with("GIT_DIR=" + dir)
	bounded, cancel := context.WithTimeoutCause(ctx, checkTime, fmt.Errorf("no result after %s", checkTime))
	defer cancel()
	for _, depth := range []string{"--connectivity-only", "--full"} {
		args := []string{"fsck", "--no-dangling", "--no-progress", depth}
		_, err := p.run(bounded, command{args: args})
		found := judge(err)
		if found != sound {
			return found, fmt.Errorf("%w: %w", errUnknown, err)
		}
	}
	err = tryReference(bounded, p, dir)
	found := judge(err)
	if found != sound {
		return found, fmt.Errorf("%w: %w", errUnknown, err)
	}
	return sound, nil
}

// foreign reports whether a cache is not a folder, contains special files or links, or has files where git has only
// folders. Neither git nor Pawl creates these.
func foreign(dir string) bool {
	info, err := os.Stat(dir) // an operator may have moved the cache and left a link
	if err != nil || !info.IsDir() {
		return true
	}
	objects := filepath.Join(dir, "objects")
	err = filepath.WalkDir(dir+"/", func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted in the meantime
			return nil
		case err != nil:
			return err
		case !d.IsDir() && !d.Type().IsRegular(), !d.IsDir() && filepath.Dir(path) == objects:
			return errForeign
		}
		return nil
	})
	return errors.Is(err, errForeign)
}

var errForeign = errors.New("it does not belong in a cache")

// tryFiles opens a cache's files as Open and Checkout do. A locked cache counts as sound.
func tryFiles(ctx context.Context, dir string) (finding, error) {
	writer, err := wait.Lock(ctx, filepath.Join(dir, lockFile), time.Second) // another process may be creating the cache
	if errors.Is(err, wait.ErrLocked) {
		return sound, nil
	}
	if err == nil {
		defer writer.Close()
		err = errors.Join((&Cache{dir: dir}).clean(), complete(dir))
	}
	borrowed, refused := borrow(dir)
	if refused == nil {
		refused = borrowed.Close()
	}
	err = errors.Join(err, refused)
	switch {
	case err == nil:
		return sound, nil
	case ctx.Err() != nil, containsAny(err.Error(), shortages):
		return unknown, fmt.Errorf("%w: %w", errUnknown, err)
	default:
		return damaged, err
	}
}

// tryReference creates a reference and deletes it, as a fetch does, unless a fetch is running.
func tryReference(ctx context.Context, p program, dir string) error {
	writer, err := wait.Lock(ctx, filepath.Join(dir, lockFile), 0)
	if errors.Is(err, wait.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer writer.Close()
	list := command{args: []string{"for-each-ref", "--count=1", "--format=%(objectname)"}}
	id, err := line(p.run(ctx, list))
	if err != nil || id == "" {
		return err
	}
	const name = "refs/pawl/probe"
	for _, args := range [][]string{{"update-ref", name, id}, {"update-ref", "-d", name}} {
		if _, err := p.run(ctx, command{args: args, files: []*os.File{writer}}); err != nil {
			return err
		}
	}
	return nil
}

// shortages are parts of error messages about a lack of memory, processes, open files, disk space or permission. They
// omit first letters, because Go writes the texts of errno(3) in lower case and git does not.
var shortages = []string{
	"ut of memory", "annot allocate memory", "esource temporarily unavailable", "oo many open files", "ermission denied", "o space left on device",
	"uota exceeded", "ead-only file system",
}

// judge returns the finding of git fsck. If the check was killed, timed out or lacked memory, the finding is unknown.
func judge(err error) finding {
	failed, ofGit := errors.AsType[*commandError](err)
	switch {
	case err == nil:
		return sound
	case errors.Is(err, ErrTooLarge): // a long list of faults
		return damaged
	case !ofGit, containsAny(failed.stderr, shortages):
		return unknown
	case exitCode(err) > 0, strings.Contains(failed.stderr, "error: "):
		return damaged
	default:
		return unknown
	}
}
