package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func windowsKeepNewestReadingAndAllUsage(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	now := c.Now().UTC().Truncate(time.Second)
	read := func(age time.Duration, used float64) []policy.Window {
		return []policy.Window{{Name: "5h", Used: used, SeenAt: now.Add(-age), ResetsAt: now.Add(time.Hour), Length: 5 * time.Hour}}
	}
	check(t, s.PutReading(ctx, thread.Reading{Account: "main", Backend: "codex", Windows: read(0, 0.5)}))
	check(t, s.PutReading(ctx, thread.Reading{Account: "main", Backend: "codex", Windows: read(time.Minute, 0.4)}))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			r := thread.Reading{Account: "main", Backend: "codex", Windows: read(time.Hour, 0.1), Used: map[string]float64{"5h": 0.02}}
			if err := s.PutReading(ctx, r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	uses := map[string][]float64{"codex": {0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02}}
	want := map[string][]policy.Meter{"main": {{Window: read(0, 0.5)[0], Uses: uses}}}
	if diff := cmp.Diff(want, must(s.Meters(ctx))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A provider that keeps reporting new windows must not fill the database. Unreadable windows are skipped.
func windowsAreBoundedAndMayBeUnreadable(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	for n := range store.MaxWindows + 5 {
		w := policy.Window{Name: fmt.Sprintf("w%02d", n), Used: 0.5, SeenAt: c.Now().Add(time.Duration(n) * time.Second)}
		check(t, s.PutReading(ctx, thread.Reading{Account: "main", Windows: []policy.Window{w}}))
	}
	all := must(s.Meters(ctx))(t)["main"]
	if len(all) != store.MaxWindows || all[0].Name != "w05" {
		t.Errorf("%d windows from %s on, want the newest %d", len(all), all[0].Name, store.MaxWindows)
	}
	must(rawDB(t, dsn).ExecContext(ctx, "UPDATE windows SET state = '{' WHERE name = 'w05'"))(t)
	if all := must(s.Meters(ctx))(t)["main"]; len(all) != store.MaxWindows-1 {
		t.Errorf("%d windows, want the unreadable one left out", len(all))
	}
	again := policy.Window{Name: "w05", Used: 0.7, SeenAt: c.Now().Add(time.Hour)}
	check(t, s.PutReading(ctx, thread.Reading{Account: "main", Windows: []policy.Window{again}}))
	if all := must(s.Meters(ctx))(t)["main"]; len(all) != store.MaxWindows || all[0].Used != 0.7 {
		t.Errorf("%d windows, the first %+v, want the unreadable one replaced", len(all), all[0])
	}
}

func closingABreakerForgetsTheWindows(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	w := policy.Window{Name: "5h", Used: 1, SeenAt: c.Now(), ResetsAt: c.Now().Add(time.Hour)}
	check(t, s.PutReading(ctx, thread.Reading{Account: "main", Windows: []policy.Window{w}}))
	check(t, s.PutReading(ctx, thread.Reading{Account: "spare", Windows: []policy.Window{w}}))
	operated := thread.NewEvent{Kind: thread.KindOperated, At: c.Now(), Data: thread.Operated{What: thread.OperatedBreaker, Subject: "main", By: "ada"}}
	if closed := must(s.CloseBreaker(ctx, "main", operated))(t); !closed {
		t.Error("nothing was forgotten")
	}
	if all := must(s.Meters(ctx))(t); len(all["main"]) > 0 || len(all["spare"]) != 1 {
		t.Errorf("windows %v, want those of the other account only", all)
	}
	if closed := must(s.CloseBreaker(ctx, "main", operated))(t); closed {
		t.Error("a second close was accepted without a breaker or windows")
	}
}

// A provider may give quota back early. Threads that wait for the old reset must not wait until then.
func quotaGivenBackWakesWaitingThreads(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	now := c.Now()
	put := func(after time.Duration, used float64, claimed string) {
		t.Helper()
		w := policy.Window{Name: "7d", Used: used, SeenAt: now.Add(after), ResetsAt: now.Add(policy.Day)}
		check(t, s.PutReading(ctx, thread.Reading{Account: "main", Claimed: claimed, Windows: []policy.Window{w}}))
	}
	due := func() bool {
		t.Helper()
		return !must(s.Thread(ctx, issue(1)))(t).WakeAt.After(c.Now())
	}
	l := must(s.Acquire(ctx, issue(1), "node"))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{WakeAt: now.Add(policy.Day)}))
	check(t, s.Release(ctx, l, nil))
	for _, one := range []struct {
		what    string
		after   time.Duration
		used    float64
		claimed string
	}{
		{"the first reading", time.Second, 0.99, ""},
		{"an older one", 0, 0.03, ""},
		{"a little less", 2 * time.Second, 0.95, ""},
		{"a thread's claim", 3 * time.Second, 0.03, "acme/widget#9"},
	} {
		put(one.after, one.used, one.claimed)
		if due() {
			t.Errorf("%s wakes the thread", one.what)
		}
	}
	put(4*time.Second, 0.03, "")
	if !due() {
		t.Error("the thread waits although the provider gave quota back")
	}
}

// A reading from the future would be the newest until then.
func readingFromTheFutureIsReplaced(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	for _, ahead := range []time.Duration{90 * policy.Day, 0} {
		w := policy.Window{Name: "7d", Used: ahead.Hours(), SeenAt: c.Now().Add(ahead), ResetsAt: c.Now().Add(ahead + policy.Day)}
		check(t, s.PutReading(ctx, thread.Reading{Account: "main", Windows: []policy.Window{w}}))
	}
	if all := must(s.Meters(ctx))(t)["main"]; len(all) != 1 || all[0].Used != 0 {
		t.Errorf("windows %+v, want the reading of today", all)
	}
}
