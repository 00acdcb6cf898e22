package commands_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/commands"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

var (
	at    = time.Date(2026, 3, 4, 8, 51, 0, 0, time.UTC)
	ada   = commands.Actor{Login: "ada", ID: 1001, Where: "on the pages", At: at}
	issue = thread.ID{Owner: "acme", Name: "widgets", Number: 7}
)

func open(t *testing.T) *store.Store {
	t.Helper()
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func happened(t *testing.T, db *store.Store, id thread.ID, kind thread.Kind, data any) {
	t.Helper()
	if _, err := db.Append(t.Context(), id, false, thread.NewEvent{Kind: kind, At: at, Data: data}); err != nil {
		t.Fatal(err)
	}
}

func decided(a policy.Action, rule policy.Rule) thread.Decided {
	return thread.Decided{Seen: 1, Decision: policy.Decision{Action: a, Rule: rule}}
}

func state(t *testing.T, db *store.Store, id thread.ID) thread.State {
	t.Helper()
	events, err := db.Events(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := thread.Fold(events)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCommandWithoutEffectSaysWhy(t *testing.T) {
	asked := thread.Feedback{Source: policy.FromComment, Command: "solve"}
	type event struct {
		kind thread.Kind
		data any
	}
	for name, c := range map[string]struct {
		log                 []event
		retry, stop, resume string // the answer to each
	}{
		"nothing": {nil, "never asked", "never asked", "never asked"},
		"asked":   {[]event{{thread.KindFeedback, asked}}, "on its way", "", "on its way"},
		"running": {[]event{{thread.KindFeedback, asked}, {thread.KindAttemptStarted, thread.Started{N: 1, Run: 1, Seen: 1}}}, "is running", "", "is running"},
		"waiting": {[]event{{thread.KindFeedback, asked}, {thread.KindDecision, decided(policy.DoWait, policy.RuleCooldown)}}, "resume continues", "", ""},
		"stopped": {[]event{{thread.KindFeedback, asked}, {thread.KindDecision, decided(policy.DoStop, policy.RuleVerifyFailed)}}, "", "nothing runs", ""},
		"done":    {[]event{{thread.KindFeedback, asked}, {thread.KindDecision, decided(policy.DoDone, policy.RuleDone)}}, "", "nothing runs", "retry makes one more"},
		"closed": {[]event{{thread.KindFeedback, asked}, {thread.KindThread, thread.Change{What: "closed", By: "ada"}}, {thread.KindDecision, decided(policy.DoStop, policy.RuleClosed)}},
			"reopen it first", "nothing runs", "reopen it first"},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			for _, e := range c.log {
				happened(t, db, issue, e.kind, e.data)
			}
			for command, want := range map[string]string{commands.Retry: c.retry, commands.Stop: c.stop, commands.Resume: c.resume} {
				why := commands.Cannot(command, state(t, db, issue))
				if (want == "") != (why == "") || !strings.Contains(why, want) {
					t.Errorf("%s: %q, want %q", command, why, want)
				}
			}
		})
	}
}

func TestEveryCommandIsCarriedOut(t *testing.T) {
	db := open(t)
	happened(t, db, issue, thread.KindFeedback, thread.Feedback{Source: policy.FromComment, Command: "solve"})
	asked := state(t, db, issue)
	for _, c := range policy.Commands {
		var why, in string
		switch {
		case c.Effect == policy.Pauses:
			why, in = fmt.Sprint(commands.OnRepository(t.Context(), db, c.Name, issue.Owner, issue.Name, ada)), "OnRepository"
		case c.Page != "" || c.Shell != "":
			why, in = commands.Cannot(c.Name, asked), "Cannot"
		}
		if strings.Contains(why, "Pawl cannot carry out") {
			t.Errorf("/pawl %s of policy/commands.go has no case in %s in internal/commands/commands.go", c.Name, in)
		}
	}
}

func TestCommandIsStoredLikeAComment(t *testing.T) {
	db := open(t)
	happened(t, db, issue, thread.KindFeedback, thread.Feedback{Source: policy.FromComment, Command: "solve"})
	for range 2 { // like a double click
		if err := commands.OnThread(t.Context(), db, commands.Stop, issue, ada); err != nil {
			t.Fatal(err)
		}
	}
	if s := state(t, db, issue); s.Stopped != "ada asked to stop" || s.Seq != 3 {
		t.Fatalf("%q after %d events", s.Stopped, s.Seq)
	}
	happened(t, db, issue, thread.KindDecision, thread.Decided{Seen: 3, Decision: policy.Decision{Action: policy.DoStop, Rule: policy.RuleCancelled}})
	if err := commands.OnThread(t.Context(), db, commands.Retry, issue, ada); err != nil {
		t.Fatal(err)
	}
	s := state(t, db, issue)
	if fresh := s.Fresh(); !s.Open() || s.Stopped != "" || len(fresh) != 1 || fresh[0].Command != "retry" || fresh[0].By.Login != "ada" || fresh[0].By.ID != 1001 || fresh[0].Reason != "retry on the pages" {
		t.Errorf("open %v, stopped %q, fresh %+v", s.Open(), s.Stopped, fresh)
	}
	row, err := db.Stats(t.Context())
	if err != nil || row.Queued != 1 {
		t.Errorf("%d threads are due (%v), want this one", row.Queued, err)
	}
	var why commands.CannotError
	if err := commands.OnThread(t.Context(), db, commands.Retry, issue, ada); !errors.As(err, &why) {
		t.Errorf("a retry of a pending request: %v", err)
	}
}

func TestUnpausedRepositoryContinues(t *testing.T) {
	db := open(t)
	other := thread.ID{Owner: "acme", Name: "widgets", Number: 8}
	for id, rule := range map[thread.ID]policy.Rule{issue: policy.RulePaused, other: policy.RuleVerifyFailed} {
		happened(t, db, id, thread.KindFeedback, thread.Feedback{Source: policy.FromComment, Command: "solve"})
		happened(t, db, id, thread.KindDecision, decided(policy.DoStop, rule))
	}
	var why commands.CannotError
	if _, err := commands.Unpause(t.Context(), db, "acme", "widgets", ada); !errors.As(err, &why) {
		t.Errorf("a repository that is not paused was unpaused: %v", err)
	}
	if err := commands.Pause(t.Context(), db, "acme", "widgets", ada); err != nil {
		t.Fatal(err)
	}
	by, err := commands.PausedBy(t.Context(), db, "acme", "widgets")
	if err != nil || by == nil {
		t.Fatalf("the repository is not paused (%v)", err)
	}
	if by.By != "ada" || by.Where != "on the pages" {
		t.Errorf("paused by %+v", by)
	}
	if err := commands.Pause(t.Context(), db, "acme", "widgets", ada); !errors.As(err, &why) {
		t.Errorf("a paused repository was paused again: %v", err)
	}
	if n, err := commands.Unpause(t.Context(), db, "acme", "widgets", ada); err != nil || n != 1 {
		t.Errorf("%d threads continue (%v), want the one that stopped for the pause", n, err)
	}
	if !state(t, db, issue).Open() || state(t, db, other).Open() {
		t.Error("another thread than the one that stopped for the pause continues")
	}
	if by, err := commands.PausedBy(t.Context(), db, "acme", "widgets"); err != nil || by != nil {
		t.Errorf("still paused by %+v (%v)", by, err)
	}
	if row, err := db.Threads(t.Context(), 10); err != nil || len(row) != 2 {
		t.Errorf("%d threads are listed (%v); a repository's log is not a thread", len(row), err)
	}
}

func TestBreakersAndDeliveriesAreLoggedByUser(t *testing.T) {
	db := open(t)
	var why commands.CannotError
	if err := commands.CloseBreaker(t.Context(), db, "main", ada); !errors.As(err, &why) {
		t.Errorf("a missing breaker was closed: %v", err)
	}
	if _, err := commands.RetryDelivery(t.Context(), db, "a", ada); !errors.As(err, &why) {
		t.Errorf("a missing delivery was retried: %v", err)
	}
	if _, err := db.Receive(t.Context(), thread.Delivery{GUID: "a", Event: "issues", Payload: []byte("{}"), ReceivedAt: at}); err != nil {
		t.Fatal(err)
	}
	if err := db.FinishDelivery(t.Context(), "a", thread.Unparsable, "no JSON"); err != nil {
		t.Fatal(err)
	}
	l, err := db.Acquire(t.Context(), issue, "node")
	if err == nil {
		err = db.AppendLeased(t.Context(), l, thread.Batch{Account: "main", Breaker: func(policy.Breaker) policy.Breaker { return policy.Breaker{Consecutive: 3} }})
	}
	if err == nil {
		err = commands.CloseBreaker(t.Context(), db, "main", ada)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, err := commands.RetryDelivery(t.Context(), db, "a", ada); err != nil || n != 1 {
		t.Errorf("%d deliveries (%v), want one", n, err)
	}
	events, err := db.Events(t.Context(), thread.ServerLog(), 0)
	if err != nil || len(events) != 2 || !strings.Contains(string(events[0].Data), `"by":"ada"`) || !strings.Contains(string(events[1].Data), `"subject":"a"`) {
		t.Errorf("the server's log: %+v (%v)", events, err)
	}
}

func TestServerUnpauseSparesPausedRepositories(t *testing.T) {
	db := open(t)
	for _, repo := range []string{"one", "two"} {
		id := thread.ID{Owner: "acme", Name: repo, Number: 1}
		happened(t, db, id, thread.KindFeedback, thread.Feedback{Source: policy.FromComment, Command: "solve"})
		happened(t, db, id, thread.KindDecision, decided(policy.DoStop, policy.RulePaused))
	}
	if err := commands.Pause(t.Context(), db, "acme", "two", ada); err != nil {
		t.Fatal(err)
	}
	if n, err := commands.Lift(t.Context(), db, ada); err != nil || n != 1 || !state(t, db, thread.ID{Owner: "acme", Name: "one", Number: 1}).Open() {
		t.Errorf("%d threads continue (%v), want the other repository's one", n, err)
	}
	if n, err := commands.Unpause(t.Context(), db, "acme", "two", ada); err != nil || n != 1 {
		t.Errorf("%d threads continue (%v), want the paused repository's one", n, err)
	}
}
