package checkrun

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

// addLead adds what a maintainer needs first: the state of the work, its verification, its cost, and what to do.
func (p *page) addLead(f View, marker string) {
	lines := []string{"**" + leadTitle(f) + "**" + size(f)}
	verified := verifiedLine(f)
	if unfinished(f) {
		lines = append(lines, render.Joined(" · ", verified, branch(f), spent(f.Attempts)))
	} else {
		lines = append(lines, verified, render.When(spent(f.Attempts) != "", "Cost so far: "+spent(f.Attempts)+ofDay(f)))
	}
	lines = append(lines, outlook(f))
	p.sentence(marker + render.Joined("  \n", lines...))
}

// unfinished reports whether a run stopped before its task was done, and neither a user nor the operator stopped it.
func unfinished(f View) bool {
	if f.State != Stopped {
		return false
	}
	return !slices.Contains([]policy.Rule{
		policy.RuleClosed, policy.RuleCancelled, policy.RulePaused, policy.RuleQuestion, policy.RulePlan, policy.RuleEmptyTask,
	}, f.Rule)
}

// leadTitle returns the state of the work, as Markdown. The check run's title describes its commit instead.
func leadTitle(f View) string {
	a, ended := f.last()
	switch {
	case f.watches(), f.unwatched():
		return render.Prose(Headline(f))
	case f.State == Done && ended && a.Verification().Done():
		return "Ready for review" + render.When(f.Pull > 0, fmt.Sprintf(": #%d", f.Pull))
	case f.State == Failed:
		return "Pawl itself failed; this says nothing about the change or the agent"
	case unfinished(f) && f.Rule == policy.RuleVerifyFailed:
		return fmt.Sprintf("Not done: %s after %s", stillFails(a), policy.Plural(len(f.run()), "attempt"))
	case unfinished(f):
		return render.Prose("Not done: " + stopReason(f) + reset(f))
	}
	return render.Prose(Headline(f))
}

func stillFails(a Attempt) string {
	if v := a.Deciding(); v != nil && len(v.Failing) > 0 {
		return "tests still fail"
	}
	return "verification still fails"
}

func size(f View) string {
	var all policy.Folder
	for _, d := range f.pushed().Folders {
		all.Files, all.Added, all.Removed = all.Files+d.Files, all.Added+d.Added, all.Removed+d.Removed
	}
	if all.Files == 0 || f.State != Done {
		return ""
	}
	return fmt.Sprintf(" · %s, +%d −%d", policy.Plural(all.Files, "file"), all.Added, all.Removed)
}

func branch(f View) string {
	return render.When(f.Branch != "" && f.pushed().N > 0, "branch "+render.Code(f.Branch))
}

// verifiedLine returns the result of the newest verification of the current work.
func verifiedLine(f View) string {
	for _, a := range slices.Backward(f.Attempts) {
		if v := a.Deciding(); v != nil {
			return marks[a.Verification()] + " " + render.Code(v.Command) + verifiedWords(f, a, v)
		}
		if a.Pushed {
			return render.When(f.State == Done, marks[policy.Unverified]+" not verified: no verify command")
		}
	}
	return ""
}

// marks precede the result of the verify commands.
var marks = map[policy.Verification]string{
	policy.Proven:       "✅",
	policy.Passed:       "✅",
	policy.Uncounted:    "⚪",
	policy.ChangedTests: "🟡",
	policy.AsBefore:     "🟡",
	policy.Failed:       "❌",
	policy.Broken:       "❌",
	policy.Unverified:   "⚪",
}

func verifiedWords(f View, a Attempt, v *policy.Verified) string {
	switch a.Verification() {
	case policy.Proven, policy.Passed:
		return passes(a) + testCounts(a)
	case policy.Failed:
		if names := policy.Names(v.Failing); len(names) > 0 {
			return ": " + strings.Join(first(names, 5, "test", render.Code), ", ")
		}
		return " " + render.Prose(v.Result())
	case policy.Broken:
		return " " + render.Prose(v.Result())
	default:
		return ": " + render.Prose(a.VerifiedWords(f.Base))
	}
}

// passes ends the sentence that begins with the deciding command.
func passes(a Attempt) string {
	commands := map[string]bool{}
	for _, v := range a.Verify {
		commands[v.Command] = true
	}
	if others := len(commands) - 1; others > 0 {
		return " and " + policy.Plural(others, "other command") + " pass"
	}
	return " passes"
}

// testCounts counts the tests that passed in all commands, that failed before, and that prove the change. It leaves out
// unknown numbers.
func testCounts(a Attempt) string {
	ran := 0
	for _, v := range a.Verify {
		ran += v.PassedTests
	}
	summary := render.Joined("; ",
		render.When(ran > 0, policy.Plural(ran, "test")),
		render.When(len(a.Fixed()) > 0, fmt.Sprintf("%d failed before", len(a.Fixed()))),
		render.When(a.ProvenBy() > 0, fmt.Sprintf("%d new fail without the change", a.ProvenBy())),
	)
	return render.When(summary != "", " ("+summary+")")
}

// spent returns the total time and cost of attempts.
func spent(all []Attempt) string {
	if len(all) == 0 {
		return ""
	}
	var took time.Duration
	var tokens policy.Tokens
	var cost *float64
	more := "" // "at least " if an attempt's price is unknown
	for _, a := range all {
		took += a.Duration
		if a.CostUSD == nil && a.Tokens != (policy.Tokens{}) {
			more = "at least "
		}
		tokens = tokens.Plus(a.Tokens)
		if a.CostUSD != nil {
			sum := *a.CostUSD
			if cost != nil {
				sum += *cost
			}
			cost = &sum
		}
	}
	used := cmp.Or(render.When(cost != nil, more+render.Cost(cost)), render.When(tokens.Input+tokens.Output > 0, render.Count(tokens.Input+tokens.Output)+" tokens"))
	return render.Joined(", ", policy.Plural(len(all), "attempt"), render.When(took >= time.Second, about(took)), used)
}

// about rounds a duration to minutes; below a minute it shows seconds.
func about(d time.Duration) string {
	hours, minutes := int(d.Hours()), int(d.Round(time.Minute).Minutes())
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	}
	return render.Joined(" ", render.Count(hours)+" h", render.When(minutes%60 > 0, fmt.Sprintf("%d min", minutes-60*hours)))
}

// ofDay names the repository's daily budget if all of the cost is from the last 24 hours.
func ofDay(f View) string {
	if f.DayUSD <= 0 || len(f.Attempts) == 0 {
		return ""
	}
	priced := slices.ContainsFunc(f.Attempts, func(a Attempt) bool { return a.CostUSD != nil })
	if !priced || f.Now.Sub(f.Attempts[0].StartedAt) > policy.Day {
		return ""
	}
	return " of $" + strconv.FormatFloat(f.DayUSD, 'f', -1, 64) + " today"
}

// outlook returns one line: what happens next, or what a user can do.
func outlook(f View) string {
	if next := next(f); next != "" {
		return "**Next:** " + next
	}
	return "**You can:** " + cmp.Or(can(f), "comment what to do.")
}

// next says what happens next, or what a user does next; empty if the run stopped.
func next(f View) string {
	switch {
	case f.watches() && !f.attempting():
		return f.Watch.next()
	case f.unwatched(), f.State == Running && f.Run == 0:
		return "comment `/pawl solve` to start Pawl on this thread."
	case f.State == Running && f.Purpose != policy.ToChange:
		return "Pawl posts the agent's answer as a comment. `/pawl stop` ends the attempt."
	case f.State == Running:
		return "Pawl verifies the agent's changes. Comment what to do differently; `/pawl stop` ends the work."
	case f.State == Waiting:
		return waits(f)
	case f.State == Done && f.Pull > 0:
		return fmt.Sprintf("review #%d, or comment what to change. `/pawl stop` ends the work.", f.Pull)
	case f.State == Done && f.IsPull:
		return "review, or comment what to change. `/pawl stop` ends the work."
	}
	return ""
}

func waits(f View) string {
	const can = " `/pawl resume` tries now; `/pawl stop` ends the work."
	switch {
	case f.Rule == policy.RuleProbe, f.Rule == policy.RuleCrowded:
		return "Pawl checks again every few seconds. `/pawl stop` ends the work."
	case f.Rule == policy.RuleNoNode:
		return render.Prose(f.Hint) + " `/pawl stop` ends the work."
	case f.Hint != "" && !f.Until.IsZero():
		return "Pawl continues at " + render.Instant(f.Now, f.Until) + ". " + render.Prose(f.Hint)
	case f.Until.IsZero():
		return "Pawl continues as soon as it can." + can
	}
	return "Pawl continues at " + render.Instant(f.Now, f.Until) + "." + can
}

// can says what a user can do about a run that does not continue by itself.
func can(f View) string {
	switch {
	case f.Hint != "":
		return render.Prose(f.Hint)
	case f.State == Stopped && f.Rule == policy.RuleClosed:
		return "open a new issue or pull request."
	case f.State == Stopped && f.Rule.Words().Help == policy.HelpResume:
		return "comment `/pawl resume` to continue."
	}
	return cans[f.State]
}

var cans = map[State]string{
	Answered:    "ask more with `/pawl ask`, or ask for the change with `/pawl solve`.",
	Planned:     "comment `/pawl go` to carry out the plan.",
	Done:        "comment what to do next.",
	Failed:      "comment `/pawl retry` once the operator has found the cause in the server's log.",
	ConfigError: "correct these lines on the default branch, then comment `/pawl retry`.",
	Stopped:     "say what to do differently, or `/pawl retry`.",
}
