package store_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

// TestAnOlderDatabaseIsUpgradedWithWhatIsInIt opens databases that the pawl of
// commit dc0d258 wrote: one thread with two remarks, an act, a pull request and a
// wait, another whose step was killed, two deliveries, a breaker and a cooldown.
func TestAnOlderDatabaseIsUpgradedWithWhatIsInIt(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pawl.db")
		packed := must(os.Open("testdata/dc0d258.db.gz"))(t)
		defer packed.Close()
		data := must(io.ReadAll(must(gzip.NewReader(packed))(t)))(t)
		check(t, os.WriteFile(path, data, 0o600))
		upgrade(t, "sqlite:"+path)
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := startPostgres(t).emptyDatabase(t)
		dump := must(os.ReadFile("testdata/dc0d258.sql"))(t)
		must(rawDB(t, dsn).Exec(string(dump)))(t)
		upgrade(t, dsn)
	})
}

func upgrade(t *testing.T, dsn string) {
	if _, err := store.OpenReadOnly(t.Context(), dsn, store.Options{}); err == nil {
		t.Error("a reader opened the older schema")
	}
	ctx := t.Context()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := must(store.Open(ctx, dsn, store.Options{Now: func() time.Time { return at }}))(t)
	defer func() { check(t, s.Close()) }()
	r := &recorder{}
	s.UseQueue(r)

	events := must(s.Events(ctx, thread(1), 0))(t)
	state := must(solver.Fold(events))(t)
	if len(events) != 3 || state.Run != 1 || len(state.Ignored) != 1 || !state.Wrote(7) {
		t.Errorf("the log came over as %+v", events)
	}
	wantThreads := []solver.ThreadRow{{Thread: thread(1), UpdatedAt: at, WakeAt: at.Add(time.Hour)}}
	if diff := cmp.Diff(wantThreads, must(s.Threads(ctx, 10))(t)); diff != "" {
		t.Errorf("threads (-want +got)\n%s", diff)
	}
	if got := must(s.Resolve(ctx, thread(7)))(t); got != thread(1) {
		t.Errorf("the pull request belongs to %s", got)
	}
	if b := must(s.Breakers(ctx))(t)["main"]; b.Consecutive != 3 || !b.ResetsAt.Equal(at.Add(time.Hour)) {
		t.Errorf("the breaker came over as %+v", b)
	}
	wantCooldowns := map[string][]solver.Cooldown{"octo/cat": {{Backend: "codex", Class: "mild", Until: at.Add(90 * time.Minute), Thread: "octo/cat#1"}}}
	if diff := cmp.Diff(wantCooldowns, must(s.Cooldowns(ctx, "", at))(t)); diff != "" {
		t.Errorf("cooldowns (-want +got)\n%s", diff)
	}
	open := solver.Delivery{GUID: "open", Event: "issues", Payload: []byte(`{"action":"opened"}`), ReceivedAt: at, State: solver.Received}
	if diff := cmp.Diff(open, must(s.Delivery(ctx, "open"))(t)); diff != "" {
		t.Errorf("delivery (-want +got)\n%s", diff)
	}
	if fresh := must(s.Receive(ctx, solver.Delivery{GUID: "done", Event: "ping", ReceivedAt: at}))(t); fresh {
		t.Error("a delivery handled before the upgrade is fresh")
	}

	// The work goes on, and what is new works.
	if _, err := s.Acquire(ctx, thread(2), "node", at); !isHeld(err) {
		t.Errorf("the lease of the killed step: %v", err)
	}
	if n := must(s.Append(ctx, thread(1), false, event("k1", 1)))(t); n != 0 {
		t.Error("a remark from before the upgrade was appended again")
	}
	l := must(s.Acquire(ctx, thread(1), "node", at))(t)
	check(t, s.AppendLeased(ctx, l, solver.Batch{Events: []solver.NewEvent{event("", 1)}}))
	if !must(s.EnterAccount(ctx, l, "main", 1, at))(t) {
		t.Error("the account is not free")
	}
	check(t, s.Release(ctx, l))
	check(t, s.UpdateShared(ctx, "limits", func([]byte) []byte { return []byte("{}") }))
	check(t, s.PutGraded(ctx, "octo/cat#1/1", func(store.GradedRow) store.GradedRow { return store.GradedRow{At: at, Data: []byte("{}")} }))
	if w := must(s.Stale(ctx, at.Add(time.Minute)))(t); w != (store.Woken{Threads: 1, Deliveries: 1}) {
		t.Errorf("the sweep woke %+v", w)
	}
	jobs := 0
	check(t, rawDB(t, dsn).QueryRow("SELECT count(*) FROM river_job").Scan(&jobs))
	if jobs != 2 {
		t.Errorf("%d jobs came over, want the two steps", jobs)
	}
}
