package checkrun

import (
	"fmt"
	"strings"
)

// tableRows is how many attempts the check run shows; a run has at most 51.
const tableRows = 12

// run renders the check run of the run itself.
func run(f Facts) Check {
	c := check(f, NameRun)
	c.Status, c.Conclusion = runStatus(f.State)
	c.Title = headline(f)
	c.Actions = buttons(f)
	if f.State == ConfigError {
		c.Annotations = annotations(f.Problems)
	}
	p := newPage(f.Now)
	p.sentence(verdict(f))
	p.list(evidence(f)...)
	p.list(outlook(f)...)
	p.sentence(table(f, tableRows))
	addDetails(p, f)
	c.Summary = p.fit()
	return c
}

// runStatus maps a state to what GitHub shows. A configuration error asks a
// person to act, as a stop does; failure is kept for Pawl's own failures, so
// that an operator can look for those alone.
func runStatus(s State) (status, conclusion string) {
	switch s {
	case Running, Waiting:
		return InProgress, ""
	case Done:
		return Completed, Success
	case Failed:
		return Completed, Failure
	}
	return Completed, ActionRequired
}

// headline says where the thread stands, as plain text on one line.
func headline(f Facts) string {
	run := f.run()
	switch f.State {
	case Running:
		if a, ok := f.current(); ok {
			return title(fmt.Sprintf("Attempt %d is running on %s", a.N, label(a.Backend)))
		}
		return "Running: between two attempts"
	case Waiting:
		if f.Until.IsZero() {
			return title("Waiting", waitsFor(f.Rule))
		}
		return title("Waiting", waitsFor(f.Rule)+", "+Left(f.Now, f.Until))
	case Done:
		if len(run) == 0 {
			return "Done: nothing is left to do"
		}
		return title("Done after "+plural(len(run), "attempt"), verified(f))
	case Failed:
		return "Pawl itself failed"
	case ConfigError:
		return "Configuration: " + plural(len(f.Problems), "problem") + ", nothing runs"
	}
	return title("Stopped", stopReason(f)+reset(f))
}

// verdict is the first sentence of a summary.
func verdict(f Facts) string {
	s := prose(headline(f), f.Now) + "."
	if f.RequestedBy != "" && !f.over() {
		s += " Asked for by " + code(f.RequestedBy) + "."
	}
	if f.State == Failed {
		s = "Pawl could not do its own job; this says nothing about the change or the agent."
	}
	return s
}

// verified says what stands behind a run that is done.
func verified(f Facts) string {
	a, ok := f.last()
	switch {
	case !ok:
		return ""
	case a.Verify == nil:
		return "unverified, no verify commands"
	case a.Verify.Passed:
		return "verified"
	}
	return "not verified"
}

// waitsFor names a wait by the rule that asked for it.
func waitsFor(rule string) string {
	switch rule {
	case "usage_limit":
		return "usage limit"
	case "cooldown", "edit_loop":
		return "cooldown after an edit loop"
	case "backoff":
		return "pause between restarts"
	case "gather":
		return "more of the same feedback"
	}
	return "nothing to do now"
}

// stopReason names a stop by the rule that asked for it.
func stopReason(f Facts) string {
	switch f.Rule {
	case "paused":
		return "work is paused here"
	case "closed":
		return "the thread cannot be worked on any more"
	case "cancelled":
		return "somebody asked for it"
	case "restart_limit":
		return "the run reached its restart limit"
	case "daily_cap":
		return "the thread reached its daily cap of attempts"
	case "auth", "auth_breaker":
		return "the agent's login was rejected"
	case "misconfigured":
		return "the agent is misconfigured"
	case "usage_limit":
		return "usage limit"
	case "usage_limit_breaker":
		if f.Limit != nil && f.Limit.Consecutive > 1 {
			return fmt.Sprintf("%d usage limits in a row", f.Limit.Consecutive)
		}
		return "too many usage limits in a row"
	case "stagnation":
		return "the attempts come to the same point again"
	case "no_change":
		return "the agent changed nothing"
	case "no_progress":
		return "the attempt failed and changed nothing"
	case "verify_failed":
		return "verification keeps failing"
	case "budget":
		return "the budget is used up"
	case "interrupted":
		return "attempts were interrupted again and again"
	case "no_backend":
		return "no backend may run"
	case "cooldown", "edit_loop":
		return "edit loop"
	}
	return strings.ReplaceAll(label(f.Rule), "_", " ")
}

// reset says when the limit that stopped a run ends, after a comma.
func reset(f Facts) string {
	if f.Limit == nil || f.Limit.ResetsAt.IsZero() || f.Rule != "usage_limit" && f.Rule != "usage_limit_breaker" {
		return ""
	}
	if !f.Limit.ResetsAt.After(f.Now) {
		return ", reset at " + Instant(f.Now, f.Limit.ResetsAt)
	}
	return ", " + Left(f.Now, f.Limit.ResetsAt)
}

// evidence are the reasons and numbers of the first screen.
func evidence(f Facts) []string {
	p := newPage(f.Now)
	if f.State == ConfigError {
		return problems(p, f.Problems)
	}
	var lines []string
	if f.State == Waiting && f.Rule == "cooldown" && f.Severity.CooldownUntil.After(f.Now) {
		lines = append(lines, resting(f))
	}
	lines = append(lines, p.reasons(f.Reasons, 5)...)
	if f.Limit != nil && f.Limit.Account != "" && !strings.Contains(f.Rule, "limit") {
		lines = append(lines, limit(f))
	}
	lines = append(lines, totals(f))
	if a, ok := f.last(); ok && a.Commit != "" {
		pushed := "pushed " + code(head(line(a.Commit, 40), 10))
		if f.Branch != "" {
			pushed += " to " + code(f.Branch)
		}
		lines = append(lines, pushed)
	}
	return append(lines, strings.Join(links(f), " · "))
}

// links are those of the thread that are known.
func links(f Facts) []string {
	var out []string
	for _, l := range []string{link("issue", f.IssueURL), link("pull request", f.PullURL), link("everything Pawl knows of this thread", f.DetailsURL)} {
		if l != "" {
			out = append(out, l)
		}
	}
	return out
}
