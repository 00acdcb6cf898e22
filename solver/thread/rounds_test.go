package thread

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

var (
	ada = feedback.Actor{ID: 1, Login: "ada", Type: "User"}
	bot = feedback.Actor{ID: 2, Login: "reviewer[bot]", Type: "Bot"}
)

// remark is a possible remark, and whether it is a user's command.
type remark struct {
	f       Feedback
	command bool
}

// letters returns a distinct word for each number: words that differ only in digits are not new.
func letters(n int) string {
	return strings.Map(func(d rune) rune { return d - '0' + 'a' }, fmt.Sprint(n))
}

// inTime spaces events unevenly, as users act.
func inTime(events []Event) []Event {
	for i := range events {
		events[i].At = begin.Add(time.Duration(i)*17*time.Minute + time.Duration(i*i%7)*3*time.Minute)
	}
	return events
}

// anything draws a remark. n makes its words new.
func anything(t *rapid.T, n int) remark {
	review := Feedback{Source: policy.FromReviewComment, By: rapid.SampledFrom([]feedback.Actor{ada, bot}).Draw(t, "reviewer"),
		Severity: rapid.IntRange(feedback.Minor, feedback.Blocking).Draw(t, "severity"), Text: rapid.SampledFrom([]string{"it leaks", fmt.Sprint("finding ", n)}).Draw(t, "finding")}
	return rapid.SampledFrom([]remark{
		{f: review}, {f: review}, {f: review}, {f: review}, {f: review},
		{f: Feedback{Source: policy.FromComment, By: bot, Severity: review.Severity, Text: "/pawl retry", Command: "retry"}},
		{f: Feedback{Source: policy.FromCheckRun, By: bot, Text: fmt.Sprint("failed ", n)}},
		{f: Feedback{Source: policy.FromLabel, By: ada, Command: "solve"}},
		{f: Feedback{Source: policy.FromDescription, By: ada, Text: fmt.Sprint("text ", n)}},
		{f: Feedback{Source: policy.FromComment, By: ada, Command: "solve", Text: "the same again"}}, // a command at first, then a script's repetition
		{f: Feedback{Source: policy.FromComment, By: ada, Command: "solve", Text: "words " + letters(n)}, command: true},
		{f: Feedback{Source: policy.FromComment, By: ada, Text: "a comment " + letters(n)}, command: true},
		{f: Feedback{Source: policy.FromButton, By: ada, Command: "retry"}, command: true},
	}).Draw(t, "said")
}

// TestReviewRoundsNeedAUserBeyondTheCap plays random remarks and itself counts the attempts that reviewers' remarks
// caused.
func TestReviewRoundsNeedAUserBeyondTheCap(t *testing.T) {
	var most, held int
	play := func(t *rapid.T) {
		limits := policy.Defaults()
		limits.Unattended.MaxAttempts, limits.Restarts.MaxPerThreadPerDay, limits.Ladder.VerifyRetries = 1000, 1000, 1000
		var log []happened
		accepted := map[string]bool{}
		rounds, reviews, blocking, order := 0, 0, false, false
		waiting, gravely := 0, false // remarks ignored by a stop, and whether one of them blocks
		for n := range rapid.IntRange(1, 40).Draw(t, "happenings") {
			for range rapid.IntRange(1, 3).Draw(t, "at once") {
				s := anything(t, n)
				s.command = s.command || s.f.Text == "the same again" && !accepted["again"]
				accepted["again"] = accepted["again"] || s.f.Text == "the same again"
				log = append(log, happened{KindFeedback, s.f})
				if order = order || s.command; s.f.Severity > 0 {
					reviews, blocking = reviews+1, blocking || s.f.Severity == feedback.Blocking
				}
				if s.f.Command != "" { // a command also covers waiting remarks
					reviews, blocking, waiting, gravely = reviews+waiting, blocking || gravely, 0, false
				}
			}
			state, err := Fold(inTime(logOf(t, log...)))
			if err != nil {
				t.Fatal(err)
			}
			f := state.Facts(begin.Add(time.Duration(n+1) * 10 * time.Hour))
			f.Limits, f.Backends = limits, []policy.Backend{{Name: "mine", Account: "mine"}}
			switch d := policy.Next(f); d.Action {
			case policy.DoAttempt:
				if reviews > 0 && !order {
					rounds++
					if most = max(most, rounds); rounds > limits.Convergence.MaxRounds {
						t.Fatalf("%d rounds without a user's command: %+v", rounds, f)
					}
					if rounds > limits.Convergence.MaxRounds-limits.Convergence.BlockingRounds && !blocking {
						t.Fatalf("round %d though nothing is marked as blocking: %+v", rounds, f)
					}
				}
				if order {
					rounds = 0
				}
				k := len(state.Attempts) + 1
				r := edited(fmt.Sprint("c", k))
				r.StartTree, r.EndTree, r.Added = fmt.Sprint("tree ", k-1), fmt.Sprint("tree ", k), 100
				log = append(log, start(k, state.Run, state.Seq), end(k, r), decision(policy.DoDone, state.Seq+2))
				reviews, blocking, order, waiting, gravely = 0, false, false, 0, false
			case policy.DoStop:
				if order || reviews == 0 || d.Rule != policy.RuleNotBlocking && d.Rule != policy.RuleNotConverging {
					t.Fatalf("%s %q stops a command %t, %d remarks by reviewers", d.Rule, d.Reasons, order, reviews)
				}
				held++
				log = append(log, happened{KindDecision, Decided{Decision: d, Seen: state.Seq}})
				reviews, blocking, waiting, gravely = 0, false, waiting+reviews, gravely || blocking
			default:
				t.Fatalf("%s by %s %q", d.Action, d.Rule, d.Reasons)
			}
		}
	}
	rapid.Check(t, play)
	fixed := rapid.Custom(func(t *rapid.T) bool { play(t); return true })
	for seed := range 60 { // the seeds are fixed, so the limit is always reached
		fixed.Example(seed)
	}
	if most < policy.Defaults().Convergence.MaxRounds || held == 0 {
		t.Errorf("at most %d rounds, %d held: the test does not reach the limit", most, held)
	}
}
