package crashtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// mostAttempts is the default daily limit of a thread (policy.restarts.max_per_thread_per_day).
const mostAttempts = 60

// AttemptsWrong lists a thread's wrong attempts, such as those without a cause. A cause is a remark that no earlier
// attempt took, a death that interrupted the previous attempt, or an agent that fell silent, gave no answer (once per
// run), or stopped early with progress. Each cause counts once, so users, deaths and agents bound the number of
// attempts.
func AttemptsWrong(s thread.State, deaths []Death) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	silent := map[int]bool{} // runs with an attempt repeated for lack of an answer
	for i, a := range s.Attempts {
		if a.EndedAt.IsZero() {
			add("attempt %d has no end", a.N)
		}
		var before thread.Attempt
		if i > 0 && s.Attempts[i-1].Run == a.Run {
			before = s.Attempts[i-1]
		}
		caused := false
		switch a.Decision.Rule {
		case "feedback":
			caused = slices.ContainsFunc(s.Feedback, func(f thread.Request) bool { return f.Taken == a.N })
		case "interrupted":
			caused = before.Receipt.Outcome == policy.Interrupted
		case "silent":
			caused = before.Receipt.Outcome == policy.FellSilent
		case "no_answer":
			caused = before.Receipt.Ending == policy.NoAnswer && !silent[a.Run]
			silent[a.Run] = true
		case "progress":
			r := before.Receipt
			caused = r.Ending != policy.Completed && r.StartTree != "" && r.EndTree != "" && r.StartTree != r.EndTree
		default:
			// No other rule begins an attempt in these tests.
		}
		if !caused {
			add("attempt %d by rule %q has no cause; the one before it: %+v", a.N, a.Decision.Rule, before.Receipt)
		}
		if a.Receipt.Outcome == policy.Interrupted && !slices.ContainsFunc(deaths, func(d Death) bool {
			return d.At.After(a.At) && (i+1 == len(s.Attempts) || d.At.Before(s.Attempts[i+1].At))
		}) {
			add("attempt %d was interrupted from %s to %s, but no server died", a.N, a.At, a.EndedAt)
		}
		day := 0
		for _, b := range s.Attempts[:i+1] {
			if b.At.After(a.At.Add(-24 * time.Hour)) {
				day++
			}
		}
		if day > mostAttempts {
			add("attempt %d is number %d in a day", a.N, day)
		}
	}
	return wrong
}

// judged counts the remarks in a log by target.
func judged(events []thread.Event) map[thread.Target]int {
	times := map[thread.Target]int{}
	for _, e := range events {
		var f thread.Feedback
		if slices.Contains([]thread.Kind{thread.KindFeedback, thread.KindIgnored, thread.KindControl, thread.KindQuestion}, e.Kind) &&
			json.Unmarshal(e.Data, &f) == nil {
			times[f.Target]++
		}
	}
	return times
}
