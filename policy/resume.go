package policy

import (
	"fmt"
	"slices"
)

// maxResumed is the context, in tokens, up to which continuing a session is
// taken to be cheaper than a new one. A continued session sends its whole
// context with every request, mostly from the provider's cache at about a tenth
// of the price; a new one reads the same files again. In the recorded runs that
// is less than half of the context, so a session that fills more than half of
// the smallest window in use (200,000 tokens) is left behind.
const maxResumed = 100_000

// Resume decides whether an attempt continues the agent's session of the last
// attempt, and says why. The session is empty where it starts afresh. The
// caller knows whether the workspace is as that session left it: start is the
// commit that the new attempt begins from.
func Resume(f Facts, d Decision, start string) (session, reason string) {
	a, ok := f.last()
	switch {
	case !f.Limits.ResumeSessions || !ok || a.Session == "":
		return "", ""
	case a.Backend != d.Backend:
		return "", "a new session: another backend"
	case d.Different || d.Escalated || d.Rung == RungAnswer:
		return "", "a new session: the attempt is to differ from the one before"
	case a.Outcome == EditLoop || Stagnation(f.run(), f.Limits).Similar > 0:
		return "", "a new session: the last one went in circles"
	case !slices.Contains(resumable(), a.Ending):
		return "", fmt.Sprintf("a new session: the last one ended %s", a.Ending)
	case a.Commit != start && (a.Commit != "" || a.Start != start):
		return "", "a new session: the files are not as the last one left them"
	case a.Context > maxResumed:
		return "", fmt.Sprintf("a new session: the last one fills %d tokens", a.Context)
	}
	return a.Session, fmt.Sprintf("it continues the session of attempt %d", a.N)
}

// resumable are the endings after which a session is worth continuing: it came
// to its end, or what stopped it has nothing to do with it.
func resumable() []Ending {
	return []Ending{Completed, CutOff, UsageLimit, RateLimited, Overloaded, Disconnected}
}
