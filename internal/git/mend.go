package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ErrDamaged: the cache was damaged again soon after it was replaced. The cause is likely to be the disk.
var ErrDamaged = errors.New("the clone on this server is damaged again after it was replaced: check its disk")

const (
	// asideFor is the time between two replacements of one cache. Our choice: a repository is fetched whole once an
	// hour at most.
	asideFor = time.Hour
	// fsckTime bounds one check of a cache. Our choice: git reads some GB in it.
	fsckTime = 5 * time.Minute
)

// asideOf is where a damaged cache is kept for the operator. A later one takes its place.
func asideOf(dir string) string { return dir + ".damaged" }

// mending lets one goroutine at a time replace a cache.
var mending sync.Mutex

// Mend replaces a damaged cache after an error that nothing else explains. It moves the cache aside, so that the next
// Open begins an empty one, and reports whether it did. A sound cache stays. A cache that was moved aside within the
// last hour is ErrDamaged.
func Mend(ctx context.Context, dir string, cause error) (bool, error) {
	if ctx.Err() != nil || explained(cause) {
		return false, nil
	}
	mending.Lock()
	defer mending.Unlock()
	sound, err := sound(ctx, dir)
	if sound || err != nil {
		return false, err
	}
	aside := asideOf(dir)
	if last, err := os.Lstat(aside); err == nil && time.Since(last.ModTime()) < asideFor {
		return false, fmt.Errorf("%w (%w)", ErrDamaged, cause)
	}
	if err := os.RemoveAll(aside); err != nil {
		return false, fmt.Errorf("remove the damaged clone from before: %w", err)
	}
	if err := os.Rename(dir, aside); err != nil {
		return false, fmt.Errorf("set a damaged clone aside: %w", err)
	}
	now := time.Now()
	return true, os.Chtimes(aside, now, now)
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

// sound reports whether git can read the cache in dir: every reference and every object. A cache that does not exist is
// sound.
func sound(ctx context.Context, dir string) (bool, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil || !info.IsDir() {
		return false, err
	}
	p, err := findProgram()
	if err != nil {
		return false, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false, err
	}
	check, cancel := context.WithTimeout(ctx, fsckTime)
	defer cancel()
	args := []string{"fsck", "--no-dangling", "--no-progress"}
	_, err = p.with("GIT_DIR="+dir).run(check, command{args: args})
	if check.Err() != nil { // nothing is known of so large a cache
		return true, ctx.Err()
	}
	switch {
	case exitCode(err) > 0, errors.Is(err, ErrTooLarge):
		return false, nil
	default: // a killed check says nothing about the cache
		return true, err
	}
}
