package store_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func onlyOneHoldsALease(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	var mu sync.Mutex
	var leases []thread.Lease
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			l, err := s.Acquire(t.Context(), issue(1), "node")
			if err == nil {
				mu.Lock()
				leases = append(leases, l)
				mu.Unlock()
				return
			}
			held, ok := errors.AsType[*thread.LeaseHeldError](err)
			if !ok || held.Owner != "node" || !held.Until.Equal(c.Now().Add(thread.LeaseTime)) {
				t.Errorf("got %v, want the error about a held lease", err)
			}
		})
	}
	wg.Wait()
	if len(leases) != 1 {
		t.Fatalf("%d hold the lease", len(leases))
	}
	check(t, s.Release(t.Context(), leases[0], nil))
	again := must(s.Acquire(t.Context(), issue(1), "other"))(t)
	if again.Epoch != leases[0].Epoch+1 {
		t.Errorf("epoch %d follows %d", again.Epoch, leases[0].Epoch)
	}
	// Releasing a lost lease is not an error and does not affect its new holder.
	check(t, s.Release(t.Context(), leases[0], nil))
	must(s.Renew(t.Context(), again))(t)
}

func aLostLeaseCanAppendNothing(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	lost := must(s.Acquire(ctx, issue(1), "slow"))(t)
	c.Advance(thread.LeaseTime + time.Second)
	held := must(s.Acquire(ctx, issue(1), "quick"))(t)
	if lost.From != "" || held.From != "slow" {
		t.Errorf("taken from %q and %q, want none and slow", lost.From, held.From)
	}
	b := thread.Batch{
		Events: []thread.NewEvent{event("x", 1)}, WakeAt: c.Now().Add(time.Hour), Account: "main",
		Breaker:  func(b policy.Breaker) policy.Breaker { b.Consecutive++; return b },
		Cooldown: &thread.Cooldown{Backend: "codex", Cooldown: policy.Cooldown{Until: c.Now().Add(time.Hour)}}, Alias: 9,
	}
	if err := s.AppendLeased(ctx, lost, b); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("append: %v, want ErrLeaseLost", err)
	}
	if _, err := s.Renew(ctx, lost); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("renew: %v, want ErrLeaseLost", err)
	}
	unknown := lost
	unknown.Thread.Number = 99
	if err := s.AppendLeased(ctx, unknown, b); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("append to a thread never seen: %v, want ErrLeaseLost", err)
	}
	wakes, _ := r.take()
	events := must(s.Events(ctx, issue(1), 0))(t)
	breakers := must(s.Breakers(ctx))(t)
	cooldowns := must(s.Cooldowns(ctx, ""))(t)
	if alias := must(s.Resolve(ctx, issue(9)))(t); wakes+len(events)+len(breakers)+len(cooldowns) > 0 || alias != issue(9) {
		t.Error("a lost lease left something behind:", wakes, events, breakers, cooldowns, alias)
	}
	check(t, s.AppendLeased(ctx, held, b))
	// The same owner in a later epoch holds another lease.
	check(t, s.Release(ctx, held, nil))
	must(s.Acquire(ctx, issue(1), "quick"))(t)
	if err := s.AppendLeased(ctx, held, b); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("append in an old epoch: %v, want ErrLeaseLost", err)
	}
	// Releasing twice is not an error either.
	check(t, s.Release(ctx, held, nil))
}

func untakenExpiredLeaseIsRenewed(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	l := must(s.Acquire(t.Context(), issue(1), "node"))(t)
	c.Advance(10 * thread.LeaseTime)
	check(t, s.AppendLeased(t.Context(), l, thread.Batch{Events: []thread.NewEvent{event("", 1)}}))
	l = must(s.Renew(t.Context(), l))(t)
	if want := c.Now().Add(thread.LeaseTime); !l.Until.Equal(want) {
		t.Errorf("renewed until %s, want %s", l.Until, want)
	}
	if _, err := s.Acquire(t.Context(), issue(1), "other"); err == nil {
		t.Error("a renewed lease was taken")
	}
}

func breakersCountEveryUpdate(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	add := func(b policy.Breaker) policy.Breaker {
		b.Consecutive++
		b.ResetsAt = c.Now().UTC().Truncate(time.Second)
		return b
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			l, err := s.Acquire(ctx, issue(n+1), "node")
			if err != nil {
				t.Error(err)
				return
			}
			for range 5 {
				if err := s.AppendLeased(ctx, l, thread.Batch{Account: "main", Breaker: add}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want := map[string]policy.Breaker{"main": {Consecutive: 40, ResetsAt: c.Now().UTC().Truncate(time.Second)}}
	if diff := cmp.Diff(want, must(s.Breakers(ctx))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	l := must(s.Acquire(ctx, issue(9), "node"))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{Account: "main", Breaker: func(policy.Breaker) policy.Breaker { return policy.Breaker{} }}))
	if got := must(s.Breakers(ctx))(t); len(got) != 0 {
		t.Errorf("a closed breaker is listed: %v", got)
	}
}

func cooldownsEnd(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	dog := thread.ID{Owner: "octo", Name: "dog", Number: 1}
	until := c.Now().UTC().Add(time.Hour)
	set := func(th thread.ID, cd thread.Cooldown) {
		t.Helper()
		l := must(s.Acquire(ctx, th, "node"))(t)
		check(t, s.AppendLeased(ctx, l, thread.Batch{Cooldown: &cd}))
		check(t, s.Release(ctx, l, nil))
	}
	long := thread.Cooldown{Backend: "codex", Cooldown: policy.Cooldown{Class: "moderate", Until: until.Add(time.Hour)}, Thread: dog.String()}
	set(issue(1), thread.Cooldown{Backend: "codex", Cooldown: policy.Cooldown{Class: "mild", Until: until.Add(-time.Minute)}})
	short := thread.Cooldown{Backend: "codex", Cooldown: policy.Cooldown{Class: "moderate", Until: until}, Thread: issue(1).String()}
	set(issue(1), short)
	set(dog, long)
	for _, q := range []struct {
		repo string
		in   time.Duration
		want map[string][]thread.Cooldown
	}{
		{"", 0, map[string][]thread.Cooldown{"octo/cat": {short}, "octo/dog": {long}}},
		{"octo/cat", 0, map[string][]thread.Cooldown{"octo/cat": {short}}},
		{"", time.Hour, map[string][]thread.Cooldown{"octo/dog": {long}}},
		{"octo/cat", 0, map[string][]thread.Cooldown{}},
	} {
		c.Advance(q.in)
		if diff := cmp.Diff(q.want, must(s.Cooldowns(ctx, q.repo))(t)); diff != "" {
			t.Errorf("%q at %s (-want +got)\n%s", q.repo, c.Now(), diff)
		}
	}
}

func threadsListsActiveThreads(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	must(s.Append(ctx, issue(1), true, event("", "never tried")))(t)
	wake := c.Now().UTC().Add(time.Hour)
	l := must(s.Acquire(ctx, issue(2), "node"))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{WakeAt: wake}))
	check(t, s.Release(ctx, l, nil))
	waited := c.Now().UTC()
	c.Advance(time.Second)
	l = must(s.Acquire(ctx, issue(3), "node"))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{Events: []thread.NewEvent{{Kind: thread.KindAttemptStarted}}}))
	started := c.Now().UTC()
	want := []thread.ThreadRow{
		{Thread: issue(3), UpdatedAt: started, Running: true, Seq: 1},
		{Thread: issue(2), UpdatedAt: waited, WakeAt: wake},
	}
	if diff := cmp.Diff(want, must(s.Threads(ctx, 10))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := must(s.Threads(ctx, 1))(t); len(got) != 1 {
		t.Errorf("%d threads listed, want 1", len(got))
	}
	for limit, want := range map[int][]thread.ID{10: {issue(3), issue(2)}, 1: {issue(3)}} {
		var got []thread.ID
		check(t, s.EachThread(ctx, limit, func(t thread.ID) { got = append(got, t) }))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("each of %d (-want +got)\n%s", limit, diff)
		}
	}
	// Other repositories' threads do not count toward the limit.
	for n := range 60 {
		c.Advance(time.Second)
		l := must(s.Acquire(ctx, thread.ID{Owner: "busy", Name: "one", Number: n + 1}, "node"))(t)
		check(t, s.AppendLeased(ctx, l, thread.Batch{Events: []thread.NewEvent{{Kind: thread.KindAttemptStarted}}}))
	}
	for of, want := range map[thread.ID][]thread.ID{issue(1): {issue(3), issue(2)}, issue(3): {issue(2)}} {
		if diff := cmp.Diff(want, must(s.Near(ctx, of))(t)); diff != "" {
			t.Errorf("near %s (-want +got)\n%s", of, diff)
		}
	}
	if got := must(s.Near(ctx, thread.ID{Owner: "busy", Name: "one", Number: 60}))(t); len(got) != 50 || got[0].Number != 59 {
		t.Errorf("%d threads are similar, the first %v; want the 50 newest", len(got), got[0])
	}
	sister := thread.ID{Owner: issue(1).Owner, Name: "Sister", Number: 1}
	for _, other := range []thread.ID{sister, {Owner: "else", Name: issue(1).Name, Number: 1}} {
		l = must(s.Acquire(ctx, other, "node"))(t)
		check(t, s.AppendLeased(ctx, l, thread.Batch{Events: []thread.NewEvent{{Kind: thread.KindAttemptStarted}}}))
	}
	for _, tt := range []struct {
		owner, name string
		want        []thread.ID
	}{
		{strings.ToUpper(issue(1).Owner), strings.ToUpper(issue(1).Name), []thread.ID{issue(2), issue(3)}},
		{issue(1).Owner, "sister", []thread.ID{sister}},
		{issue(1).Owner, "", []thread.ID{sister, issue(2), issue(3)}},
		{"nobody", "", nil},
	} {
		got := must(s.ThreadsOf(ctx, tt.owner, tt.name))(t)
		slices.SortFunc(got, func(a, b thread.ID) int { return strings.Compare(a.String(), b.String()) })
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s/%s (-want +got)\n%s", tt.owner, tt.name, diff)
		}
	}
	if diff := cmp.Diff(want[1], must(s.Thread(ctx, issue(2)))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := s.Thread(ctx, issue(4)); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func closingABreakerLogsAndWakes(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	l := must(s.Acquire(ctx, issue(1), "node"))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{Account: "main", WakeAt: c.Now().Add(time.Hour),
		Breaker: func(policy.Breaker) policy.Breaker { return policy.Breaker{Consecutive: 3} }}))
	check(t, s.Release(ctx, l, nil))
	operated := thread.NewEvent{Kind: thread.KindOperated, At: c.Now(), Data: thread.Operated{What: thread.OperatedBreaker, Subject: "main", By: "ada"}}
	for _, account := range []string{"other", "main"} {
		if closed := must(s.CloseBreaker(ctx, account, operated))(t); closed != (account == "main") {
			t.Errorf("%s: closed %v", account, closed)
		}
	}
	if left := must(s.Breakers(ctx))(t); len(left) > 0 {
		t.Errorf("the breaker still exists: %v", left)
	}
	if log := must(s.Events(ctx, thread.ServerLog(), 0))(t); len(log) != 1 || log[0].Kind != thread.KindOperated {
		t.Errorf("the log has %v, want one event", log)
	}
	if row := must(s.Thread(ctx, issue(1)))(t); row.WakeAt.After(c.Now()) {
		t.Errorf("the thread waits until %s", row.WakeAt)
	}
}
