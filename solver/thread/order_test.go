package thread

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
)

// arrivals is a log of webhooks in order of arrival.
type arrivals []Event

func (l *arrivals) add(t *testing.T, kind Kind, data any) {
	t.Helper()
	b, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	*l = append(*l, Event{Seq: int64(len(*l) + 1), Kind: kind, Data: b})
}

func (l arrivals) fold(t *testing.T) State {
	t.Helper()
	s, err := Fold(l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func second(n int) time.Time { return time.Unix(int64(n), 0).UTC() }

// text returns a snapshot with a description.
func text(body string) *Details { return &Details{Title: "A title", Body: body} }

func editOf(made int, from, to string) Feedback {
	return Feedback{Source: policy.FromDescription, Baseline: from, Description: to, MadeAt: second(made), Snapshot: text(to)}
}

func TestEarlyRevertWithdrawsItsEdit(t *testing.T) {
	for _, tc := range []struct {
		name       string
		edit, back int
		pending    int
	}{
		{"made later", 2, 3, 0},
		{"made in the same second", 2, 2, 0},
		{"made earlier, in an earlier round", 3, 2, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log arrivals
			log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: second(1), Snapshot: text("a")})
			log.add(t, KindAttemptStarted, Started{N: 1, Run: 1, Seen: 1})
			log.add(t, KindIgnored, editOf(tc.back, "b", "a"))
			log.add(t, KindFeedback, editOf(tc.edit, "a", "b"))
			if got := len(log.fold(t).Pending()); got != tc.pending {
				t.Errorf("%d remarks are pending, want %d", got, tc.pending)
			}
		})
	}
}

func TestLateOlderEditWithdrawsNothing(t *testing.T) {
	var log arrivals
	log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: second(1), Snapshot: text("a")})
	log.add(t, KindAttemptStarted, Started{N: 1, Run: 1, Seen: 1})
	log.add(t, KindFeedback, editOf(3, "b", "c"))
	// The previous edit: b is known as the later edit's baseline.
	log.add(t, KindIgnored, editOf(2, "a", "b"))
	s := log.fold(t)
	if p := s.Pending(); len(p) != 1 || p[0].Description != "c" {
		t.Errorf("pending are %+v, want the later edit", p)
	}
	if s.Snapshot.Body != "c" {
		t.Errorf("the description is %q, want the later one", s.Snapshot.Body)
	}
}

func TestOlderRemarkDoesNotEndAStop(t *testing.T) {
	for _, tc := range []struct {
		name    string
		made    time.Time
		stopped bool
	}{
		{"before", second(1), true},
		{"in the same second", second(2), false},
		{"after", second(3), false},
		{"by a button, whose time GitHub does not report", time.Time{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log arrivals
			log.add(t, KindControl, Feedback{Command: "stop", MadeAt: second(2)})
			log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: tc.made})
			if got := log.fold(t).Stopped != ""; got != tc.stopped {
				t.Errorf("stopped = %v, want %v", got, tc.stopped)
			}
		})
	}
}

func TestOnlyRequestsUpdateTheAgentsTexts(t *testing.T) {
	var log arrivals
	log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: second(1), Snapshot: text("asked for")})
	log.add(t, KindIgnored, Feedback{Source: policy.FromDescription, Baseline: "asked for", MadeAt: second(2), Snapshot: text("slipped in")})
	log.add(t, KindThread, Change{What: "head_moved", Snapshot: text("slipped in")})
	log.add(t, KindQuestion, Feedback{Command: "why", MadeAt: second(3), Snapshot: text("slipped in")})
	log.add(t, KindControl, Feedback{Command: "use", MadeAt: second(4), Snapshot: text("slipped in")})
	if got := log.fold(t).Snapshot.Body; got != "asked for" {
		t.Errorf("the description is %q, want the command's", got)
	}
	log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "retry", MadeAt: second(5), Snapshot: text("agreed to")})
	if got := log.fold(t).Snapshot.Body; got != "agreed to" {
		t.Errorf("the description is %q, want the last command's", got)
	}
	log.add(t, KindFeedback, Feedback{Source: policy.FromButton, Command: "retry", Snapshot: &Details{}}) // brings no texts
	if got := log.fold(t).Snapshot.Body; got != "agreed to" {
		t.Errorf("after a button the description is %q, want the last command's", got)
	}
}

// version returns the n-th text of a comment; the first is the original.
func version(n, made int) Feedback {
	return Feedback{Source: policy.FromComment, Command: "solve", Text: fmt.Sprint("version ", n), First: n == 0, MadeAt: second(made), Target: Target{Kind: "issue_comment", ID: 7}}
}

func TestNewestVersionCountsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		made := rapid.SliceOfNDistinct(rapid.IntRange(2, 30), 1, 6, rapid.ID[int]).Draw(rt, "edited at")
		slices.Sort(made)
		versions := []Feedback{version(0, made[0]-rapid.IntRange(0, 1).Draw(rt, "before the first edit"))}
		for i, at := range made {
			versions = append(versions, version(i+1, at))
		}
		newest := versions[len(versions)-1].Text
		var log arrivals
		for _, f := range rapid.Permutation(versions).Draw(rt, "came in this order") {
			log.add(t, KindFeedback, f)
		}
		s := log.fold(t)
		if p := s.Pending(); p[len(p)-1].Text != newest || s.Run != 1 {
			rt.Fatalf("the last of %d requests is %s, in run %d; want %s in the first run", len(p), p[len(p)-1].Text, s.Run, newest)
		}
	})
}

func TestLateVersionOpensNoRun(t *testing.T) {
	var log arrivals
	log.add(t, KindFeedback, version(1, 2))
	log.add(t, KindAttemptStarted, Started{N: 1, Run: 1, Seen: 1})
	log.add(t, KindAttemptEnded, policy.Receipt{N: 1, Ending: policy.Completed})
	log.add(t, KindDecision, Decided{Decision: policy.Decision{Action: policy.DoDone}, Seen: 3})
	log.add(t, KindFeedback, version(0, 1))
	s := log.fold(t)
	if s.Open() || len(s.Pending()) != 0 || s.Feedback[1].Withdrawn == "" {
		t.Errorf("open %v, pending %+v, withdrawn because %q; want no request, and a reason", s.Open(), s.Pending(), s.Feedback[1].Withdrawn)
	}
}

func TestOlderCommandDoesNotReplaceANewerOne(t *testing.T) {
	use := func(made int, backend string) Feedback {
		return Feedback{Command: "use", MadeAt: second(made), Backend: backend}
	}
	var log arrivals
	log.add(t, KindControl, use(2, "new"))
	log.add(t, KindControl, use(1, "old"))
	if got := log.fold(t).Pinned; got != "new" {
		t.Errorf("pinned to %q, want the last command's backend", got)
	}
	// A user asked for work between the two stops.
	log = nil
	log.add(t, KindControl, Feedback{Command: "stop", MadeAt: second(3)})
	log.add(t, KindControl, Feedback{Command: "stop", MadeAt: second(1)})
	log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: second(2)})
	if log.fold(t).Stopped == "" {
		t.Error("not stopped, although the last command is a stop")
	}
}

func TestRequestBeforeAClosingIsVoid(t *testing.T) {
	for _, tc := range []struct {
		name    string
		what    string
		closed  int // when the thread was closed
		asked   int
		undone  bool // the request undoes the closing
		pending int
	}{
		{"closed after it", "closed", 2, 1, false, 0},
		{"closed before it", "closed", 2, 3, false, 1},
		{"pull request closed after it", "pull_closed", 2, 1, false, 0},
		{"pull request merged after it", "pull_merged", 2, 1, false, 0},
		{"pull request closed before it", "pull_closed", 2, 3, true, 1},
		{"in the same second", "pull_closed", 2, 2, true, 1},
		{"suspended after it", "uninstalled", 2, 1, false, 0},
		{"suspended before it, and back", "uninstalled", 2, 3, true, 1},
		{"archived after it", "repository_deleted", 2, 1, false, 0},
		{"renamed after it", "renamed", 2, 1, false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log arrivals
			log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: second(0)})
			log.add(t, KindAttemptStarted, Started{N: 1, Run: 1, Seen: 1})
			log.add(t, KindAttemptEnded, policy.Receipt{N: 1, Ending: policy.Completed})
			log.add(t, KindDecision, Decided{Decision: policy.Decision{Action: policy.DoDone}, Seen: 3})
			log.add(t, KindThread, Change{What: tc.what, By: "ada", MadeAt: second(tc.closed)})
			log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "retry", MadeAt: second(tc.asked)})
			s := log.fold(t)
			if (s.Closed == "") != tc.undone || len(s.Pending()) != tc.pending || s.Open() != (tc.pending > 0) {
				t.Errorf("closed %q, open %v, pending %+v", s.Closed, s.Open(), s.Pending())
			}
		})
	}
	var log arrivals
	log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: second(1)})
	log.add(t, KindThread, Change{What: "closed", By: "ada", MadeAt: second(3)})
	log.add(t, KindThread, Change{What: "reopened", By: "ada"})
	log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: second(2)})
	if p := log.fold(t).Pending(); len(p) != 2 {
		t.Errorf("after the reopening %+v are pending, want both", p)
	}
}

func TestEveryControlHasAnEffect(t *testing.T) {
	for _, c := range policy.Commands {
		_, carriedOut := controls[c.Name]
		if wanted := c.Effect == policy.Controls; carriedOut != wanted {
			t.Errorf("/pawl %s of policy/commands.go controls a thread: %t; it is among the controls in solver/thread/fold_thread.go: %t", c.Name, wanted, carriedOut)
		}
	}
}
