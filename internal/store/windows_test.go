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
	said := thread.NewEvent{Kind: thread.KindOperated, At: c.Now(), Data: thread.Operated{What: thread.OperatedBreaker, Subject: "main", By: "ada"}}
	if closed := must(s.CloseBreaker(ctx, "main", said))(t); !closed {
		t.Error("nothing was forgotten")
	}
	if all := must(s.Meters(ctx))(t); len(all["main"]) > 0 || len(all["spare"]) != 1 {
		t.Errorf("windows %v, want those of the other account only", all)
	}
	if closed := must(s.CloseBreaker(ctx, "main", said))(t); closed {
		t.Error("closed again without a breaker or windows")
	}
}
