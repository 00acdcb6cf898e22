package solver

import (
	"context"
	"errors"
	"time"
)

// How long a step works on with a store that does not answer. Ordinarily it ends
// before another node can have taken its lease. An attempt goes on for holdTime: to
// make it anew costs a run of its agent, and a database that restarts or changes its
// machine is back by then. Mostly nobody else reaches it meanwhile, either; where
// somebody does and takes the thread over, this attempt can append and send nothing,
// and ends as soon as the store answers.
const (
	stepPatience = LeaseTime - HeartbeatTime
	holdTime     = 2 * time.Minute
)

// How often a store that did not answer is asked again whether the lease is still
// ours, and for what an attempt has to write down. When the store is back the sweep
// leaves leases alone for longer than both, also where a renewal hangs first.
const (
	askAgain   = time.Second
	writeAgain = 250 * time.Millisecond
)

// hold has the lease kept as an attempt's, or as an ordinary step's again.
func (k *keeper) hold(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = on
}

func (k *keeper) holds() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held
}

// patience is for how long the lease counts as ours without an answer.
func (k *keeper) patience() time.Duration {
	if k.holds() {
		return holdTime
	}
	return stepPatience
}

// outlast does something with the store. During an attempt it is tried again until
// the store answers, for holdTime at most; do may have had its effect before, unheard.
func (k *keeper) outlast(ctx context.Context, do func(context.Context) error) error {
	if !k.holds() {
		return do(ctx)
	}
	for began := time.Now(); ; {
		err := within(ctx, LeaseTime, do)
		if err == nil || errors.Is(err, ErrLeaseLost) || time.Since(began) > holdTime {
			return err
		}
		again := time.NewTimer(writeAgain)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// within bounds one call, which a store that hangs would keep for ever.
func within(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return do(ctx)
}

// afterStop is a context that goes on for timeoutAfterStop when ctx has ended, for
// what must still be written down then.
func afterStop(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(timeoutAfterStop, cancel) })
	return inner, func() { stop(); cancel() }
}
