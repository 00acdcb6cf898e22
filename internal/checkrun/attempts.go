package checkrun

import (
	"fmt"
	"strings"
	"time"
)

// table draws the thread's newest attempts, at most rows of them, and counts the
// others. Attempts of earlier runs belong to it: limits and caps count over runs.
func table(f Facts, rows int) string {
	if len(f.Attempts) == 0 {
		return ""
	}
	hidden := max(0, len(f.Attempts)-rows)
	shown := f.Attempts[hidden:]
	several := shown[0].Run != shown[len(shown)-1].Run
	var b strings.Builder
	b.WriteString("| # |" + only(several, " run |") + " backend | ending | progress | edits | similar to the one before | waited | took |\n")
	b.WriteString("|--:|" + only(several, "--:|") + "---|---|---|---|---|--:|--:|\n")
	for _, a := range shown {
		fmt.Fprintf(&b, "| %d |%s %s | %s | %s | %s | %s | %s | %s |\n", a.N, only(several, fmt.Sprintf(" %d |", a.Run)), backend(a, f.Now),
			ending(a, f.Now), progress(a), edits(a), similarity(a), dash(a.Waited), dash(a.Duration))
	}
	if hidden > 0 {
		b.WriteString("\n…and " + plural(hidden, "earlier attempt") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// only is text where it is wanted.
func only(wanted bool, text string) string {
	if wanted {
		return text
	}
	return ""
}

func backend(a Attempt, now time.Time) string {
	s := code(label(a.Backend))
	if a.Effort != "" {
		s += " " + words(a.Effort, now)
	}
	if a.Escalated {
		s += ", more effort"
	}
	if a.Different {
		s += ", different approach"
	}
	return s
}

// ending is how the attempt ended and, where that says more, what it came to.
func ending(a Attempt, now time.Time) string {
	switch {
	case !a.ended():
		return "running"
	case a.Ending == "" || a.Ending == a.Outcome:
		return words(a.Outcome, now)
	case a.Outcome == "":
		return words(a.Ending, now)
	}
	return words(a.Ending, now) + ", " + words(a.Outcome, now)
}

func progress(a Attempt) string {
	switch {
	case !a.ended():
		return ""
	case a.Progress:
		return "yes"
	}
	return "no"
}

func edits(a Attempt) string {
	if a.Edits.Operations <= 0 {
		return "–"
	}
	return fmt.Sprintf("%s in %s, %s on one", number(int64(a.Edits.Operations)), plural(a.Edits.Files, "file"), number(int64(a.Edits.MaxRepeat)))
}

func similarity(a Attempt) string {
	if a.Similarity <= 0 {
		return "–"
	}
	s := fmt.Sprintf("%s %.2f", bar(a.Similarity), clamp(a.Similarity))
	if kind := similarKind(a.SimilarKind); kind != "" {
		s += " " + kind
	}
	return s
}

// similarKind lets through only the two kinds there are.
func similarKind(kind string) string {
	if kind == "failure" || kind == "revision" {
		return kind
	}
	return ""
}

// totals are the numbers of the current run in one line.
func totals(f Facts) string {
	run := f.run()
	if len(run) == 0 {
		return ""
	}
	var ops int
	var took, waited time.Duration
	var t Tokens
	var cost float64
	priced := false
	for _, a := range run {
		ops += a.Edits.Operations
		took += a.Duration
		waited += a.Waited
		t.Input += a.Tokens.Input
		t.CachedInput += a.Tokens.CachedInput
		t.Output += a.Tokens.Output
		if a.CostUSD != nil {
			cost += *a.CostUSD
			priced = true
		}
	}
	parts := []string{plural(len(run), "attempt"), plural(ops, "edit")}
	if took >= time.Second {
		parts = append(parts, Span(took)+" of work")
	}
	if waited >= time.Second {
		parts = append(parts, Span(waited)+" of waiting")
	}
	if t.Input > 0 || t.Output > 0 {
		parts = append(parts, fmt.Sprintf("%s tokens in (%s cached), %s out", number(t.Input), number(t.CachedInput), number(t.Output)))
	}
	if priced {
		parts = append(parts, price(cost))
	}
	return strings.Join(parts, " · ")
}

// price writes dollars; what no attempt can have cost is shown as its bound.
func price(dollars float64) string {
	const most = 99_999.99
	return fmt.Sprintf("$%.2f", clamp(dollars/most)*most)
}
