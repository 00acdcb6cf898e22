package checkrun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
)

// table draws the newest attempts, at most rows of them, also of earlier runs, and counts the others.
func table(f View, rows int) string {
	if len(f.Attempts) == 0 {
		return ""
	}
	hidden := max(0, len(f.Attempts)-rows)
	shown := f.Attempts[hidden:]
	several := shown[0].Run != shown[len(shown)-1].Run
	var b strings.Builder
	b.WriteString("| # |" + text.When(several, " run |") + " backend | ending | progress | edits | similar to one before | waited | took |\n")
	b.WriteString("|--:|" + text.When(several, "--:|") + "---|---|---|---|---|--:|--:|\n")
	for _, a := range shown {
		fmt.Fprintf(&b, "| %d |%s %s | %s | %s | %s | %s | %s | %s |\n", a.N, text.When(several, fmt.Sprintf(" %d |", a.Run)), backend(a),
			a.Result(), progress(a), edits(a), similarity(a), text.Dash(a.Waited), text.Dash(a.Duration))
	}
	if hidden > 0 {
		b.WriteString("\n…and " + policy.Plural(hidden, "earlier attempt") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func backend(a Attempt) string {
	return text.Code(text.Label(a.Backend)) + text.When(a.Effort != "", " "+words(a.Effort)) +
		text.When(a.Decision.Escalated, ", more effort") + text.When(a.Decision.Different, ", different approach")
}

// Result is how the attempt ended and, where that says more, what it came to.
func (a Attempt) Result() string {
	switch {
	case !a.ended():
		return "running"
	case a.WentSilent():
		return "silent for " + words(a.Silent)
	case a.Ending == "" || string(a.Ending) == string(a.Outcome):
		return words(a.Outcome)
	case a.Outcome == "":
		return words(a.Ending)
	}
	return words(a.Ending) + ", " + words(a.Outcome)
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
	return fmt.Sprintf("%s in %s, %s on one", text.Count(a.Edits.Operations), policy.Plural(a.Edits.Files, "file"), text.Count(a.Edits.MaxRepeat))
}

func similarity(a Attempt) string {
	if a.Similarity <= 0 {
		return "–"
	}
	return text.Joined(" ", fmt.Sprintf("%.2f", clamp(a.Similarity)), similarKind(a.SimilarKind))
}

// similarKind lets through only the two kinds there are.
func similarKind(kind string) string {
	if kind == "failure" || kind == "revision" {
		return kind
	}
	return ""
}

func totals(f View) string {
	run := f.run()
	if len(run) == 0 {
		return ""
	}
	var ops int
	var took, waited time.Duration
	var t policy.Tokens
	var cost float64
	priced, untold := false, false
	for _, a := range run {
		ops += a.Edits.Operations
		untold = untold || a.Untold()
		took += a.Duration
		waited += a.Waited
		t = t.Plus(a.Tokens)
		if a.CostUSD != nil {
			cost += *a.CostUSD
			priced = true
		}
	}
	return text.Joined(" · ", policy.Plural(len(run), "attempt"), text.When(ops > 0 || !untold, text.When(untold, "at least ")+policy.Plural(ops, "edit")),
		text.When(took >= time.Second, text.Span(took)+" of work"), text.When(waited >= time.Second, text.Span(waited)+" of waiting"),
		tokens(t), text.When(priced, text.Dollars(cost)))
}

func tokens(t policy.Tokens) string {
	used := fmt.Sprintf("%s tokens in (%s cached), %s out", text.Count(t.Input), text.Count(t.CachedInput), text.Count(t.Output))
	used += text.When(t.Estimated > 0, " ("+text.Count(t.Estimated)+" of these are estimated)")
	return text.When(t.Input > 0 || t.Output > 0, used)
}

// words writes one of our own terms for people: usage_limit as usage limit.
func words[S ~string](term S) string {
	return text.Prose(text.Spaced(text.Line(string(term), 40)))
}

// clamp keeps a share in 0..1; what is no number is 0.
func clamp(share float64) float64 {
	if !(share > 0) {
		return 0
	}
	return min(1, share)
}

// shownRungs bounds the recoveries that are listed, the newest of them.
const shownRungs = 20

func rungs(run []Attempt) string {
	var lines []string
	for _, a := range run {
		for _, r := range a.Rungs {
			lines = append(lines, fmt.Sprintf("- attempt %d, %s: %s → %s: %s%s", a.N, rungName(r), text.Code(r.Trigger), text.Code(r.Response),
				r.Result(), text.When(Spent(r) != "", " ("+Spent(r)+")")))
		}
	}
	return strings.Join(lines[max(0, len(lines)-shownRungs):], "\n")
}

func rungName(r policy.Rung) string {
	name := map[int]string{1: "no answer", 2: "retry with what failed", 3: "more effort", 4: "the agent ran the tests"}[r.Rung]
	if r.Times > 1 {
		return fmt.Sprintf("rung %d, %s, %d ×", r.Rung, name, r.Times)
	}
	return fmt.Sprintf("rung %d, %s", r.Rung, name)
}

// Spent is what a recovery took, and what the answers before it had used that were thrown away.
func Spent(r policy.Rung) string {
	wasted := text.Joined(", ", text.When(r.WastedTokens > 0, text.Count(r.WastedTokens)+" tokens"), text.Cost(r.WastedUSD))
	return text.Joined(", ", text.When(r.Tokens > 0, text.Count(r.Tokens)+" tokens"), text.Cost(r.CostUSD),
		text.When(r.Took() >= time.Second, text.Span(r.Took())), text.When(wasted != "", "thrown away before: "+wasted))
}

// Used is what an attempt used, as far as it is known.
func Used(a Attempt) []string {
	return slices.DeleteFunc([]string{tokens(a.Tokens), text.Cost(a.CostUSD), text.When(a.Turns > 0, policy.Plural(a.Turns, "turn")),
		text.When(a.ToolCalls > 0, policy.Plural(a.ToolCalls, "call")+" of tools")}, func(part string) bool { return part == "" })
}

// Sizes of quoted texts in bytes, for usual runs well under maxBytes; what does not fit is left out.
const (
	maxRequest = 6_000
	maxOutput  = 12_000
	maxMessage = 4_000
	maxLimit   = 1_000
)

// quoted is how many of the newest attempts are shown with their texts.
const quoted = 3

func addDetails(p *page, f View) {
	if len(f.Reasons) > 5 {
		p.fold("All reasons", "- "+text.Joined("\n- ", reasons(f.reasons(), 30)...))
	}
	p.fold("The end of what it printed", text.When(strings.TrimSpace(f.Output) != "", text.Fence(f.Output, maxOutput)))
	p.fold("What was asked", asked(f))
	run := f.run()
	p.fold("Recoveries", rungs(run))
	for i := len(run) - 1; i >= max(0, len(run)-quoted); i-- {
		addAttempt(p, run[i])
	}
	if f.Limit != nil {
		p.fold("Usage limit", text.Joined("\n\n", limit(f)+".", text.When(f.Limit.Message != "", text.Fence(f.Limit.Message, maxLimit))))
	}
	p.fold("Edit loop and stagnation", verdictLines(f))
}

func asked(f View) string {
	if f.Request == "" && f.Title == "" {
		return ""
	}
	return text.Joined("\n\n", text.When(f.RequestedBy != "", "Asked for by "+text.Code(f.RequestedBy)+"."),
		text.When(f.Title != "", "Title: "+text.Code(f.Title)), text.When(f.Request != "", text.Fence(f.Request, maxRequest)))
}

func addAttempt(p *page, a Attempt) {
	addVerified(p, fmt.Sprintf("Attempt %d: verify", a.N), a.Receipt)
	if e := a.TestEvidence; e != nil {
		addVerified(p, fmt.Sprintf("Attempt %d: with the tests as they were, verify", a.N), policy.Receipt{Verify: e.AsTheyWere})
		addVerified(p, fmt.Sprintf("Attempt %d: its new tests without the change, verify", a.N), policy.Receipt{Verify: e.Without})
	}
	var parts []string
	for _, l := range []struct{ what, text, end string }{
		{"How it failed: ", code(a.Detail), ""}, {"Backend: ", code(a.Chosen), ""}, {"Session: ", code(a.Continues), ""},
		{"Beside its task the agent was told: ", code(a.Heard()), ""},
		{"Learned from it: ", code(a.Grade), ""}, {"Used: ", strings.Join(Used(a), " · "), "."}, {"Failing tests: ", paths(a.Tests), "."},
		{"Failed already before Pawl began, and not counted: ", paths(a.Known()), "."},
		{"Flaky, failed and then passed on the same commit: ", paths(a.Flaky()), "."}, {"Failed before Pawl began, and no longer: ", paths(a.Fixed()), "."},
		{"Left out: ", paths(a.LeftOut), "."},
	} {
		if l.text != "" {
			parts = append(parts, l.what+l.text+l.end)
		}
	}
	if a.Says() != "" {
		parts = append(parts, "The agent's last message:", text.Fence(a.Says(), maxMessage))
	}
	what := text.When(a.Says() != "", "what the agent said") + text.When(a.Says() == "", "how it ended")
	p.fold(fmt.Sprintf("Attempt %d: %s", a.N, what), strings.Join(parts, "\n\n"))
}

func addVerified(p *page, what string, r policy.Receipt) {
	if v := r.Verification(); v != nil {
		p.fold(what+" "+text.Subject(v.Result(), maxTitle).String(),
			text.Joined("\n\n", text.Code(v.Command)+" "+text.Prose(v.Result())+".", text.When(v.Exit != 0 && v.Runner == "", "The runner's output is not understood; it is compared as text."),
				text.When(strings.TrimSpace(v.Output) != "", text.Fence(v.Output, maxOutput))))
	}
}

// code is hostile text as inline code; empty for none.
func code(s string) string { return text.When(s != "", text.Code(s)) }

func paths(all []string) string { return strings.Join(first(all, 10, "path", text.Code), ", ") }

func limit(f View) string {
	hit := "usage limit"
	if f.Limit.Consecutive > 1 {
		hit = policy.Plural(f.Limit.Consecutive, "usage limit") + " in a row"
	}
	return "account " + text.Code(text.Label(f.Limit.Account)) + ": " + hit + ", " + text.Reset(f.Now, f.Limit.ResetsAt)
}

func verdictLines(f View) string {
	if len(f.Attempts) == 0 {
		return ""
	}
	return "- `pawl/severity`: " + text.Prose(severity(f).Title) + "\n- `pawl/stagnation`: " + text.Prose(stagnation(f).Title)
}
