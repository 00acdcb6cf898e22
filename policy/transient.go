package policy

import (
	"fmt"
	"slices"
	"time"
)

// Transient says how refusals that pass are waited out: the provider's short limits and
// overloads, and lost connections.
type Transient struct {
	// MaxConsecutive attempts in a row that end so stop the run. With the waits between them 5 last seven and a half
	// minutes, longer than most of what providers call incidents of minutes; it is our choice.
	MaxConsecutive int `yaml:"max_consecutive"`
	// BackoffStart is the first wait, doubled for each one after it. A later reset that the provider tells is waited for.
	BackoffStart time.Duration `yaml:"backoff_start"`
	BackoffCap   time.Duration `yaml:"backoff_cap"`
}

// Passes reports whether an ending is a refusal that passes, which is no failure of the
// agent.
func (e Ending) Passes() bool {
	return slices.Contains([]Ending{RateLimited, Overloaded, Disconnected}, e)
}

// refused reports whether an attempt was ended by a refusal that passes.
func (a Attempt) refused() bool {
	return a.Ending.Passes() && a.Outcome != EditLoop && a.Outcome != Interrupted && a.Outcome != Cancelled
}

// transient is the second half of rule 5: after a refusal that passes an account that has
// not refused in this row goes on, or the run waits.
func transient(f Facts) (Decision, bool) {
	a, ok := f.last()
	if !ok || !a.refused() || f.insists() {
		return silent()
	}
	n := atTheEnd(f.Attempts, Attempt.refused)
	why := fmt.Sprintf("attempt %d ended %s, which is no failure of the agent%s", a.N, a.Ending, detail(a))
	if n >= f.Limits.Transient.MaxConsecutive {
		return stop(RuleTransient, "Comment /pawl resume to try again.", why, fmt.Sprintf("%s in a row ended so, which is the limit", Plural(n, "attempt")))
	}
	if b, ok := f.other(f.Attempts[len(f.Attempts)-n:]...); ok { // none that refused in this row
		d, ok := again(RuleTransient, why+"; "+b.Name+" is next")
		d = repeated(d, a)
		d.Backend = b.Name
		return d, ok
	}
	until := a.EndedAt.Add(Retry(n, f.Limits.Transient.BackoffStart, f.Limits.Transient.BackoffCap, 1))
	if reset := a.reset(); reset.After(until) {
		until = reset
	}
	if f.Now.Before(until) {
		return Decision{Action: DoWait, Rule: RuleTransient, Until: until, Reasons: Because(RuleTransient, why), Hint: "Comment /pawl resume to try before that."}, true
	}
	d, ok := again(RuleTransient, why)
	return repeated(d, a), ok
}

// stands reports whether the attempt's work is kept. What was neither pushed nor ended by itself is lost.
func (a Attempt) stands() bool {
	return a.Pushed || a.Progress() && a.Ending != Killed && a.Outcome != Interrupted && a.Outcome != Cancelled
}

// Standing is the newest attempt whose work stands, as far as nobody has asked for
// anything new since: to be told to go on is nothing new.
func (f Facts) Standing() (Attempt, bool) {
	for _, a := range slices.Backward(f.Attempts) {
		if a.stands() {
			return a, true
		}
		if a.NewInput && !a.GoesOn {
			break
		}
	}
	return Attempt{}, false
}
