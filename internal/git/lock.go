package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a waiting goroutine asks for the lock again.
const lockPoll = 20 * time.Millisecond

// lock takes the cache for one writer among all goroutines and processes. The
// lock belongs to the open file: hand it to the git process as well, so that a
// git which outlives a killed Pawl still holds it. Closing the file gives the
// lock back.
func (c *Cache) lock(ctx context.Context) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(c.dir, "pawl.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock the cache %s: %w", c.dir, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for the lock of %s: %w", c.dir, context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
	if err := c.clean(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// clean removes what a killed git left behind: with the lock held, nobody else
// can be using these files.
func (c *Cache) clean() error {
	for _, pattern := range []string{"*.lock", "refs/pawl/*.lock", "objects/pack/tmp_*", "objects/pack/.tmp-*"} {
		stale, err := filepath.Glob(filepath.Join(c.dir, pattern))
		if err != nil {
			return fmt.Errorf("look for stale files: %w", err)
		}
		for _, path := range stale {
			if filepath.Base(path) == "pawl.lock" {
				continue
			}
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("remove a stale file: %w", err)
			}
		}
	}
	return nil
}
