package solver

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/policy"
)

func TestAnAttemptOutlastsADatabaseThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leases{}
		ctx, k := keep(t.Context(), s, Lease{}, time.Now(), time.Now)
		k.hold(true)
		s.down.Store(true)
		time.Sleep(holdTime - HeartbeatTime)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatalf("the attempt ended: %v", context.Cause(ctx))
		}
		s.down.Store(false)
		time.Sleep(askAgain)
		synctest.Wait()
		if old := k.unconfirmed(); old > askAgain {
			t.Errorf("the lease was renewed %s ago, and the database has been back for %s", old, askAgain)
		}
		k.release(nil)
	})
}

func TestAnAttemptEndsWhoseDatabaseStaysAwayOrWhoseLeaseWasTaken(t *testing.T) {
	for name, c := range map[string]struct {
		taken bool
		after time.Duration
	}{
		"stays away": {after: holdTime},
		"was taken":  {taken: true, after: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &leases{}
				ctx, k := keep(t.Context(), s, Lease{}, time.Now(), time.Now)
				k.hold(true)
				s.down.Store(true)
				time.Sleep(HeartbeatTime + c.after)
				s.taken.Store(c.taken)
				time.Sleep(2 * askAgain)
				synctest.Wait()
				if !errors.Is(context.Cause(ctx), ErrLeaseLost) {
					t.Errorf("the attempt goes on (%v)", context.Cause(ctx))
				}
				k.release(nil)
			})
		})
	}
}

func TestAnActOfAnAttemptWaitsForTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leases{}
		s.down.Store(true)
		ctx, k := paused(t.Context(), s, 2*LeaseTime)
		k.hold(true)
		time.AfterFunc(time.Minute, func() { s.down.Store(false) })
		if err := k.confirm(ctx); err != nil || ctx.Err() != nil {
			t.Errorf("confirm: %v, and the step: %v", err, ctx.Err())
		}
	})
}

// A question is answered beside an attempt, whose end ends the answer.
func TestAnActThatIsGivenUpEndsNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leases{}
		s.down.Store(true)
		ctx, k := paused(t.Context(), s, 2*LeaseTime)
		k.hold(true)
		act, giveUp := context.WithTimeout(ctx, time.Second)
		defer giveUp()
		if err := k.confirm(act); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrLeaseLost) || ctx.Err() != nil {
			t.Errorf("confirm: %v, and the step: %v; want that only the act ends", err, ctx.Err())
		}
	})
}

// journal is a store that keeps what is appended and does not answer for a while:
// nothing is done then, or it is done and nobody hears of it.
type journal struct {
	leases
	back    time.Time
	unheard bool
	events  []Event
	breaker policy.Breaker
}

func (j *journal) Events(context.Context, Thread, int64) ([]Event, error) {
	if time.Now().Before(j.back) && !j.unheard {
		return nil, errDown
	}
	return j.events, nil
}

func (j *journal) AppendLeased(_ context.Context, _ Lease, b Batch) error {
	away := time.Now().Before(j.back)
	if away && !j.unheard {
		return errDown
	}
	for _, e := range b.Events {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return err
		}
		j.events = append(j.events, Event{Seq: int64(len(j.events) + 1), Kind: e.Kind, At: e.At, Data: data})
	}
	if b.Breaker != nil {
		j.breaker = b.Breaker(j.breaker)
	}
	if away {
		return errDown
	}
	return nil
}

func TestTheEndOfAnAttemptIsWrittenOnceWhenTheDatabaseIsBack(t *testing.T) {
	for name, unheard := range map[string]bool{"it does nothing meanwhile": false, "its answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				j := &journal{back: began.Add(time.Minute), unheard: unheard}
				told := 0
				s := &step{Solver: &Solver{Store: j, Now: time.Now, OnReceipt: func(string, Ended) { told++ }}, log: zerolog.Nop()}
				ctx, k := keep(t.Context(), j, Lease{}, time.Now(), time.Now)
				s.lease = k
				limited := Ended{N: 1, Ending: policy.UsageLimit, Outcome: policy.Outcome(policy.UsageLimit), Limit: &Limit{Kind: "usage_limit"}}
				if err := s.finish(ctx, Started{N: 1, Account: "main", Began: began}, limited); err != nil {
					t.Fatal(err)
				}
				if len(j.events) != 1 || j.breaker.Consecutive != 1 || told != 1 || !j.events[0].At.Equal(began) {
					t.Errorf("events %+v, breaker %+v, told %d times; want one of each, of when the agent ended", j.events, j.breaker, told)
				}
				k.release(nil)
			})
		})
	}
}

func TestAStoppingProcessWaitsSecondsForTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{back: time.Now().Add(time.Hour)}
		s := &step{Solver: &Solver{Store: j, Now: time.Now}, log: zerolog.Nop()}
		given, stop := context.WithCancel(t.Context())
		ctx, k := keep(given, j, Lease{}, time.Now(), time.Now)
		s.lease = k
		began := time.Now()
		time.AfterFunc(time.Second, stop)
		err := s.finish(ctx, Started{N: 1}, Ended{N: 1})
		if took := time.Since(began); err == nil || took != time.Second+timeoutAfterStop {
			t.Errorf("%v after %s, want an error after %s", err, took, time.Second+timeoutAfterStop)
		}
		k.release(nil)
	})
}

// deaf is a store that never answers reads and notes, as over a connection whose
// other end is gone.
type deaf struct{ Store }

func (deaf) Events(ctx context.Context, _ Thread, _ int64) ([]Event, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (deaf) Note(ctx context.Context, _ Lease, _ []byte) error {
	<-ctx.Done()
	return ctx.Err()
}

func (deaf) Breakers(ctx context.Context) (map[string]Breaker, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// An attempt outlasts its database, and must not wait for one answer for so long: it
// would hear no stop, and its model no answer.
func TestAnAttemptWaitsForNoAnswerLongerThanARenewalDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &step{Solver: &Solver{Store: deaf{}, Now: time.Now, Log: zerolog.Nop()}, lease: &keeper{}}
		for name, ask := range map[string]func(){
			"look":     func() { s.look(t.Context(), 0) },
			"note":     func() { s.note(t.Context(), &ledger{n: 1}, spent{Tokens: Tokens{Input: 1}}) },
			"breakers": func() { s.limited("mine", time.Now())(t.Context()) },
		} {
			began := time.Now()
			ask()
			if took := time.Since(began); took != renewTime {
				t.Errorf("%s waited %s, want %s", name, took, renewTime)
			}
		}
	})
}
