package agent

// Ending says how an agent CLI ended. The empty ending means that nothing was
// decided yet.
type Ending string

// The endings, in the words of the project's glossary.
const (
	Completed       Ending = "completed"
	NoAnswer        Ending = "no_answer"
	CutOff          Ending = "cut_off"
	UsageLimit      Ending = "usage_limit"
	RateLimited     Ending = "rate_limited"
	Overloaded      Ending = "overloaded"
	Disconnected    Ending = "disconnected"
	Auth            Ending = "auth"
	Misconfigured   Ending = "misconfigured"
	ContextOverflow Ending = "context_overflow"
	TurnLimit       Ending = "turn_limit"
	SelfLoop        Ending = "loop" // the CLI stopped itself
	TimedOut        Ending = "timed_out"
	Killed          Ending = "killed"
	Crashed         Ending = "crashed"
)

// isLimit reports whether an ending is one of those that a report describes
// with a Limit: the provider refused, and waiting or a person may help.
func (e Ending) isLimit() bool {
	switch e {
	case UsageLimit, RateLimited, Overloaded, Auth:
		return true
	}
	return false
}
