// Package wait provides waits that a context can end.
package wait

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// For waits for d and returns nil. If ctx ends first, it returns the cause. A periodic loop runs while For returns nil.
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

var ErrLocked = errors.New("locked by another process")

// Lock opens or creates a file and takes its kernel lock, waiting at most this long. The lock belongs to the open file.
// It ends when this process and every child that inherited the file have closed it.
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
