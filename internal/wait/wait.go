// Package wait pauses what a context can end.
package wait

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// For returns after d, or earlier with the cause for which ctx ended. A loop that
// does something every so often goes on as long as it returns nil.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ErrLocked means that another open file, of this process or another, holds the lock.
var ErrLocked = errors.New("locked by another process")

// Lock opens a file, makes it if need be, and takes the kernel's lock of it, for which it waits at most so long.
// The lock belongs to the open file: it is given back when that is closed here and in each child that has it.
func Lock(ctx context.Context, path string, most time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(most); err == nil; {
		switch refused := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case refused == nil:
			return f, nil
		case !errors.Is(refused, unix.EWOULDBLOCK) && !errors.Is(refused, unix.EINTR):
			err = fmt.Errorf("lock it: %w", refused)
		case !time.Now().Before(until):
			err = ErrLocked
		default:
			err = For(ctx, 20*time.Millisecond)
		}
	}
	f.Close()
	return nil, fmt.Errorf("%s: %w", path, err)
}
