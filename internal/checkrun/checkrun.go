package checkrun

import "strings"

// The names of the three check runs.
const (
	NameRun        = "pawl"
	NameSeverity   = "pawl/severity"
	NameStagnation = "pawl/stagnation"
)

// The statuses of a check run at GitHub.
const (
	Queued     = "queued"
	InProgress = "in_progress"
	Completed  = "completed"
)

// The conclusions that Pawl uses. Neutral counts as a success where a check is
// required; failure and action_required block.
const (
	Success        = "success"
	Neutral        = "neutral"
	Failure        = "failure"
	ActionRequired = "action_required"
)

// Check is one check run as GitHub takes it.
type Check struct {
	Name string
	// ExternalID finds the check run of a name and thread again.
	ExternalID string
	Status     string
	// Conclusion is empty unless Status is Completed.
	Conclusion     string
	Title, Summary string
	Actions        []Action
	Annotations    []Annotation
}

// Action is a button. GitHub allows 20 characters in Label and Identifier, 40 in
// Description, and three buttons.
type Action struct{ Label, Description, Identifier string }

// Annotation marks a line of a file. GitHub takes 50 a request.
type Annotation struct {
	Path               string
	StartLine, EndLine int
	Level              string
	Title, Message     string
}

// Checks renders the three check runs: the run, the severity of its edits and
// its stagnation.
func Checks(f Facts) []Check {
	return []Check{run(f), severity(f), stagnation(f)}
}

// ExternalID is the identifier of a thread's check run of that name.
func ExternalID(thread, name string) string { return name + ":" + threadName(thread) }

// check starts a check run.
func check(f Facts, name string) Check {
	return Check{Name: name, ExternalID: ExternalID(f.Thread, name)}
}

// pending is a verdict that cannot be given because no attempt has ended. It
// stays open while the run goes on; when the run is over it becomes neutral,
// so that it neither blocks a merge nor claims what nobody looked at.
func (c Check) pending(f Facts, what string) Check {
	p := newPage(f.Now)
	switch f.State {
	case Running:
		c.Status, c.Title = InProgress, "Not known yet: no attempt has ended"
		p.sentence(what + " is judged when an attempt ends.")
	case Waiting:
		c.Status, c.Title = Queued, "Not known yet: no attempt has ended"
		p.sentence(what + " is judged when an attempt ends.")
	default:
		c.Status, c.Conclusion, c.Title = Completed, Neutral, "Not judged: no attempt has ended"
		p.sentence(what + " was not judged, because no attempt has ended.")
	}
	p.sentence("The check run " + code(NameRun) + " says what happens now.")
	c.Summary = p.fit()
	return c
}

// buttons are the actions that fit the state, at most three.
func buttons(f Facts) []Action {
	retry := Action{"Retry", "Start one more attempt", "retry"}
	resume := Action{"Resume", "Go on now, do not wait", "resume"}
	escalate := Action{"Escalate", "Start one attempt with more effort", "escalate"}
	stop := Action{"Stop", "End the run", "stop"}
	switch f.State {
	case Running:
		return []Action{stop}
	case Waiting:
		return []Action{resume, stop}
	case Done:
		return []Action{retry}
	case Failed, ConfigError:
		return []Action{retry}
	}
	switch f.Rule {
	case "closed", "paused", "restart_limit", "daily_cap":
		return nil // none of them helps; the hint says what does
	case "cancelled", "usage_limit", "usage_limit_breaker", "auth_breaker", "no_backend", "cooldown":
		return []Action{resume}
	case "auth", "misconfigured", "interrupted":
		return []Action{retry}
	}
	return []Action{retry, escalate}
}

// maxTitle is the length of a title that the checks page shows on one line.
const maxTitle = 120

// title joins the parts of a title that are not empty.
func title(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return short(strings.Join(kept, ": "), maxTitle)
}
