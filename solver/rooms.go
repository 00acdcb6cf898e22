package solver

import (
	"context"
	"sync"
	"sync/atomic"
)

// rooms lets one attempt of a thread use the thread's folder at a time in this
// process. The lease sees to that, except for the moment in which a step that
// lost it still ends its agent. The zero value is ready.
type rooms struct {
	mu   sync.Mutex
	used map[Thread]chan struct{}
	// waiting counts the steps that wait in memory for one of the Slots.
	waiting atomic.Int64
	// aside counts the attempts that gave their places back and wait for GitHub.
	aside atomic.Int64
}

// enter waits until the thread's folder is free. The caller must call leave.
func (r *rooms) enter(ctx context.Context, t Thread) (leave func(), err error) {
	for {
		r.mu.Lock()
		busy, used := r.used[t]
		if !used {
			if r.used == nil {
				r.used = map[Thread]chan struct{}{}
			}
			mine := make(chan struct{})
			r.used[t] = mine
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(r.used, t)
				close(mine)
			}, nil
		}
		r.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
