package checkrun

import (
	"fmt"
	"strings"
)

// Sizes of quoted texts in bytes. Together with the table they stay well under
// maxBytes for usual runs; what does not fit is left out from the end.
const (
	maxRequest = 6_000
	maxOutput  = 12_000
	maxMessage = 4_000
	maxLimit   = 1_000
)

// quoted is how many of the newest attempts are shown with their texts.
const quoted = 3

// addDetails adds the folded sections, the most wanted first.
func addDetails(p *page, f Facts) {
	if len(f.Reasons) > 5 {
		p.fold("All reasons", "- "+strings.Join(p.reasons(f.Reasons, 30), "\n- "))
	}
	if f.Request != "" || f.Title != "" {
		p.fold("What was asked", asked(f))
	}
	run := f.run()
	p.fold("Recoveries", rungs(run))
	for i := len(run) - 1; i >= max(0, len(run)-quoted); i-- {
		addAttempt(p, run[i])
	}
	if f.Limit != nil {
		body := limit(f) + "."
		if f.Limit.Message != "" {
			body += "\n\n" + fence(f.Limit.Message, maxLimit)
		}
		p.fold("Usage limit", body)
	}
	p.fold("Edit loop and stagnation", verdictLines(f))
}

func asked(f Facts) string {
	var parts []string
	if f.RequestedBy != "" {
		parts = append(parts, "Asked for by "+code(f.RequestedBy)+".")
	}
	if f.Title != "" {
		parts = append(parts, "Title: "+code(f.Title))
	}
	if f.Request != "" {
		parts = append(parts, fence(f.Request, maxRequest))
	}
	return strings.Join(parts, "\n\n")
}

// addAttempt adds what one attempt said and what the verifier said to it.
func addAttempt(p *page, a Attempt) {
	if v := a.Verify; v != nil {
		how := "passed"
		if !v.Passed {
			how = "failed with exit code " + number(int64(v.ExitCode))
		}
		body := code(v.Command) + " " + how + "."
		if strings.TrimSpace(v.Output) != "" {
			body += "\n\n" + fence(v.Output, maxOutput)
		}
		p.fold(fmt.Sprintf("Attempt %d: verify %s", a.N, how), body)
	}
	var parts []string
	if a.Detail != "" {
		parts = append(parts, "How it failed: "+code(a.Detail))
	}
	for _, told := range []struct{ what, text string }{{"Backend", a.Chosen}, {"Session", a.Session}, {"Learned from it", a.Grade}} {
		if told.text != "" {
			parts = append(parts, told.what+": "+code(told.text))
		}
	}
	if used := used(a); used != "" {
		parts = append(parts, "Used: "+used+".")
	}
	if len(a.Failing) > 0 {
		parts = append(parts, "Failing tests: "+paths(a.Failing)+".")
	}
	if len(a.Known) > 0 {
		parts = append(parts, "Failed already before Pawl began, and not counted: "+paths(a.Known)+".")
	}
	if len(a.LeftOut) > 0 {
		parts = append(parts, "Left out of the commit: "+paths(a.LeftOut)+".")
	}
	if a.FinalMessage != "" {
		parts = append(parts, "The agent's last message, as it wrote it:", fence(a.FinalMessage, maxMessage))
	}
	what := "what the agent said"
	if a.FinalMessage == "" {
		what = "how it ended"
	}
	p.fold(fmt.Sprintf("Attempt %d: %s", a.N, what), strings.Join(parts, "\n\n"))
}

// paths lists at most ten paths.
func paths(all []string) string {
	var out []string
	for i, p := range all {
		if i == 10 {
			return strings.Join(out, ", ") + " and " + plural(len(all)-10, "more path")
		}
		out = append(out, code(p))
	}
	return strings.Join(out, ", ")
}

// limit is one line on the last usage limit.
func limit(f Facts) string {
	s := "account " + code(label(f.Limit.Account)) + ": "
	if f.Limit.Consecutive > 1 {
		s += plural(f.Limit.Consecutive, "usage limit") + " in a row, "
	} else {
		s += "usage limit, "
	}
	if f.Limit.ResetsAt.IsZero() {
		return s + "nobody said when it resets"
	}
	if f.Limit.ResetsAt.After(f.Now) {
		return s + Left(f.Now, f.Limit.ResetsAt)
	}
	return s + "was reset at " + Instant(f.Now, f.Limit.ResetsAt)
}

// verdictLines are the titles of the two verdicts.
func verdictLines(f Facts) string {
	return "- `pawl/severity`: " + prose(severity(f).Title, f.Now) + "\n- `pawl/stagnation`: " + prose(stagnation(f).Title, f.Now)
}
