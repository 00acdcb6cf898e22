package store_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func concurrentAttemptsStayWithinTheLimit(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	const most = 3
	var begun atomic.Int64
	var wg sync.WaitGroup
	for n := range 20 {
		lease := must(s.Acquire(t.Context(), issue(n+1), "node"))(t)
		wg.Go(func() {
			e := thread.Entry{N: 1, Installation: 7, At: c.Now(), Since: c.Now().Add(-policy.Day)}
			ok, err := s.Reserve(t.Context(), lease, e, func(u policy.Usage) bool { return u.Repository.Attempts < most })
			if err != nil {
				t.Error(err)
			}
			if ok {
				begun.Add(1)
			}
		})
	}
	wg.Wait()
	u := must(s.Usage(t.Context(), issue(1).Repo(), 7, c.Now().Add(-policy.Day)))(t)
	if begun.Load() != most || u.Repository.Attempts != most || u.Installation.Attempts != most || u.Server.Attempts != most {
		t.Errorf("%d began, %+v counted; want %d", begun.Load(), u, most)
	}
}

func usageIsCountedAtEachLevel(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx, since := t.Context(), c.Now().Add(-policy.Day)
	any := func(policy.Usage) bool { return true }
	elsewhere := thread.ID{Owner: "octo", Name: "dog", Number: 1}
	reserve := func(id thread.ID, installation int64, at time.Time, account string) thread.Lease {
		l := must(s.Acquire(ctx, id, "node"))(t)
		for range 2 { // repeated after a crash: counted once
			if !must(s.Reserve(ctx, l, thread.Entry{N: 1, Installation: installation, Account: account, At: at, Since: since}, any))(t) {
				t.Error("refused")
			}
		}
		return l
	}
	first := c.Now().Add(-time.Hour)
	running := reserve(issue(1), 7, first, "paid")
	ended := reserve(elsewhere, 7, c.Now(), "paid")
	reserve(issue(3), 8, c.Now(), "free")
	reserve(issue(4), 8, since, "free") // a day ago
	usd := 0.5
	check(t, s.Note(ctx, running, policy.Spent{N: 1, Tokens: policy.Tokens{Input: 1, Output: 1}}))
	check(t, s.Note(ctx, running, policy.Spent{N: 1, Tokens: policy.Tokens{Input: 10, Output: 5}, CostUSD: &usd}))
	check(t, s.AppendLeased(ctx, ended, thread.Batch{Spent: &policy.Spent{N: 1, Tokens: policy.Tokens{Output: 100}, CostUSD: &usd}}))
	at := func(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
	want := policy.Usage{
		Repository:   policy.Used{Attempts: 2, Tokens: 15, USD: 0.5, First: at(first)},
		Installation: policy.Used{Attempts: 2, Tokens: 115, USD: 1, First: at(first)},
		Server:       policy.Used{Attempts: 3, Tokens: 115, USD: 1, First: at(first)},
		Accounts: map[string]policy.Used{
			"paid": {Attempts: 2, Tokens: 115, USD: 1, First: at(first)},
			"free": {Attempts: 1, First: at(c.Now())},
		},
	}
	if diff := cmp.Diff(want, must(s.Usage(ctx, issue(1).Repo(), 7, since))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	byRepo := []policy.RepoUsed{
		{Repo: elsewhere.Repo(), Installation: 7, Account: "paid", Used: policy.Used{Attempts: 1, Tokens: 100, USD: 0.5, First: at(c.Now())}},
		{Repo: issue(1).Repo(), Installation: 7, Account: "paid", Used: policy.Used{Attempts: 1, Tokens: 15, USD: 0.5, First: at(first)}},
		{Repo: issue(1).Repo(), Installation: 8, Account: "free", Used: policy.Used{Attempts: 1, First: at(c.Now())}},
	}
	got := must(s.UsedByRepo(ctx, since))(t)
	slices.SortFunc(got, func(a, b policy.RepoUsed) int {
		return b.Attempts*1000 + int(b.Tokens) - a.Attempts*1000 - int(a.Tokens)
	})
	if diff := cmp.Diff(byRepo, got); diff != "" {
		t.Errorf("by repository (-want +got)\n%s", diff)
	}
	c.Advance(thread.LeaseTime + time.Second)
	must(s.Acquire(ctx, issue(1), "next"))(t)
	if _, err := s.Reserve(ctx, running, thread.Entry{N: 2, At: c.Now(), Since: since}, any); !errors.Is(err, thread.ErrLeaseLost) {
		t.Errorf("%v, want ErrLeaseLost", err)
	}
}

// The attempt ended early and continued 20 hours later.
func continuedAttemptCountsFromItsContinuation(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	for _, tokens := range []int64{10, 30} {
		l := must(s.Acquire(ctx, issue(1), "node"))(t)
		e := thread.Entry{N: 1, Installation: 7, At: c.Now(), Since: c.Now().Add(-policy.Day)}
		if !must(s.Reserve(ctx, l, e, func(u policy.Usage) bool { return u.Server.Attempts == 0 }))(t) {
			t.Error("refused")
		}
		check(t, s.AppendLeased(ctx, l, thread.Batch{Spent: &policy.Spent{N: 1, Tokens: policy.Tokens{Input: tokens}}}))
		check(t, s.Release(ctx, l, nil))
		c.Advance(20 * time.Hour)
	}
	if got := must(s.Usage(ctx, issue(1).Repo(), 7, c.Now().Add(-policy.Day)))(t).Server; got.Attempts != 1 || got.Tokens != 30 {
		t.Errorf("20 hours after its last part, %+v is counted, want one attempt with 30 tokens", got)
	}
}

func usageIsCountedByDay(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx, usd := t.Context(), 0.25
	today := c.Now().UTC().Truncate(24 * time.Hour)
	for n, at := range []time.Time{today.Add(-24 * time.Hour), today.Add(-time.Microsecond), today, today.Add(-72 * time.Hour), today} {
		l := must(s.Acquire(ctx, issue(n+1), "node"))(t)
		must(s.Reserve(ctx, l, thread.Entry{N: 1, Account: []string{"main", "main", "main", "main", "second"}[n], At: at, Since: at}, func(policy.Usage) bool { return true }))(t)
		check(t, s.Note(ctx, l, policy.Spent{N: 1, Tokens: policy.Tokens{Output: 10}, CostUSD: &usd}))
	}
	repo := issue(1).Repo()
	want := []store.DayUsed{
		{Repo: repo, Account: "main", Day: today.Add(-24 * time.Hour), Attempts: 2, Tokens: 20, USD: 0.5},
		{Repo: repo, Account: "main", Day: today, Attempts: 1, Tokens: 10, USD: 0.25},
		{Repo: repo, Account: "second", Day: today, Attempts: 1, Tokens: 10, USD: 0.25},
	}
	if diff := cmp.Diff(want, must(s.UsedByDay(ctx, today.Add(-48*time.Hour)))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
