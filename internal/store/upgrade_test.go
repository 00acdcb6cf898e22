package store_test

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
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

// oldPacked is a payload as the pawl of commit 964464b packed it, in hexadecimal.
const oldPacked = "ff7332016f150003186f70656e6564222e8d035104086164614601177655028144150008047d7d"

// addToOld stores a delivery as schema 3 and 4 did, packed with the dictionary, one
// that pawl could not read then, and a thread whose failed step only the queue of that time knows.
func addToOld(t *testing.T, dsn string, at time.Time) {
	db := rawDB(t, dsn)
	mark := map[bool]string{true: "$", false: "?"}[strings.HasPrefix(dsn, "postgres")]
	exec := func(query string, args ...any) {
		t.Helper()
		must(db.Exec(strings.ReplaceAll(query, "?", mark), args...))(t)
	}
	exec("INSERT INTO deliveries (guid, event, payload, received_at, state, retry_at) VALUES ('packed', 'issues', ?1, ?2, 'received', 1)",
		must(hex.DecodeString(oldPacked))(t), at.UnixMicro())
	exec("INSERT INTO deliveries (guid, event, payload, received_at, state, note, tries, retry_at) VALUES ('unread', 'issues', ?1, ?2, 'unparsable', 'a field is missing', 1, 0)",
		[]byte(`{"action":"typed"}`), at.UnixMicro())
	exec("INSERT INTO threads (owner, name, number, updated_at) VALUES ('octo', 'cat', 3, ?1)", at.Add(-time.Hour).UnixMicro())
	exec(`INSERT INTO river_job (state, max_attempts, args, kind, queue) VALUES ('retryable', 300, '{"thread": {"owner": "octo", "name": "cat", "number": 3}}', 'step', 'steps')`)
}

func upgrade(t *testing.T, dsn string) {
	if _, err := store.Open(t.Context(), dsn, store.Options{Access: store.Reading}); err == nil {
		t.Error("a reader opened the older schema")
	}
	ctx := t.Context()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	addToOld(t, dsn, at)
	s := must(store.Open(ctx, dsn, store.Options{Now: func() time.Time { return at }}))(t)
	defer func() { check(t, s.Close()) }()
	s.UseQueue(&recorder{})
	// Thread 3 was to be tried again by a job of the old queue, which alone said so.
	// The killed step held thread 2, and may live where the database is not a file.
	_, one := cutSQLite(dsn)
	if one {
		wantDue(t, s, 2, 3)
	} else {
		wantDue(t, s, 3)
	}

	events := must(s.Events(ctx, issue(1), 0))(t)
	state := must(thread.Fold(events))(t)
	if len(events) != 3 || state.Run != 1 || len(state.Ignored) != 1 || state.Acts["pull"].ID != 7 {
		t.Errorf("the log came over as %+v", events)
	}
	wantThreads := []thread.ThreadRow{{Thread: issue(1), UpdatedAt: at, WakeAt: at.Add(time.Hour), Seq: 3}}
	if diff := cmp.Diff(wantThreads, must(s.Threads(ctx, 10))(t)); diff != "" {
		t.Errorf("threads (-want +got)\n%s", diff)
	}
	if got := must(s.Resolve(ctx, issue(7)))(t); got != issue(1) {
		t.Errorf("the pull request belongs to %s", got)
	}
	if b := must(s.Breakers(ctx))(t)["main"]; b.Consecutive != 3 || !b.ResetsAt.Equal(at.Add(time.Hour)) {
		t.Errorf("the breaker came over as %+v", b)
	}
	wantCooldowns := map[string][]thread.Cooldown{"octo/cat": {{Backend: "codex", Rest: policy.Rest{Class: "mild", Until: at.Add(90 * time.Minute)}, Thread: "octo/cat#1"}}}
	if diff := cmp.Diff(wantCooldowns, must(s.Cooldowns(ctx, "", at))(t)); diff != "" {
		t.Errorf("cooldowns (-want +got)\n%s", diff)
	}
	open := thread.Delivery{GUID: "open", Event: "issues", Payload: []byte(`{"action":"opened"}`), ReceivedAt: at, State: thread.Received}
	if diff := cmp.Diff(open, must(s.Delivery(ctx, "open"))(t)); diff != "" {
		t.Errorf("delivery (-want +got)\n%s", diff)
	}
	packed := thread.Delivery{GUID: "packed", Event: "issues", Payload: []byte(`{"action":"opened","sender":{"login":"ada"},"repository":{"html_url":"https://github.com/octocat/Hello-World"}}`), ReceivedAt: at, State: thread.Received}
	if diff := cmp.Diff(packed, must(s.Delivery(ctx, "packed"))(t)); diff != "" {
		t.Errorf("a delivery that was packed with the dictionary (-want +got)\n%s", diff)
	}
	unread := thread.Delivery{GUID: "unread", Event: "issues", Payload: []byte(`{"action":"typed"}`), ReceivedAt: at, State: thread.Unparsable, Note: "a field is missing"}
	if diff := cmp.Diff(unread, must(s.Delivery(ctx, "unread"))(t)); diff != "" {
		t.Errorf("a delivery that could not be read (-want +got)\n%s", diff)
	}
	if fresh := must(s.Receive(ctx, thread.Delivery{GUID: "done", Event: "ping", ReceivedAt: at}))(t); fresh {
		t.Error("a delivery handled before the upgrade is fresh")
	}

	// The work goes on, and what is new works.
	if n := must(s.Append(ctx, issue(1), false, event("k1", 1)))(t); n != 0 {
		t.Error("a remark from before the upgrade was appended again")
	}
	l := must(s.Acquire(ctx, issue(1), "node", at))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{Events: []thread.NewEvent{event("", 1)}}))
	if !must(s.EnterAccount(ctx, l, "main", 1, at))(t) {
		t.Error("the account is not free")
	}
	check(t, s.Release(ctx, l, nil))
	check(t, s.UpdateShared(ctx, "limits", func(time.Time, []byte) []byte { return []byte("{}") }))
	check(t, s.PutGraded(ctx, thread.GradeRow{ID: "octo/cat#1/1", At: at, Data: []byte("{}")}))
	if n := must(s.Sweep(ctx, at.Add(time.Minute)))(t); (n == 0) != one {
		t.Errorf("the sweep freed %d threads, want that of the killed step on PostgreSQL only", n)
	}
	wantDue(t, s, 2, 3)
	if n := claimed(t, s); n != 3 {
		t.Errorf("%d deliveries are due, want the two that were not handled and the one that could not be read", n)
	}
	if _, err := rawDB(t, dsn).Exec("SELECT 1 FROM river_job"); err == nil {
		t.Error("the old queue's table is still there")
	}
}
