package checkrun

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

// table shows the newest attempts of all runs, up to a number of rows, and counts the others.
func table(f View, rows int) string {
	if len(f.Attempts) == 0 {
		return ""
	}
	hidden := max(0, len(f.Attempts)-rows)
	shown := f.Attempts[hidden:]
	several := shown[0].Run != shown[len(shown)-1].Run
	similar := slices.ContainsFunc(shown, func(a Attempt) bool { return a.SimilarKind != "" })
	waited := slices.ContainsFunc(shown, func(a Attempt) bool { return a.Waited >= time.Second })
	columns := []column{
		{"#", true, func(a Attempt) string { return fmt.Sprint(a.N) }, true},
		{"run", true, func(a Attempt) string { return fmt.Sprint(a.Run) }, several},
		{"backend", false, backend, true},
		{"outcome", false, Attempt.Result, true},
		{"progress", false, progress, true},
		{"edits", false, edits, true},
		{"similar to an earlier one", false, similarity, similar},
		{"waited", true, func(a Attempt) string { return render.Dash(a.Waited) }, waited},
		{"took", true, func(a Attempt) string { return render.Dash(a.Duration) }, true},
	}
	columns = slices.DeleteFunc(columns, func(c column) bool { return !c.filled })
	var b strings.Builder
	row := func(cell func(column) string) {
		for _, c := range columns {
			b.WriteString("| " + cell(c) + " ")
		}
		b.WriteString("|\n")
	}
	row(func(c column) string { return c.name })
	for _, c := range columns {
		b.WriteString(map[bool]string{true: "|--:", false: "|---"}[c.right])
	}
	b.WriteString("|\n")
	for _, a := range shown {
		row(func(c column) string { return c.cell(a) })
	}
	if hidden > 0 {
		b.WriteString("\n…and " + policy.Plural(hidden, "earlier attempt") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// column is a column of the attempts table.
type column struct {
	name   string
	right  bool // aligned to the right
	cell   func(Attempt) string
	filled bool // whether the column has information about these attempts
}

func backend(a Attempt) string {
	return render.Code(render.Label(a.Backend)) + render.When(a.Effort != "", " "+words(a.Effort)) +
		render.When(a.Decision.Escalated, ", more effort") +
		render.When(a.Decision.Different, ", different approach")
}

// Result returns the attempt's outcome for users.
func (a Attempt) Result() string {
	switch {
	case !a.ended():
		return "running"
	case a.Outcome == policy.FellSilent:
		return "silent for " + words(a.Silent)
	case a.Ending == policy.Crashed && a.Outcome == policy.WorkVerified:
		return "crashed, but verified"
	}
	return words(cmp.Or(a.Outcome, policy.Outcome(a.Ending)))
}

func progress(a Attempt) string {
	switch {
	case !a.ended():
		return ""
	case a.Progress():
		return "yes"
	}
	return "no"
}

func edits(a Attempt) string {
	if a.Edits.Operations <= 0 {
		return "–"
	}
	return fmt.Sprintf(
		"%s in %s, %s on one",
		render.Count(a.Edits.Operations),
		policy.Plural(a.Edits.Files, "file"),
		render.Count(a.Edits.MaxRepeat),
	)
}

func similarity(a Attempt) string {
	if a.Similarity <= 0 {
		return "–"
	}
	return render.Joined(" ", fmt.Sprintf("%.2f", clamp(a.Similarity)), similarKind(a.SimilarKind))
}

func similarKind(kind string) string {
	if kind == "failure" || kind == "revision" {
		return kind
	}
	return ""
}

func totals(run []Attempt) string {
	if len(run) == 0 {
		return ""
	}
	var ops int
	var took, waited time.Duration
	var t policy.Tokens
	var cost float64
	priced, unseen := false, false
	for _, a := range run {
		ops += a.Edits.Operations
		unseen = unseen || a.Unreported()
		took += a.Duration
		waited += a.Waited
		t = t.Plus(a.Tokens)
		if a.CostUSD != nil {
			cost += *a.CostUSD
			priced = true
		}
	}
	return render.Joined(
		" · ",
		policy.Plural(len(run), "attempt"),
		render.When(ops > 0 || !unseen, render.When(unseen, "at least ")+policy.Plural(ops, "edit")),
		render.When(took >= time.Second, render.Span(took)+" of work"),
		render.When(waited >= time.Second, render.Span(waited)+" of waiting"),
		tokens(t),
		render.When(priced, render.Dollars(cost)),
	)
}

func tokens(t policy.Tokens) string {
	used := fmt.Sprintf(
		"%s tokens in (%s cached), %s out",
		render.Count(t.Input),
		render.Count(t.CachedInput),
		render.Count(t.Output),
	)
	used += render.When(t.Estimated > 0, " ("+render.Count(t.Estimated)+" estimated)")
	return render.When(t.Input > 0 || t.Output > 0, used)
}

// words writes one of Pawl's terms for users: usage_limit as usage limit.
func words[S ~string](term S) string {
	return render.Prose(render.Spaced(render.Line(string(term), 40)))
}

// clamp keeps a share in 0..1; NaN becomes 0.
func clamp(share float64) float64 {
	if !(share > 0) {
		return 0
	}
	return min(1, share)
}

// shownRungs is how many of the newest recoveries are listed. Our choice.
const shownRungs = 20

func rungs(run []Attempt) string {
	var lines []string
	for _, a := range run {
		for _, r := range a.Rungs {
			lines = append(lines, fmt.Sprintf(
				"- attempt %d, %s: %s → %s: %s%s",
				a.N,
				rungName(r),
				render.Code(r.Trigger),
				render.Code(r.Response),
				r.Result(),
				render.When(Spent(r) != "", " ("+Spent(r)+")"),
			))
		}
	}
	return strings.Join(lines[max(0, len(lines)-shownRungs):], "\n")
}

func rungName(r policy.Rung) string {
	if r.Times > 1 {
		return fmt.Sprintf("rung %d, %s, %d ×", r.Rung, RungName(r.Rung), r.Times)
	}
	return fmt.Sprintf("rung %d, %s", r.Rung, RungName(r.Rung))
}

// RungName returns a rung's name for users; empty for an unknown rung.
func RungName(rung int) string {
	return map[int]string{
		policy.RungAnswer: "no answer",
		policy.RungVerify: "retry with what failed",
		policy.RungEffort: "more effort",
		policy.RungTests:  "the agent ran the tests",
	}[rung]
}

// RungTokens formats the tokens that a rung's recoveries used; a dash if no number is known.
func RungTokens(f learning.Fired) string { return ofSome(render.Count(f.Tokens), f.Counted, f.Times) }

// RungCost formats the cost of a rung's recoveries; a dash if no cost is known.
func RungCost(f learning.Fired) string { return ofSome(render.Cost(f.CostUSD), f.Priced, f.Times) }

// ofSome writes a sum of known values, and how many values it covers if some are unknown.
func ofSome(sum string, known, all int) string {
	switch known {
	case 0:
		return "–"
	case all:
		return sum
	}
	return fmt.Sprintf("%s for %d of %d", sum, known, all)
}

// Spent lists the resources that a recovery used, and the resources that the discarded answers before it used.
func Spent(r policy.Rung) string {
	wasted := render.Joined(
		", ",
		render.When(r.WastedTokens > 0, render.Count(r.WastedTokens)+" tokens"),
		render.Cost(r.WastedUSD),
	)
	return render.Joined(
		", ",
		render.When(r.Tokens > 0, render.Count(r.Tokens)+" tokens"),
		render.Cost(r.CostUSD),
		render.When(r.Took() >= time.Second, render.Span(r.Took())),
		render.When(wasted != "", "discarded before: "+wasted),
	)
}

// Used lists the known resources that an attempt used.
func Used(a Attempt) []string {
	return slices.DeleteFunc([]string{
		tokens(a.Tokens),
		render.Cost(a.CostUSD),
		render.When(a.Turns > 0, policy.Plural(a.Turns, "turn")),
		render.When(a.ToolCalls > 0, policy.Plural(a.ToolCalls, "tool call")),
	}, func(part string) bool { return part == "" })
}

// Maximum sizes of quoted texts, in bytes. Our choice: all texts of a usual run together stay well below maxBytes.
const (
	maxRequest = 6_000
	maxOutput  = 12_000
	maxMessage = 4_000
	maxLimit   = 1_000
)

// quoted is how many of the newest attempts show their texts. Our choice.
const quoted = 3

func (p *page) addDetails(f View) {
	if len(f.Reasons) > 5 {
		p.fold("All reasons", "- "+render.Joined("\n- ", reasons(f.reasons(), 30)...))
	}
	p.fold(
		"The end of its output",
		render.When(strings.TrimSpace(f.Output) != "", render.Fence(f.Output, maxOutput)),
	)
	p.fold("Request", requestText(f))
	run := f.run()
	p.fold("Recoveries", rungs(run))
	for i := len(run) - 1; i >= max(0, len(run)-quoted); i-- {
		p.addAttempt(run[i])
	}
	if f.Limit != nil {
		p.fold(
			"Usage limit",
			render.Joined(
				"\n\n",
				limit(f)+".",
				render.When(f.Limit.Message != "", render.Fence(f.Limit.Message, maxLimit)),
			),
		)
	}
	p.fold("Edit loop and stagnation", verdictLines(f))
}

func requestText(f View) string {
	if f.Request == "" && f.Title == "" {
		return ""
	}
	return render.Joined(
		"\n\n",
		render.When(f.RequestedBy != "", "Requested by "+render.Code(f.RequestedBy)+"."),
		render.When(f.Title != "", "Title: "+render.Code(f.Title)),
		render.When(f.Request != "", render.Quote(f.Request, maxRequest)),
	)
}

func (p *page) addAttempt(a Attempt) {
	p.addVerified(fmt.Sprintf("Attempt %d: verify", a.N), a.Receipt)
	if e := a.TestEvidence; e != nil {
		p.addVerified(
			fmt.Sprintf("Attempt %d: with the base's tests, verify", a.N),
			policy.Receipt{Verify: e.AsTheyWere},
		)
		p.addVerified(
			fmt.Sprintf("Attempt %d: its new tests without the change, verify", a.N),
			policy.Receipt{Verify: e.Without},
		)
	}
	var parts []string
	for _, l := range []struct{ what, text, end string }{
		{"How it failed: ", code(a.Detail), ""}, {"Backend: ", code(a.Chosen), ""}, {"Session: ", code(a.Continues), ""},
		{"The agent's context in addition to the task: ", code(a.ManifestText()), ""},
		{"Steered while it worked by ", a.SteeredBy(render.Code), "."},
		{"Used: ", strings.Join(Used(a), " · "), "."}, {"Failing tests: ", paths(a.Tests), "."},
		{"Failed before Pawl began, not counted: ", paths(a.Known()), "."},
		{"Flaky (failed, then passed on the same commit): ", paths(a.Flaky()), "."}, {"Fixed (failed before Pawl began): ", paths(a.Fixed()), "."},
		{"Left out: ", paths(a.LeftOut), "."},
		{"", afterTests(a.Trajectory), "."},
	} {
		if l.text != "" {
			parts = append(parts, l.what+l.text+l.end)
		}
	}
	if a.LastMessage() != "" {
		parts = append(parts, "The agent's last message:", render.Quote(a.LastMessage(), maxMessage))
	}
	what := render.When(a.LastMessage() != "", "what the agent said") + render.When(a.LastMessage() == "", "how it ended")
	p.fold(fmt.Sprintf("Attempt %d: %s", a.N, what), strings.Join(parts, "\n\n"))
}

// afterTests says how many files the agent edited after its last test run; empty for none.
func afterTests(t policy.Trajectory) string {
	return render.When(t.FilesAfterTests > 0, policy.Plural(t.FilesAfterTests, "file")+" changed after the last test run")
}

func (p *page) addVerified(what string, r policy.Receipt) {
	if v := r.Deciding(); v != nil {
		p.fold(
			what+" "+render.Subject(v.Result(), maxTitle).String(),
			render.Joined(
				"\n\n",
				render.Code(v.Command)+" "+render.Prose(v.Result())+".",
				render.When(
					v.Exit != 0 && v.Runner == "",
					"Pawl does not know this runner's output and compares it as text.",
				),
				render.When(strings.TrimSpace(v.Output) != "", render.Fence(v.Output, maxOutput)),
			),
		)
	}
}

// code formats untrusted text as inline code; empty for empty text.
func code(s string) string { return render.When(s != "", render.Code(s)) }

func paths(all []string) string { return strings.Join(first(all, 10, "path", render.Code), ", ") }

func limit(f View) string {
	hit := "usage limit"
	if f.Limit.Consecutive > 1 {
		hit = policy.Plural(f.Limit.Consecutive, "usage limit") + " in a row"
	}
	return "account " + render.Code(render.Label(f.Limit.Account)) + ": " + hit +
		", " + render.Reset(f.Now, f.Limit.ResetsAt)
}

func verdictLines(f View) string {
	if !Speaks(f, NameSeverity) && !Speaks(f, NameStagnation) {
		return ""
	}
	return "- `pawl/severity`: " + render.Prose(severity(f).Title) +
		"\n- `pawl/stagnation`: " + render.Prose(stagnation(f).Title)
}
