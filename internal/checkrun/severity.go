package checkrun

import (
	"fmt"
	"strings"
)

// severity renders the edit-loop verdict on the last attempt that ended.
func severity(f Facts) Check {
	c := check(f, NameSeverity)
	a, ok := f.last()
	conclusion, known := severityConclusion(f.Severity.Class)
	if !ok || !known {
		return c.pending(f, "Severity")
	}
	c.Status, c.Conclusion = Completed, conclusion
	counts := counted(a.Edits)
	p := newPage(f.Now)
	if f.Severity.Class == "none" {
		c.Title = title("No edit loop", counts)
		p.sentence(fmt.Sprintf("Attempt %d was no edit loop.", a.N))
	} else {
		what := f.Severity.Class + " edit loop"
		c.Title = title(strings.ToUpper(what[:1])+what[1:], counts+cooldown(f))
		p.sentence(resting(f) + ".")
	}
	p.list(p.reasons(f.Severity.Reasons, 5)...)
	p.sentence(editChart(a))
	p.list(severityOutlook(f)...)
	p.sentence(table(f, tableRows))
	p.fold("What the classes mean", classes)
	c.Summary = p.fit()
	if conclusion == Failure {
		c.Actions = buttons(f)
	}
	return c
}

const classes = `- none: no loop; the check succeeds
- mild: the check is neutral and blocks nothing
- moderate and severe: the check fails

An edit loop cools its backend down on this repository, the longer the worse it was, and counts against the backend when the next one is chosen.`

func severityConclusion(class string) (conclusion string, known bool) {
	switch class {
	case "none":
		return Success, true
	case "mild":
		return Neutral, true
	case "moderate", "severe":
		return Failure, true
	}
	return "", false
}

// counted are an attempt's edits in words.
func counted(e Edits) string {
	if e.Operations <= 0 {
		return "no edits"
	}
	return fmt.Sprintf("%s, %s on one file", plural(e.Operations, "edit"), number(int64(e.MaxRepeat)))
}

// resting says which backend went in circles where, and how long it rests.
func resting(f Facts) string {
	looped := f.Severity.Backend
	if a, ok := f.last(); ok && looped == "" {
		looped = a.Backend
	}
	return fmt.Sprintf("%s on %s: %s edit loop%s", name(label(looped)), name(repoName(f.Thread)), label(f.Severity.Class), cooldown(f))
}

// cooldown is what is left of the backend's cooldown, after a comma.
func cooldown(f Facts) string {
	until := f.Severity.CooldownUntil
	switch {
	case until.IsZero():
		return ""
	case until.After(f.Now):
		return ", " + Left(f.Now, until)
	}
	return ", its cooldown ended at " + Instant(f.Now, until)
}

// editChart draws how much of an attempt's work went into one file.
func editChart(a Attempt) string {
	e := a.Edits
	if e.Operations <= 0 {
		return ""
	}
	share := clamp(float64(e.MaxRepeat) / float64(e.Operations))
	width := len(number(int64(e.Operations)))
	rows := fmt.Sprintf("all edits    %s %s in %s\none file     %s %*s, %.0f %%", bar(1), number(int64(e.Operations)), plural(e.Files, "file"),
		bar(share), width, number(int64(e.MaxRepeat)), share*100)
	if e.MaxRepeatPath != "" {
		rows += ": " + line(e.MaxRepeatPath, 120)
	}
	return fence(rows, 1_000)
}

func severityOutlook(f Facts) []string {
	s := f.Severity
	if s.Class == "none" {
		return nil
	}
	var lines []string
	if s.CooldownUntil.After(f.Now) {
		lines = append(lines, fmt.Sprintf("**Next:** this backend rests here for %s, until %s; another backend may go on meanwhile.",
			Span(s.Cooldown), Instant(f.Now, s.CooldownUntil)),
			"**You can:** look at the attempt's work; `/pawl resume` ends the cooldown early, `/pawl use BACKEND` takes another backend.")
	} else {
		lines = append(lines, "**Next:** this backend may be used again.")
	}
	return append(lines, fmt.Sprintf("The attempt is graded %.2f of 1.", clamp(s.Grade)))
}
