package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

var errDown = errors.New("the database does not answer")

// journal is a store with an outage. During the outage it appends nothing, or it appends and loses the answer.
type journal struct {
	thread.Store
	back       time.Time
	unanswered bool
	events     []thread.Event
	breaker    policy.Breaker
}

func (j *journal) Renew(_ context.Context, l thread.Lease) (thread.Lease, error) {
	return l, nil
}

func (j *journal) Release(context.Context, thread.Lease, thread.Retry) error { return nil }

func (j *journal) Events(context.Context, thread.ID, int64) ([]thread.Event, error) {
	if time.Now().Before(j.back) && !j.unanswered {
		return nil, errDown
	}
	return j.events, nil
}

func (j *journal) AppendLeased(_ context.Context, _ thread.Lease, b thread.Batch) error {
	away := time.Now().Before(j.back)
	if away && !j.unanswered {
		return errDown
	}
	for _, e := range b.Events {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return err
		}
		j.events = append(j.events, thread.Event{Seq: int64(len(j.events) + 1), Kind: e.Kind, At: e.At, Data: data})
	}
	if b.Breaker != nil {
		j.breaker = b.Breaker(j.breaker)
	}
	if away {
		return errDown
	}
	return nil
}

func TestReceiptIsWrittenOnceAfterAnOutage(t *testing.T) {
	for name, unanswered := range map[string]bool{"nothing is appended": false, "its answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				j := &journal{back: began.Add(time.Minute), unanswered: unanswered}
				reports := 0
				e := &Env{Store: j, Now: time.Now, OnReceipt: func(string, policy.Receipt) { reports++ }}
				ctx, h := lease.Hold(t.Context(), j, thread.Lease{}, time.Now(), time.Now)
				limited := policy.Receipt{N: 1, Ending: policy.UsageLimit, Outcome: policy.Outcome(policy.UsageLimit), Limit: &policy.Limit{Kind: "usage_limit"}}
				if err := (&Attempt{Config: &config.Server{}, Env: e, Lease: h, Started: thread.Started{N: 1, Account: "main", Began: began}, Receipt: limited}).Finish(ctx); err != nil {
					t.Fatal(err)
				}
				got := []int{len(j.events), j.breaker.Claim.Consecutive, reports}
				if !slices.Equal(got, []int{1, 1, 1}) || !j.events[0].At.Equal(began) {
					t.Errorf("events %+v, breaker %+v, %d reports; want one of each, with the time of the agent's end", j.events, j.breaker, reports)
				}
				h.Release(nil)
			})
		})
	}
}

func TestStoppingProcessWaitsSecondsForTheDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{back: time.Now().Add(time.Hour)}
		given, stop := context.WithCancel(t.Context())
		ctx, h := lease.Hold(given, j, thread.Lease{}, time.Now(), time.Now)
		began := time.Now()
		time.AfterFunc(time.Second, stop)
		err := (&Attempt{Config: &config.Server{}, Env: &Env{Store: j, Now: time.Now}, Lease: h, Started: thread.Started{N: 1}, Receipt: policy.Receipt{N: 1}}).Finish(ctx)
		if took := time.Since(began); err == nil || took != time.Second+lease.StopTime {
			t.Errorf("%v after %s, want an error after %s", err, took, time.Second+lease.StopTime)
		}
		h.Release(nil)
	})
}

// silent is a store that never answers reads and notes, like a connection without a peer.
type silent struct{ thread.Store }

func (silent) Events(ctx context.Context, _ thread.ID, _ int64) ([]thread.Event, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Note(ctx context.Context, _ thread.Lease, _ policy.Spent) error {
	<-ctx.Done()
	return ctx.Err()
}

func (silent) Breakers(ctx context.Context) (map[string]policy.Breaker, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A single store call must end long before an attempt's patience does. Otherwise the attempt would miss a stop, and
// its model would get no answer.
func TestAttemptsStoreCallsTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Attempt{Config: &config.Server{}, Env: &Env{Store: silent{}, Now: time.Now}, Lease: &lease.Holder{}}
		for name, ask := range map[string]func(){
			"look":     func() { a.look(t.Context(), 0) },
			"note":     func() { a.note(t.Context(), policy.Spent{Tokens: policy.Tokens{Input: 1}}) },
			"breakers": func() { a.Env.limited(t.Context(), "mine", time.Now()) },
		} {
			began := time.Now()
			ask()
			if took := time.Since(began); took != lease.RenewTime {
				t.Errorf("%s waited %s, want %s", name, took, lease.RenewTime)
			}
		}
	})
}
