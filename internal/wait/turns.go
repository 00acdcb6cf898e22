package wait

import (
	"context"
	"sync"
)

// Turns lets each key be used by one goroutine at a time. The zero value is ready. A key that was used once takes a few
// bytes from then on.
type Turns struct{ places sync.Map }

// Take waits until nobody else uses a key. The caller must call leave.
func (t *Turns) Take(ctx context.Context, key any) (leave func(), err error) {
	place, _ := t.places.LoadOrStore(key, make(chan struct{}, 1))
	used := place.(chan struct{})
	select {
	case used <- struct{}{}:
		return func() { <-used }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
