package solver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/crash"
)

// keeper renews a lease while a step works, and ends the step's context when the
// lease is lost.
type keeper struct {
	store  Store
	now    func() time.Time
	cancel context.CancelCauseFunc
	done   chan struct{}

	mu    sync.Mutex
	lease Lease
}

// keep starts the heartbeat. The returned context ends with ErrLeaseLost as its
// cause when another node took the thread over.
func keep(ctx context.Context, store Store, l Lease, now func() time.Time) (context.Context, *keeper) {
	inner, cancel := context.WithCancelCause(ctx)
	k := &keeper{store: store, now: now, cancel: cancel, done: make(chan struct{}), lease: l}
	go k.beat(inner)
	return inner, k
}

func (k *keeper) current() Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lease
}

func (k *keeper) beat(ctx context.Context) {
	defer close(k.done)
	tick := time.NewTicker(HeartbeatTime)
	defer tick.Stop()
	renewed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l, err := k.renew(ctx)
		switch {
		case err == nil:
			k.mu.Lock()
			k.lease = l
			k.mu.Unlock()
			renewed = time.Now()
		case errors.Is(err, ErrLeaseLost), time.Since(renewed) > LeaseTime-HeartbeatTime:
			// A store that could not be reached for so long is as good as a lost
			// lease: what runs must have ended when another node takes over.
			k.cancel(ErrLeaseLost)
			return
		}
	}
}

// renewTime bounds one heartbeat, so that a store that hangs is noticed well
// before the lease runs out.
const renewTime = 5 * time.Second

func (k *keeper) renew(ctx context.Context) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	return k.store.Renew(ctx, k.current(), k.now())
}

// release ends the heartbeat and gives the lease back, also when the process is
// stopping.
func (k *keeper) release() {
	k.cancel(nil)
	<-k.done
	ctx, cancel := context.WithTimeout(context.Background(), timeoutAfterStop)
	defer cancel()
	crash.Point("releasing")
	// A lease that cannot be given back runs out by itself.
	_ = k.store.Release(ctx, k.current())
	crash.Point("released")
}
