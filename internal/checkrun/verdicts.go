package checkrun

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Speaks reports whether a check run shows more than success or an unknown verdict. It is always true for the check run
// pawl.
func Speaks(f View, name string) bool {
	switch name {
	case NameSeverity:
		conclusion, known := severityConclusion(f)
		return known && conclusion != Success
	case NameStagnation:
		return f.Stagnation.Escalated || f.Stagnation.Similar > 0
	}
	return true
}

func severity(f View) forge.CheckRun {
	c := check(f, NameSeverity)
	a, ok := f.last()
	conclusion, known := severityConclusion(f)
	if !ok || !known {
		return pending(c, f, "Severity")
	}
	c.Status, c.Conclusion = Completed, conclusion
	counts := counted(a.Edits)
	p := &page{}
	repeats, repeated := a.Edits.Repeats()
	switch {
	case f.Severity.Class == policy.None && repeated:
		c.Title = title("Repeated call", repeatedCall(repeats, shortCall))
		p.sentence(fmt.Sprintf("Attempt %d repeated a call: %s.", a.N, repeatedCall(repeats, render.Code)))
	case f.Severity.Class == policy.None && a.Unreported():
		c.Title = "No edit loop seen: the agent's output shows no edits"
		p.sentence(fmt.Sprintf("Attempt %d shows no edit loop.", a.N))
	case f.Severity.Class == policy.None:
		c.Title = title("No edit loop", counts)
		p.sentence(fmt.Sprintf("Attempt %d was not an edit loop.", a.N))
	default:
		what := string(f.Severity.Class) + " edit loop"
		c.Title = title(strings.ToUpper(what[:1])+what[1:], counts+cooldown(f))
		p.sentence(fmt.Sprintf(
			"%s on %s: %s%s.",
			render.Name(render.Label(a.Backend)),
			render.Name(repoName(f.Thread)),
			what,
			cooldown(f),
		))
	}
	if repeated && f.Severity.Class != policy.None {
		p.list("Repeated call: " + repeatedCall(repeats, render.Code))
	}
	p.list(reasons(f.Severity.Reasons, 5)...)
	p.list(severityOutlook(f)...)
	c.Summary = p.fit()
	if conclusion == Failure {
		c.Actions = buttons(f)
	}
	return c
}

// conclusions has no row for the empty class: an attempt that was not judged has no conclusion.
var conclusions = map[policy.Class]string{
	policy.None:     Success,
	policy.Mild:     Neutral,
	policy.Moderate: Failure,
	policy.Severe:   Failure,
}

// severityConclusion returns the class's conclusion. A repeated call makes success neutral.
func severityConclusion(f View) (conclusion string, known bool) {
	conclusion, known = conclusions[f.Severity.Class]
	a, ok := f.last()
	if !ok || conclusion != Success {
		return conclusion, known
	}
	if _, repeated := a.Edits.Repeats(); repeated {
		conclusion = Neutral
	}
	return conclusion, known
}

func repeatedCall(l policy.Loop, show func(string) string) string {
	name := "one call"
	if l.What != "" {
		name = show(policy.CallName(l.What))
	}
	if l.Kind == policy.LoopFailures {
		return fmt.Sprintf("%s failed %s times", name, render.Count(l.Count))
	}
	return fmt.Sprintf("%s had the same result %s times", name, render.Count(l.Count))
}

func shortCall(call string) string { return render.Line(call, maxCall) }

// maxCall bounds a call in a title, in characters. Our choice.
const maxCall = 60

func counted(e policy.Edits) string {
	if e.Operations <= 0 {
		return "no edits"
	}
	return fmt.Sprintf(
		"%s, %s on one file",
		policy.Plural(e.Operations, "edit"),
		render.Count(e.MaxRepeat),
	)
}

// cooldown returns the remaining cooldown of the backend, after a comma.
func cooldown(f View) string { return ends(f.Now, f.CooldownUntil, "its cooldown ended at ") }

// Cooldown describes a backend's cooldown in a repository after edit loops.
func Cooldown(c thread.Cooldown, now time.Time) string {
	if c.Damage != "" {
		return c.Damage
	}
	if c.Class == policy.Runaway {
		return fmt.Sprintf(
			"%s in a week; it is in cooldown until a user comments /pawl resume",
			policy.Plural(len(c.Severe), "severe edit loop"),
		)
	}
	return fmt.Sprintf("%s edit loop, %s", render.Label(c.Class), render.Left(now, c.Until))
}

// Window describes a reading of a usage window, with a forecast if it will be full before its reset.
func Window(w policy.Window, now time.Time) string {
	name := render.Line(w.Name, 40)
	if w.ResetsAt.IsZero() {
		return fmt.Sprintf("%s window: %.0f %% used, reset unknown; %s", name, 100*w.Used, lastSeen(w, now))
	}
	if !w.Current(now) {
		return fmt.Sprintf("%s window: unknown since its reset; %s", name, lastSeen(w, now))
	}
	text := fmt.Sprintf("%s window: %.0f %% used, resets at %s", name, 100*w.Used, render.Instant(now, w.ResetsAt))
	if full, before := w.FullAt(); before && full.After(now) {
		text += ", full at " + render.Instant(now, full) + " at this rate"
	}
	return text + "; " + lastSeen(w, now)
}

func lastSeen(w policy.Window, now time.Time) string {
	return "reported at " + render.Instant(now, w.SeenAt)
}

func severityOutlook(f View) []string {
	s := f.Severity
	grade := fmt.Sprintf("The attempt's grade is %.2f of 1.", clamp(s.Grade))
	switch {
	case s.Class == policy.None:
		return nil
	case f.Runaway:
		return []string{
			"**Next:** this was the backend's third severe edit loop in this repository within a week. Its cooldown lasts until a user comments `/pawl resume`, `retry`, `escalate` or `raise`; another backend may continue.",
			"**You can:** read what its attempts did. `/pawl resume` ends the cooldown; `/pawl use BACKEND` takes another backend.",
			grade,
		}
	case f.CooldownUntil.After(f.Now):
		return []string{
			fmt.Sprintf(
				"**Next:** this backend is in cooldown here for %s, until %s; another backend may continue.",
				render.Span(s.Cooldown),
				render.Instant(f.Now, f.CooldownUntil),
			),
			"**You can:** look at the attempt's work. `/pawl resume` ends the cooldown early; `/pawl use BACKEND` takes another backend.",
			grade,
		}
	}
	return []string{"**Next:** this backend may be used again.", grade}
}

func stagnation(f View) forge.CheckRun {
	c := check(f, NameStagnation)
	if _, ok := f.last(); !ok {
		return pending(c, f, "Stagnation")
	}
	s := f.Stagnation
	kind := cmp.Or(similarKind(s.Kind), "result")
	c.Status = Completed
	p := &page{}
	switch {
	case s.Escalated:
		c.Conclusion = ActionRequired
		c.Title = title(
			"Stagnation",
			fmt.Sprintf(
				"%s in a row with the same %s as an earlier one",
				policy.Plural(s.Similar, "attempt"),
				kind,
			),
		)
		p.sentence("The attempts repeat the same " + kind +
			". Another attempt of the same kind would not help.")
	case s.Similar > 0:
		c.Conclusion = Neutral
		c.Title = title(
			"Similar",
			fmt.Sprintf(
				"%s with the same %s as an earlier one (%.2f)",
				policy.Plural(s.Similar, "attempt"),
				kind,
				clamp(s.Similarity),
			),
		)
		p.sentence("The last attempt and one of the two attempts before it have a similar " + kind +
			". If the next one is similar too, Pawl escalates.")
	default:
		c.Conclusion, c.Title = Success, "No stagnation"
		p.sentence("The last attempt does not repeat an earlier one.")
	}
	p.list(reasons(s.Reasons, 5)...)
	p.list(stagnationOutlook(f, kind)...)
	c.Summary = p.fit()
	if s.Escalated {
		c.Actions = buttons(f)
	}
	return c
}

func stagnationOutlook(f View, kind string) []string {
	if !f.Stagnation.Escalated {
		return nil
	}
	if f.State == Stopped || f.State == Failed {
		return []string{outlook(f)}
	}
	next := "**Next:** Pawl lists the earlier attempts for the agent and asks for a different approach."
	if kind == "revision" {
		next = "**Next:** another backend, if there is one, makes the next attempt. Pawl asks it for a different approach."
	}
	return []string{
		next,
		"**You can:** comment what to do differently, `/pawl use BACKEND`, or `/pawl stop`.",
	}
}
