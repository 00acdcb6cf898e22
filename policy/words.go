package policy

// Ending says how an agent CLI ended, read from its stream and session file.
// The empty ending means that the attempt has not ended.
type Ending string

// The endings. Only Completed is a success; every other one is a failure of
// the attempt, never a Go error.
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

// Outcome says what an attempt came to, with outside evidence: an ending other
// than completed, or one of the outcomes below.
type Outcome string

// The outcomes that are not endings.
const (
	Edited       Outcome = "edited"
	NoChange     Outcome = "no_change"
	VerifyFailed Outcome = "verify_failed"
	EditLoop     Outcome = "loop"
	Interrupted  Outcome = "interrupted"
	Cancelled    Outcome = "cancelled"
)

// Action is what a decision asks the solver to do.
type Action string

// The actions.
const (
	DoAttempt Action = "attempt"
	DoWait    Action = "wait"
	DoStop    Action = "stop"
	DoDone    Action = "done"
	DoAsk     Action = "ask"
)
