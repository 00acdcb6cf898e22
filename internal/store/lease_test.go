package store_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/solver"
)

func onlyOneHoldsALease(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	var mu sync.Mutex
	var leases []solver.Lease
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			l, err := s.Acquire(t.Context(), thread(1), "node", c.Now())
			if err == nil {
				mu.Lock()
				leases = append(leases, l)
				mu.Unlock()
				return
			}
			held, ok := errors.AsType[*solver.HeldError](err)
			if !ok || held.Owner != "node" || !held.Until.Equal(c.Now().Add(solver.LeaseTime)) {
				t.Errorf("got %v, want that it is held", err)
			}
		})
	}
	wg.Wait()
	if len(leases) != 1 {
		t.Fatalf("%d hold the lease", len(leases))
	}
	check(t, s.Release(t.Context(), leases[0]))
	again := must(s.Acquire(t.Context(), thread(1), "other", c.Now()))(t)
	if again.Epoch != leases[0].Epoch+1 {
		t.Errorf("epoch %d follows %d", again.Epoch, leases[0].Epoch)
	}
	// Giving a lost lease back is no error, and takes nothing from its holder.
	check(t, s.Release(t.Context(), leases[0]))
	must(s.Renew(t.Context(), again, c.Now()))(t)
}

func aLostLeaseCanAppendNothing(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	lost := must(s.Acquire(ctx, thread(1), "slow", c.Now()))(t)
	c.Advance(solver.LeaseTime + time.Second)
	held := must(s.Acquire(ctx, thread(1), "quick", c.Now()))(t)
	if lost.From != "" || held.From != "slow" {
		t.Errorf("taken from %q and %q, want nobody and slow", lost.From, held.From)
	}
	b := solver.Batch{
		Events: []solver.NewEvent{event("x", 1)}, WakeAt: c.Now().Add(time.Hour), Account: "main",
		Breaker:  func(b solver.Breaker) solver.Breaker { b.Consecutive++; return b },
		Cooldown: &solver.Cooldown{Backend: "codex", Until: c.Now().Add(time.Hour)}, Alias: 9,
	}
	if err := s.AppendLeased(ctx, lost, b); !errors.Is(err, solver.ErrLeaseLost) {
		t.Errorf("append: %v, want ErrLeaseLost", err)
	}
	if _, err := s.Renew(ctx, lost, c.Now()); !errors.Is(err, solver.ErrLeaseLost) {
		t.Errorf("renew: %v, want ErrLeaseLost", err)
	}
	unknown := lost
	unknown.Thread.Number = 99
	if err := s.AppendLeased(ctx, unknown, b); !errors.Is(err, solver.ErrLeaseLost) {
		t.Errorf("append to a thread never seen: %v, want ErrLeaseLost", err)
	}
	steps, _ := r.take()
	events := must(s.Events(ctx, thread(1), 0))(t)
	breakers := must(s.Breakers(ctx))(t)
	cooldowns := must(s.Cooldowns(ctx, "", c.Now()))(t)
	if alias := must(s.Resolve(ctx, thread(9)))(t); len(steps)+len(events)+len(breakers)+len(cooldowns) > 0 || alias != thread(9) {
		t.Error("a lost lease left something behind:", steps, events, breakers, cooldowns, alias)
	}
	check(t, s.AppendLeased(ctx, held, b))
	// The same owner in a later epoch is somebody else.
	check(t, s.Release(ctx, held))
	must(s.Acquire(ctx, thread(1), "quick", c.Now()))(t)
	if err := s.AppendLeased(ctx, held, b); !errors.Is(err, solver.ErrLeaseLost) {
		t.Errorf("append in an old epoch: %v, want ErrLeaseLost", err)
	}
	// So is one that was given back and that nobody took.
	check(t, s.Release(ctx, held))
}

func anExpiredLeaseThatNobodyTookIsRenewed(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	l := must(s.Acquire(t.Context(), thread(1), "node", c.Now()))(t)
	c.Advance(10 * solver.LeaseTime)
	check(t, s.AppendLeased(t.Context(), l, solver.Batch{Events: []solver.NewEvent{event("", 1)}}))
	l = must(s.Renew(t.Context(), l, c.Now()))(t)
	if want := c.Now().Add(solver.LeaseTime); !l.Until.Equal(want) {
		t.Errorf("renewed until %s, want %s", l.Until, want)
	}
	if _, err := s.Acquire(t.Context(), thread(1), "other", c.Now()); err == nil {
		t.Error("a renewed lease was taken")
	}
}

func breakersCountEveryUpdate(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	add := func(b solver.Breaker) solver.Breaker {
		b.Consecutive++
		b.ResetsAt = c.Now().UTC().Truncate(time.Second)
		return b
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			l, err := s.Acquire(ctx, thread(n+1), "node", c.Now())
			if err != nil {
				t.Error(err)
				return
			}
			for range 5 {
				if err := s.AppendLeased(ctx, l, solver.Batch{Account: "main", Breaker: add}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want := map[string]solver.Breaker{"main": {Consecutive: 40, ResetsAt: c.Now().UTC().Truncate(time.Second)}}
	if diff := cmp.Diff(want, must(s.Breakers(ctx))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	l := must(s.Acquire(ctx, thread(9), "node", c.Now()))(t)
	check(t, s.AppendLeased(ctx, l, solver.Batch{Account: "main", Breaker: func(solver.Breaker) solver.Breaker { return solver.Breaker{} }}))
	if got := must(s.Breakers(ctx))(t); len(got) != 0 {
		t.Errorf("a breaker that was closed is listed: %v", got)
	}
}

func cooldownsEnd(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	dog := solver.Thread{Owner: "octo", Name: "dog", Number: 1}
	until := c.Now().UTC().Add(time.Hour)
	set := func(th solver.Thread, cd solver.Cooldown) {
		t.Helper()
		l := must(s.Acquire(ctx, th, "node", c.Now()))(t)
		check(t, s.AppendLeased(ctx, l, solver.Batch{Cooldown: &cd}))
		check(t, s.Release(ctx, l))
	}
	long := solver.Cooldown{Backend: "codex", Class: "severe", Until: until.Add(time.Hour), Thread: dog.String()}
	set(thread(1), solver.Cooldown{Backend: "codex", Class: "mild", Until: until.Add(-time.Minute)})
	short := solver.Cooldown{Backend: "codex", Class: "moderate", Until: until, Thread: thread(1).String()}
	set(thread(1), short)
	set(dog, long)
	for _, q := range []struct {
		repo string
		at   time.Time
		want map[string][]solver.Cooldown
	}{
		{"", c.Now(), map[string][]solver.Cooldown{"octo/cat": {short}, "octo/dog": {long}}},
		{"octo/cat", c.Now(), map[string][]solver.Cooldown{"octo/cat": {short}}},
		{"", until, map[string][]solver.Cooldown{"octo/dog": {long}}},
		{"octo/cat", until, map[string][]solver.Cooldown{}},
	} {
		if diff := cmp.Diff(q.want, must(s.Cooldowns(ctx, q.repo, q.at))(t)); diff != "" {
			t.Errorf("%q at %s (-want +got)\n%s", q.repo, q.at, diff)
		}
	}
}

func threadsListsWhatHadAnAttemptOrAWait(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	must(s.Append(ctx, thread(1), true, event("", "never tried")))(t)
	wake := c.Now().UTC().Add(time.Hour)
	l := must(s.Acquire(ctx, thread(2), "node", c.Now()))(t)
	check(t, s.AppendLeased(ctx, l, solver.Batch{WakeAt: wake}))
	check(t, s.Release(ctx, l))
	waited := c.Now().UTC()
	c.Advance(time.Second)
	l = must(s.Acquire(ctx, thread(3), "node", c.Now()))(t)
	check(t, s.AppendLeased(ctx, l, solver.Batch{Events: []solver.NewEvent{{Kind: solver.KindAttemptStarted}}}))
	started := c.Now().UTC()
	want := []solver.ThreadRow{
		{Thread: thread(3), UpdatedAt: started, Running: true},
		{Thread: thread(2), UpdatedAt: waited, WakeAt: wake},
	}
	if diff := cmp.Diff(want, must(s.Threads(ctx, 10))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := must(s.Threads(ctx, 1))(t); len(got) != 1 {
		t.Errorf("%d threads listed, want 1", len(got))
	}
	for limit, want := range map[int][]solver.Thread{10: {thread(3), thread(2)}, 1: {thread(3)}} {
		var got []solver.Thread
		check(t, s.EachThread(ctx, limit, func(t solver.Thread) { got = append(got, t) }))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("each of %d (-want +got)\n%s", limit, diff)
		}
	}
	sister := solver.Thread{Owner: thread(1).Owner, Name: "Sister", Number: 1}
	for _, other := range []solver.Thread{sister, {Owner: "else", Name: thread(1).Name, Number: 1}} {
		l = must(s.Acquire(ctx, other, "node", c.Now()))(t)
		check(t, s.AppendLeased(ctx, l, solver.Batch{Events: []solver.NewEvent{{Kind: solver.KindAttemptStarted}}}))
	}
	for _, tt := range []struct {
		owner, name string
		want        []solver.Thread
	}{
		{strings.ToUpper(thread(1).Owner), strings.ToUpper(thread(1).Name), []solver.Thread{thread(2), thread(3)}},
		{thread(1).Owner, "sister", []solver.Thread{sister}},
		{thread(1).Owner, "", []solver.Thread{sister, thread(2), thread(3)}},
		{"nobody", "", nil},
	} {
		got := must(s.ThreadsOf(ctx, tt.owner, tt.name))(t)
		slices.SortFunc(got, func(a, b solver.Thread) int { return strings.Compare(a.String(), b.String()) })
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s/%s (-want +got)\n%s", tt.owner, tt.name, diff)
		}
	}
	if diff := cmp.Diff(want[1], must(s.Thread(ctx, thread(2)))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := s.Thread(ctx, thread(4)); !errors.Is(err, solver.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}
