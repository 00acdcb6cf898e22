// Package wait pauses what a context can end.
package wait

import (
	"context"
	"time"
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
