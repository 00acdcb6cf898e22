package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	saying "github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

func aPostponedDeliveryIsDueAtItsTime(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	ctx := t.Context()
	must(s.Receive(ctx, thread.Delivery{GUID: "g", Event: "ping", ReceivedAt: c.Now().Add(-2 * 24 * time.Hour)}))(t)
	r.take()
	given := func() bool { return claimed(t, s) == 1 }
	for _, q := range []struct{ until, due time.Duration }{
		{2 * time.Minute, 2 * time.Minute},
		{50 * time.Minute, 50 * time.Minute},
		{5 * time.Hour, time.Hour}, // at most lookAtMost
		{-time.Minute, time.Second},
	} {
		check(t, s.PostponeDelivery(ctx, "g", "GitHub's limit", c.Now().Add(q.until)))
		if c.Advance(q.due / 2); q.until > 0 && given() {
			t.Errorf("until %s: it was dispatched before %s", q.until, q.due)
		}
		c.Advance(q.due/2 + time.Second)
		if !given() {
			t.Errorf("until %s: it was not dispatched after %s", q.until, q.due)
		}
	}
	if d := must(s.Delivery(ctx, "g"))(t); d.State != thread.Failed || d.Note != "GitHub's limit" {
		t.Errorf("left as %+v", d)
	}
	if err := s.PostponeDelivery(ctx, "none", "", c.Now()); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("an unknown delivery: %v", err)
	}
}

func userRequestsAreDispatchedFirst(t *testing.T, dsn string) {
	s, r, c := open(t, dsn)
	button := []byte(`{"action":"requested_action","requested_action":{"identifier":"stop"}}`)
	for i, event := range []string{"check_run", "push", "check_run", "issue_comment", "issues"} {
		d := thread.Delivery{GUID: fmt.Sprint(event, i), Event: event, ReceivedAt: c.Now()}
		if i == 2 {
			d.Payload = button
		}
		must(s.Receive(t.Context(), d))(t)
		c.Advance(time.Second)
	}
	r.take()
	c.Advance(time.Hour)
	var got []string
	for range 3 {
		for _, d := range must(s.ClaimDeliveries(t.Context(), 2))(t) {
			got = append(got, fmt.Sprint(d.GUID, " ", d.Urgent))
		}
	}
	if want := []string{"check_run2 true", "issue_comment3 true", "issues4 true", "check_run0 false", "push1 false"}; !slices.Equal(got, want) {
		t.Errorf("dispatched as %q, want %q", got, want)
	}
}

func threadsWithCommandsAreClaimedFirst(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	remark := func(by, kind string, source policy.Source) thread.NewEvent {
		return thread.NewEvent{Kind: thread.KindFeedback, Data: thread.Feedback{By: saying.Actor{Login: by, Type: kind}, Source: source}}
	}
	stop := thread.NewEvent{Kind: thread.KindControl, Data: thread.Feedback{}}
	wake := func(n int, events ...thread.NewEvent) {
		t.Helper()
		must(s.Append(t.Context(), issue(n), true, events...))(t)
		c.Advance(time.Second)
	}
	claim := func(want ...int) {
		t.Helper()
		var got []int
		for _, l := range must(s.Claim(t.Context(), "node", len(want)))(t) {
			got = append(got, l.Thread.Number)
			check(t, s.Release(t.Context(), l, nil))
		}
		if !slices.Equal(got, want) {
			t.Errorf("claimed %v, want %v", got, want)
		}
	}
	wake(1, thread.NewEvent{Kind: thread.KindThread, Data: thread.Change{What: "renamed"}})
	wake(2, remark("ada", "User", policy.FromCheckRun)) // GitHub names the pusher as the sender of a check
	wake(3, remark("review[bot]", "Bot", policy.FromReview))
	wake(4, thread.NewEvent{Kind: thread.KindIgnored, Data: thread.Feedback{By: saying.Actor{Login: "ada"}, Source: policy.FromComment}})
	wake(5, remark("ada", "User", policy.FromComment))
	wake(3, stop) // thread 3 was already due
	claim(3, 5, 1)
	wake(3, remark("review[bot]", "Bot", policy.FromReview)) // a command makes only one step urgent
	claim(2, 4, 3)
}

// Each poll looks for due rows. After a storm there are thousands, but each claim takes only a few.
func dueRowsAreReadInIndexOrder(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	for _, query := range []string{
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 5000)
			INSERT INTO threads (owner, name, number, updated_at, queued_at, urgent) SELECT 'octo', 'cat', i, i, i, i % 2 FROM n`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 5000)
			INSERT INTO deliveries (guid, event, received_at, state, retry_at, urgent) SELECT 'guid-' || i, 'push', i, 'received', i, i % 2 FROM n`,
		"ANALYZE",
	} {
		must(s.DB().ExecContext(t.Context(), query))(t)
	}
	whether, which, threads := s.ClaimQueries()
	for query, args := range map[string][]any{whether: {0}, which: {2500, 32, 1}, threads: {8}} {
		explain := "EXPLAIN QUERY PLAN "
		if s.Postgres() {
			explain = "EXPLAIN "
		}
		rows := must(s.DB().QueryContext(t.Context(), explain+query, args...))(t)
		defer rows.Close()
		columns := must(rows.Columns())(t)
		var plan string
		for rows.Next() {
			step := make([]any, len(columns)) // the last column is the plan
			for i := range step {
				step[i] = new(any)
			}
			check(t, rows.Scan(step...))
			plan += fmt.Sprintln(*step[len(step)-1].(*any))
		}
		check(t, rows.Err())
		if !strings.Contains(plan, "deliveries_due") && !strings.Contains(plan, "threads_queued") || strings.Contains(plan, "Sort") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s\nhas the plan\n%swant its index and no sort", query, plan)
		}
	}
}

func TestDeliveryOfDeadProcessIsDueAtNextStart(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "pawl.db")
	s, _, c := open(t, dsn)
	for _, guid := range []string{"received", "failed"} {
		must(s.Receive(t.Context(), thread.Delivery{GUID: guid, Event: "ping", ReceivedAt: c.Now()}))(t)
	}
	check(t, s.FinishDelivery(t.Context(), "failed", thread.Failed, "GitHub is down"))
	c.Advance(2 * time.Hour)
	if n := claimed(t, s); n != 2 {
		t.Fatalf("%d deliveries are due, want 2", n)
	}
	check(t, s.Close())
	again, _, _ := open(t, dsn)
	if n := claimed(t, again); n != 2 {
		t.Errorf("after the start %d deliveries are due, want 2", n)
	}
}

// The lock on the file proves that the process that held the leases is dead.
func TestSQLiteLeasesEndWithTheProcess(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "pawl.db")
	s, _, c := open(t, dsn)
	ctx := t.Context()
	for restart := range 3 { // a process may die before its first step
		if l := must(s.Acquire(ctx, issue(1), fmt.Sprint("node", restart)))(t); restart > 0 && l.From != fmt.Sprint("node", restart-1) {
			t.Errorf("taken over from %q", l.From)
		}
		check(t, s.Close())
		s = must(store.Open(ctx, dsn, store.Options{Now: c.Now}))(t)
		s.UseQueue(&recorder{})
		wantDue(t, s, 1)
	}
	check(t, s.Close())
}
