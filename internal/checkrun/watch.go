package checkrun

import (
	"fmt"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

// Watch is a watched pull request. The zero value watches nothing.
type Watch struct {
	Rounds, Round int    // the limit of rounds, and the rounds so far or the running one; without Rounds nothing is watched
	Ready         bool   // the head is green and free of conflicts
	Lacks         string // what keeps the head from being ready; empty if unknown
	Again         bool   // Pawl looks at the head again even if no event comes
	Passed        bool   // every check that Pawl reads passes, and only GitHub counts the head as not passed
	By            string // the login of the user who asked for the watch
	Ended         string // why the last watch ended; empty while it lasts
	Alone         bool   // no user asked for work on this thread except by a watch
}

// unwatched reports whether the end of a watch is the state to show: nothing else was asked for, and nothing runs.
func (f View) unwatched() bool {
	if f.Watch.Ended == "" || f.attempting() {
		return false
	}
	return f.Watch.Alone || f.Rule == policy.RuleUnwatched
}

// watches reports whether the watch is the state to show: nothing else runs, waits or stopped.
func (f View) watches() bool {
	if f.Watch.Rounds == 0 {
		return false
	}
	switch f.State {
	case Running:
		return !f.attempting() || f.Round > 0
	case Waiting:
		return f.Rule == policy.RuleWatch || f.Rule == policy.RuleGather
	case Stopped:
		return f.Watch.Ready || f.Watch.Passed
	case Failed, ConfigError:
		return f.Watch.Ready
	default:
		return true
	}
}

// stopsWatch reports whether a watch stopped for a reason that is shown on the head commit.
func (f View) stopsWatch() bool { return f.Watch.Rounds > 0 || f.Rule == policy.RuleNotGreen }

// attempting reports whether an attempt runs.
func (f View) attempting() bool {
	run := f.run()
	return len(run) > 0 && !run[len(run)-1].ended()
}

// title returns the title of a watched pull request.
func (w Watch) title() string {
	if w.Ready {
		return title("Ready", "green after "+policy.Plural(w.Round, "round"))
	}
	round := fmt.Sprintf("round %d of %d", w.Round, w.Rounds)
	if w.Lacks == "" {
		return title("Watching", round)
	}
	return title("Watching", render.Subject(round+": "+w.Lacks, maxTitle).String())
}

// show sets a check run's title and state. Only an attempt is in progress: GitHub counts a head with any unfinished
// check run, even Pawl's, as not passed. A ready commit that Pawl verified keeps that conclusion.
func (w Watch) show(c *forge.CheckRun, f View) {
	c.Title, c.Status, c.Conclusion = w.title(), Completed, Neutral
	a, verified := f.finished()
	switch {
	case f.attempting():
		c.Status, c.Conclusion = InProgress, ""
	case w.Ready && verified:
		c.Conclusion = conclusion(a)
	case w.Ready:
		c.Conclusion = Success
	}
}

// next says what a watch does next.
func (w Watch) next() string {
	if w.Ready {
		return "merge it, or comment what to change. Pawl does not merge."
	}
	const ends = " `/pawl unwatch` ends the watch."
	lacks := render.When(w.Lacks != "", "Not ready: "+render.Prose(w.Lacks)+". ")
	if w.Again {
		return lacks + "Pawl looks again within an hour, for a day; then after `/pawl watch`." + ends
	}
	return lacks + "Pawl looks again after the next result of a check, or after `/pawl watch`." + ends
}

// ReadyMention returns the comment that tells the user who asked for a watch, once, that the pull request is ready.
func ReadyMention(login, head, base string, rounds int) string {
	return fmt.Sprintf("@%s: the pull request is green after %s. The required checks of %.10s pass, and nothing conflicts with %s. Pawl does not merge.\n",
		render.Label(login), policy.Plural(rounds, "round"), head, render.Code(render.Label(base)))
}
