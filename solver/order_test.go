package solver

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// told is a log of what webhooks brought, in the order in which they came.
type told []Event

func (l *told) add(t *testing.T, kind Kind, data any) {
	t.Helper()
	b, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	*l = append(*l, Event{Seq: int64(len(*l) + 1), Kind: kind, Data: b})
}

func (l told) fold(t *testing.T) State {
	t.Helper()
	s, err := Fold(l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func second(n int) time.Time { return time.Unix(int64(n), 0).UTC() }

// text is a snapshot of a thread with this description.
func text(body string) *Snapshot { return &Snapshot{Title: "A title", Body: body} }

func edit(made int, from, to string) Feedback {
	return Feedback{Source: policy.FromDescription, Baseline: from, Description: to, MadeAt: second(made), Snapshot: text(to)}
}

func TestAnEditBackThatOvertakesItsEditTakesItBack(t *testing.T) {
	for _, tc := range []struct {
		name       string
		edit, back int
		pending    int
	}{
		{"made later", 2, 3, 0},
		{"made in the same second", 2, 2, 0},
		{"made earlier, of an earlier round", 3, 2, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log told
			log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: second(1), Snapshot: text("a")})
			log.add(t, KindAttemptStarted, Started{N: 1, Run: 1, Seen: 1})
			log.add(t, KindIgnored, edit(tc.back, "b", "a"))
			log.add(t, KindFeedback, edit(tc.edit, "a", "b"))
			if got := len(log.fold(t).Pending()); got != tc.pending {
				t.Errorf("%d remarks are pending, want %d", got, tc.pending)
			}
		})
	}
}

func TestAnEarlierEditThatComesLateTakesNothingBack(t *testing.T) {
	var log told
	log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: second(1), Snapshot: text("a")})
	log.add(t, KindAttemptStarted, Started{N: 1, Run: 1, Seen: 1})
	log.add(t, KindFeedback, edit(3, "b", "c"))
	// The edit before that: b is known, as what the later one began with.
	log.add(t, KindIgnored, edit(2, "a", "b"))
	s := log.fold(t)
	if p := s.Pending(); len(p) != 1 || p[0].Description != "c" {
		t.Errorf("pending are %+v, want the later edit", p)
	}
	if s.Snapshot.Body != "c" {
		t.Errorf("the description is %q, want the later one", s.Snapshot.Body)
	}
}

func TestAStopIsNotLiftedByARemarkThatWasMadeBeforeIt(t *testing.T) {
	for _, tc := range []struct {
		name    string
		made    time.Time
		stopped bool
	}{
		{"before", second(1), true},
		{"in the same second", second(2), false},
		{"after", second(3), false},
		{"by a button, whose time GitHub does not tell", time.Time{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log told
			log.add(t, KindControl, Control{Feedback: Feedback{Command: "stop", MadeAt: second(2)}})
			log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: tc.made})
			if got := log.fold(t).Stopped != ""; got != tc.stopped {
				t.Errorf("stopped = %v, want %v", got, tc.stopped)
			}
		})
	}
}

func TestOnlyWhoeverAsksForWorkChangesTheTextsThatTheAgentReads(t *testing.T) {
	var log told
	log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: second(1), Snapshot: text("asked for")})
	log.add(t, KindIgnored, Feedback{Source: policy.FromDescription, Baseline: "asked for", MadeAt: second(2), Snapshot: text("slipped in")})
	log.add(t, KindThread, Change{What: "head_moved", Snapshot: text("slipped in")})
	log.add(t, KindQuestion, Question{Feedback: Feedback{Command: "why", MadeAt: second(3), Snapshot: text("slipped in")}})
	log.add(t, KindControl, Control{Feedback: Feedback{Command: "use", MadeAt: second(4), Snapshot: text("slipped in")}})
	if got := log.fold(t).Snapshot.Body; got != "asked for" {
		t.Errorf("the description is %q, want the one of the command", got)
	}
	log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "retry", MadeAt: second(5), Snapshot: text("agreed to")})
	if got := log.fold(t).Snapshot.Body; got != "agreed to" {
		t.Errorf("the description is %q, want that of the last command", got)
	}
}
