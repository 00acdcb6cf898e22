package thread

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/internal/panics"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

// begin is the time of the first event of every log here; events are a second apart.
var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// happened is one event of a log without its number and time.
type happened struct {
	kind Kind
	data any
}

func logOf(t interface{ Fatal(...any) }, all ...happened) []Event {
	var events []Event
	for i, h := range all {
		data, err := json.Marshal(h.data)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, Event{Seq: int64(i + 1), Kind: h.kind, At: begin.Add(time.Duration(i) * time.Second), Data: data})
	}
	return events
}

func fold(t *testing.T, all ...happened) State {
	t.Helper()
	s, err := Fold(logOf(t, all...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func solve(text string) happened {
	return happened{KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", Text: text, Snapshot: &Details{Title: "T", Body: "B", DefaultBranch: "main"}}}
}

func start(n, run int, seen int64) happened {
	return happened{KindAttemptStarted, Started{N: n, Run: run, Seen: seen, Backend: "mine", Account: "mine"}}
}

func end(n int, r policy.Receipt) happened {
	r.N = n
	return happened{KindAttemptEnded, r}
}

func decision(a policy.Action, seen int64) happened {
	return happened{KindDecision, Decided{Decision: policy.Decision{Action: a, Rule: "r"}, Seen: seen}}
}

func change(what string) happened { return happened{KindThread, Change{What: what, By: "ada"}} }

func edited(commit string) policy.Receipt {
	return policy.Receipt{Ending: policy.Completed, Outcome: policy.WorkUnverified, StartTree: "a", EndTree: "b", Commit: commit, Pushed: commit != ""}
}

func TestFeedbackAfterADecisionBeginsTheNextRun(t *testing.T) {
	// The second remark arrived while the first one was being decided.
	s := fold(t, solve("one"), start(1, 1, 1), end(1, edited("c1")), solve("two"), decision(policy.DoDone, 3))
	if !s.Open() || s.Run != 2 || len(s.Fresh()) != 1 || s.Fresh()[0].Text != "two" {
		t.Errorf("open %v, run %d, fresh %+v; want the second run with the second remark", s.Open(), s.Run, s.Fresh())
	}
	s = fold(t, solve("one"), start(1, 1, 1), end(1, edited("c1")), solve("two"), decision(policy.DoStop, 4))
	if s.Open() || len(s.Fresh()) != 0 || len(s.Pending()) != 1 {
		t.Errorf("open %v, fresh %+v, pending %+v; want a finished run, and the remark pending for the next one", s.Open(), s.Fresh(), s.Pending())
	}
}

func TestAttemptTakesOnlyFeedbackItSaw(t *testing.T) {
	s := fold(t, solve("one"), solve("two"), start(1, 1, 2), solve("three"), end(1, edited("")))
	var taken []int
	for _, f := range s.Feedback {
		taken = append(taken, f.Taken)
	}
	if diff := cmp.Diff([]int{1, 1, 0}, taken); diff != "" {
		t.Errorf("taken by (-want +got)\n%s", diff)
	}
}

func TestFailedAttemptsRequestsRemain(t *testing.T) {
	texts := func(s State) (all []string) {
		for _, r := range s.Work(policy.ToChange) {
			all = append(all, r.Text)
		}
		return all
	}
	failed := policy.Receipt{Ending: policy.UsageLimit, Outcome: policy.Outcome(policy.UsageLimit)}
	s := fold(t, solve("one"), start(1, 1, 1), end(1, failed), solve("two"))
	if diff := cmp.Diff([]string{"one", "two"}, texts(s)); diff != "" {
		t.Errorf("after a failure (-want +got)\n%s", diff)
	}
	s = fold(t, solve("one"), start(1, 1, 1), end(1, edited("")), solve("two"))
	if diff := cmp.Diff([]string{"two"}, texts(s)); diff != "" {
		t.Errorf("after an answer (-want +got)\n%s", diff)
	}
}

func TestStopLastsUntilTheNextRequest(t *testing.T) {
	stop := happened{KindControl, Feedback{Command: "stop", By: feedback.Actor{Login: "ada"}}}
	if s := fold(t, solve("one"), stop); s.Stopped == "" {
		t.Error("not stopped")
	}
	if s := fold(t, solve("one"), stop, solve("two")); s.Stopped != "" {
		t.Errorf("stopped (%s) although a user asked again", s.Stopped)
	}
}

func TestReopenedPullRequestReturnsToItsThread(t *testing.T) {
	reopened := happened{KindThread, Change{What: "pull_reopened", Number: 7}}
	if s := fold(t, solve("one"), start(1, 1, 1), end(1, edited("c1")), change("pull_closed"), reopened); s.Pull != 7 || !s.Acts[ActPull].Done {
		t.Errorf("pull request %d, act %+v; want 7, done", s.Pull, s.Acts[ActPull])
	}
}

func TestClosingAndReopening(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  []happened
		closed bool
	}{
		{"closed", []happened{change("closed")}, true},
		{"closed, asked again", []happened{change("closed"), solve("x")}, true},
		{"closed, reopened", []happened{change("closed"), change("reopened")}, false},
		{"pull request closed, asked again", []happened{change("pull_closed"), solve("x")}, false},
		{"pull request closed, reopened", []happened{change("pull_closed"), change("pull_reopened")}, false},
		{"branch deleted, asked again", []happened{change("branch_deleted"), solve("x")}, false},
		{"uninstalled, reopened", []happened{change("uninstalled"), change("reopened")}, true},
		{"uninstalled, installed", []happened{change("uninstalled"), change("installed")}, false},
		{"closed, suspended, back", []happened{change("closed"), change("uninstalled"), change("installed")}, true},
		{"deleted, suspended, back", []happened{change("repository_deleted"), change("uninstalled"), change("installed")}, false},
		{"uninstalled, asked again", []happened{change("uninstalled"), solve("x")}, false},
		{"renamed, asked again under the old name", []happened{change("renamed"), solve("x")}, false},
		{"closed, asked again", []happened{change("closed"), solve("x")}, true},
	} {
		s := fold(t, append([]happened{solve("one"), start(1, 1, 1), end(1, edited("c1"))}, c.after...)...)
		if (s.Closed != "") != c.closed {
			t.Errorf("%s: closed %q, want %v", c.name, s.Closed, c.closed)
		}
		if s.Head != "" {
			t.Errorf("%s: head %s still requests a pull request", c.name, s.Head)
		}
	}
}

func TestAbsentThreadNamesTheReason(t *testing.T) {
	for detail, want := range map[string]string{"": "the thread was closed by ada", "transferred": "the thread was transferred by ada", "deleted": "the thread was deleted by ada"} {
		s := fold(t, solve("one"), happened{KindThread, Change{What: "closed", By: "ada", Detail: detail}}, solve("two"))
		if s.Closed != want {
			t.Errorf("%q: %q, want %q", detail, s.Closed, want)
		}
	}
}

func TestUnknownKindsAreIgnored(t *testing.T) {
	s := fold(t, solve("one"), happened{"of_next_year", map[string]int{"x": 1}})
	if s.Seq != 2 || !s.Open() {
		t.Errorf("seq %d, open %v; want 2 and open", s.Seq, s.Open())
	}
}

func TestFeedbackIsFreshExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var log []happened
		s, kept := State{Acts: map[string]ActState{}}, State{}
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			seen := s.Seq - int64(rapid.IntRange(0, int(min(s.Seq, 2))).Draw(t, "unseen"))
			_, running := s.Running()
			what := rapid.SampledFrom([]string{"solve", "stop", "closed", "reopened", "act"}).Draw(t, "what")
			switch own := rapid.Bool().Draw(t, "own"); {
			case own && running:
				log = append(log, end(len(s.Attempts), edited(rapid.SampledFrom([]string{"", "c1"}).Draw(t, "commit"))))
			case own && s.Open() && rapid.Bool().Draw(t, "attempt"):
				log = append(log, start(len(s.Attempts)+1, s.Run, seen))
			case own && s.Open():
				log = append(log, decision(rapid.SampledFrom([]policy.Action{policy.DoStop, policy.DoDone, policy.DoWait}).Draw(t, "action"), seen))
			case what == "solve":
				log = append(log, solve("x"))
			case what == "stop":
				log = append(log, happened{KindControl, Feedback{Command: "stop"}})
			case what == "act":
				log = append(log, happened{KindActDone, Act{Key: ActPull, ID: 7}})
			default:
				log = append(log, change(what))
			}
			events := logOf(t, log...)
			if err := kept.Apply(events[len(events)-1:]); err != nil {
				t.Fatal(err)
			}
			var err error
			if s, err = Fold(events); err != nil {
				t.Fatal(err)
			}
			isState(t, "the state that was kept", s, kept)
			check(t, s)
		}
	})
}

// isState compares a state with the fold of the whole log.
func isState(t *rapid.T, what string, want, got State) {
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-fold +got)\n%s", what, diff)
	}
}

// check holds for every log that a solver can write.
func check(t *rapid.T, s State) {
	for _, f := range s.Fresh() {
		if f.Taken != 0 || f.Withdrawn != "" {
			t.Fatalf("fresh feedback was taken or withdrawn: %+v", f)
		}
	}
	if _, running := s.Running(); !s.Open() && !running && len(s.Fresh()) > 0 {
		t.Fatalf("no run will handle %+v: the run has ended", s.Fresh())
	}
	for _, f := range s.Feedback {
		pending := false
		for _, p := range s.Pending() {
			pending = pending || p.Seq == f.Seq
		}
		if pending == (f.Taken != 0) {
			t.Fatalf("feedback %d: pending %v, taken by %d", f.Seq, pending, f.Taken)
		}
	}
}

func TestParseReversesString(t *testing.T) {
	some := ID{Owner: "acme", Name: "widgets", Number: 7}
	if got, err := Parse(some.String()); err != nil || got != some {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "a#1", "a/b", "a/b#0", "a/b#-1", "a/b/c#1", "/b#1", "a/#1", "a/b#x"} {
		if got, err := Parse(bad); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}

// GitHub numbers comments, check runs, reactions and pull requests separately.
func TestPawlRecognisesOnlyItsOwnComments(t *testing.T) {
	done := func(key string, id int64) happened { return happened{KindActDone, Act{Key: key, ID: id}} }
	s := fold(t, solve("one"), done(ActStatus, 1), done(AnswerKey(1), 2), done(CheckKey("pawl", "abc"), 3), done(ReactKey(1), 4), done(ActPull, 5))
	for id, want := range map[int64]bool{0: false, 1: true, 2: true, 3: false, 4: false, 5: false} {
		if got := s.IsOwn(Target{Kind: "issue_comment", ID: id}); got != want {
			t.Errorf("issue comment %d is Pawl's: %t, want %t", id, got, want)
		}
		if s.IsOwn(Target{Kind: "review_comment", ID: id}) {
			t.Errorf("review comment %d is Pawl's", id)
		}
	}
}

// handoverOf returns the handover event of an attempt that began two events earlier.
func handoverOf(n int, tokens int64) happened {
	return happened{KindUnfinished, Unfinished{N: n, Orderly: true, Times: 1, Used: policy.Spent{N: n, Tokens: policy.Tokens{Input: tokens}}}}
}

func TestAbandonedHandoverCountsAsAnAttempt(t *testing.T) {
	s := fold(t, solve("one"), start(1, 1, 1), handoverOf(1, 7))
	if f := s.Facts(begin); len(f.Attempts) != 0 || f.Handover.Times != 1 || f.Handover.Used.Tokens.Input != 7 {
		t.Errorf("attempts %+v, handed over %+v; want one that continues", f.Attempts, f.Handover)
	}
	s = fold(t, solve("one"), start(1, 1, 1), handoverOf(1, 7), decision(policy.DoStop, 3))
	if f := s.Facts(begin); len(f.Attempts) != 1 || f.Attempts[0].Tokens.Input != 7 || f.Attempts[0].Outcome != policy.Interrupted || f.Handover.Times != 0 {
		t.Errorf("attempts %+v, handed over %+v; want the attempt with its usage", f.Attempts, f.Handover)
	}
}

func TestHandoversUseCountsForADayOrUntilARaise(t *testing.T) {
	raise := func(login, kind string) happened {
		return happened{KindFeedback, Feedback{Source: policy.FromComment, Command: "raise", By: feedback.Actor{Login: login, Type: kind}}}
	}
	for _, c := range []struct {
		name string
		more []happened
		age  time.Duration
		want int64
	}{
		{"at first", nil, time.Hour, 7},
		{"a day later", nil, policy.Day, 0},
		{"raised by a user", []happened{raise("ada", "User")}, time.Hour, 0},
		{"raised by a bot", []happened{raise("helper[bot]", "Bot")}, time.Hour, 7},
	} {
		s := fold(t, append([]happened{solve("one"), start(1, 1, 1), handoverOf(1, 7)}, c.more...)...)
		if got := s.Facts(begin.Add(2*time.Second + c.age)).Handover.Used.Tokens.Input; got != c.want {
			t.Errorf("%s: %d tokens, want %d", c.name, got, c.want)
		}
	}
}

// Nodes' clocks differ, so a raise counts from its place in the log.
func TestRaiseIsOrderedByTheLog(t *testing.T) {
	raise := happened{KindFeedback, Feedback{Source: policy.FromComment, Command: "raise", By: ada}}
	for name, ahead := range map[string]time.Duration{"right": 0, "a year ahead": 8760 * time.Hour, "a year behind": -8760 * time.Hour} {
		log := logOf(t, solve("one"), start(1, 1, 1), raise, end(1, edited("c1")), start(2, 1, 3), end(2, edited("c2")))
		log[2].At = log[2].At.Add(ahead)
		s, err := Fold(log)
		if err != nil {
			t.Fatal(err)
		}
		if f := s.Facts(begin.Add(time.Minute)); len(f.Attempts) != 2 || f.Raised != 1 {
			t.Errorf("a clock that is %s: %d attempts, %d of them no longer count; want 1 of 2", name, len(f.Attempts), f.Raised)
		}
	}
}

func TestPanicInAFoldIsDamage(t *testing.T) {
	const kind = Kind("odd")
	folds[kind] = func(*State, Event) error { panic("nil map") }
	defer delete(folds, kind)
	s, err := Fold([]Event{{Seq: 1, Kind: kind}})
	if !errors.Is(err, ErrDamaged) || panics.Stack(err) == "" || s.Seq != 0 {
		t.Errorf("%v at event %d, want damage with a stack", err, s.Seq)
	}
}
