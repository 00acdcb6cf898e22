package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

type script struct {
	t   *testing.T
	at  time.Time
	seq int64
	n   int
	log []entry
}

func newScript(t *testing.T) *script {
	return &script{t: t, at: time.Date(2031, 3, 4, 8, 0, 0, 0, time.UTC)}
}

func (s *script) add(kind thread.Kind, data any) *script {
	s.t.Helper()
	b, err := json.Marshal(data)
	if err != nil {
		s.t.Fatal(err)
	}
	s.seq++
	s.log = append(s.log, entry{Event: thread.Event{Seq: s.seq, Kind: kind, At: s.at, Data: b}})
	return s
}

func (s *script) pass(d time.Duration) *script {
	s.at = s.at.Add(d)
	return s
}

func (s *script) asks(command string) *script {
	return s.pass(time.Second).add(thread.KindFeedback, thread.Feedback{Source: policy.FromComment, By: feedback.Actor{Login: "ada"}, Command: command})
}

// attempt adds a finished attempt; an empty tree means no change.
func (s *script) attempt(r policy.Receipt) *script {
	s.n++
	s.pass(time.Second).add(thread.KindAttemptStarted, thread.Started{N: s.n, Run: 1, Seen: s.seq, Backend: "codex", Account: "main"})
	r.N, r.StartTree = s.n, "before"
	if r.EndTree == "" {
		r.EndTree = "before"
	}
	return s.pass(time.Minute).add(thread.KindAttemptEnded, r)
}

func (s *script) outline() []string {
	s.t.Helper()
	out, err := playBack(s.log, config.Default())
	if err != nil {
		s.t.Fatal(err)
	}
	return outline(reportReplay(out, &recording{}))
}

var (
	atTheLimit = policy.Receipt{Ending: policy.UsageLimit, Outcome: "usage_limit"}
	rejected   = policy.Receipt{Ending: policy.Auth, Outcome: "auth"}
	cutShort   = policy.Receipt{Ending: policy.TimedOut, Outcome: "timed_out", EndTree: "after"}
	doneWell   = policy.Receipt{Ending: policy.Completed, Outcome: policy.WorkUnverified, EndTree: "after"}
)

func TestNewCommandBeginsANewRun(t *testing.T) {
	got := newScript(t).asks("solve").attempt(rejected).attempt(rejected).asks("retry").attempt(doneWell).outline()
	want := []string{
		"1 auth: stop by auth",
		"2 auth: avoided by auth",
		"3 unverified: done by done",
		"not stopped, done, 1 of 3 avoided, 0 limits, 0 mentions",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestEndlessRunStopsAtItsLimit(t *testing.T) {
	s := newScript(t).asks("solve")
	for i := range 70 {
		moved := cutShort
		moved.EndTree = fmt.Sprintf("after %d", i)
		s.attempt(moved)
	}
	lines := s.outline()
	if got, want := lines[len(lines)-1], "stopped after 51, restart_limit, 19 of 70 avoided, 0 limits, 0 mentions"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if lines[10] != "11 timed_out: wait by backoff" {
		t.Errorf("%s, want a wait that delays the next attempt", lines[10])
	}
}

func TestStopIsObeyed(t *testing.T) {
	got := newScript(t).asks("solve").attempt(cutShort).
		pass(time.Second).add(thread.KindControl, thread.Feedback{Command: "stop", By: feedback.Actor{Login: "ada"}}).
		attempt(cutShort).outline()
	want := []string{
		"1 timed_out: stop by cancelled",
		"2 timed_out: avoided by cancelled",
		"stopped after 1, cancelled, 1 of 2 avoided, 0 limits, 0 mentions",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestCommandEndsACooldown(t *testing.T) {
	s := newScript(t)
	for range 3 {
		s.pass(24 * time.Hour).asks("solve").attempt(policy.Receipt{Ending: policy.Completed, Outcome: policy.EditLoop, EndTree: "after",
			Edits: policy.Edits{Operations: 400, Files: 1, MaxRepeat: 400, MaxRepeatPath: "a.go", Seen: 400, MaxRepeatSeen: 400, Again: 390, Returned: 390}})
	}
	got := s.pass(24 * time.Hour).asks("retry").attempt(cutShort).pass(time.Hour).attempt(doneWell).outline()
	want := []string{
		"1 edit_loop: attempt by feedback",
		"2 edit_loop: attempt by feedback",
		"3 edit_loop: attempt by feedback",
		"4 timed_out: attempt by progress",
		"5 unverified: done by done",
		"not stopped, done, 0 of 5 avoided, 0 limits, 0 mentions",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestRecordedEndForOtherReasonsStays(t *testing.T) {
	// The repository's configuration was broken; policy itself would have continued.
	got := newScript(t).asks("solve").attempt(cutShort).
		pass(time.Second).add(thread.KindDecision, thread.Decided{Seen: 3, Decision: policy.Decision{Action: policy.DoStop, Rule: "config_error"}}).
		pass(time.Hour).asks("solve").attempt(atTheLimit).outline()
	want := []string{
		"1 timed_out: attempt by feedback",
		"2 usage_limit: stop by usage_limit",
		"stopped after 2, usage_limit, 0 of 2 avoided, 1 limits, 0 mentions",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestReplayLeavesItsRecording(t *testing.T) {
	s := newScript(t).asks("solve").attempt(atTheLimit).asks("").attempt(atTheLimit)
	before := fmt.Sprint(s.log)
	first := s.outline()
	if d := cmp.Diff(first, s.outline()); d != "" || before != fmt.Sprint(s.log) {
		t.Errorf("a second replay differs: %s", d)
	}
}

func TestBrokenTrailIsRefusedWithItsLine(t *testing.T) {
	good := `{"seq":1,"kind":"feedback","at":"2031-03-04T08:00:00Z","data":{}}`
	for trail, words := range map[string]string{
		good + "\nnot JSON\n":     "line 2",
		good + "\n" + good + "\n": "line 2: event 1 comes after event 1",
		good + "\n" + `{"seq":2,"kind":"attempt_ended","at":"2031-03-04T08:00:00Z","data":{"n":1}}` + "\n": "attempt 1 ended without a start",
		good + "\n" + `{"seq":2,"kind":"feedback","at":"2031-03-04T08:00:00Z","data":[]}` + "\n":           "event 2 (feedback)",
	} {
		_, err := Files(config.Default(), "", []string{"-"}, opens(strings.NewReader(trail)))
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", trail, err, words)
		}
	}
}
