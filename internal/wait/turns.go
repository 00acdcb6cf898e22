package wait

import (
	"context"
	"sync"
)

// Turns lets one goroutine at a time use a key. The zero value is ready. A used key is never freed; it takes a few
// bytes.
type Turns struct{ places sync.Map }

// Take waits until the key is free. The caller must call leave.
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
