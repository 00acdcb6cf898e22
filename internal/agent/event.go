package agent

import "time"

// Kind says what an event tells.
type Kind int

// The kinds of events. The zero kind tells nothing.
const (
	// SessionStarted names the session in ID.
	SessionStarted Kind = iota + 1
	// TurnStarted opens one turn of the model.
	TurnStarted
	// Message is what the agent said, in Text and Wrote.
	Message
	// Thought is reasoning; only its mentions matter.
	Thought
	// ToolCall is a call that started (Done unset) or ended. Edits are the
	// files that it edited, Wrote its arguments.
	ToolCall
	// Notice is an error that is not final, in Text: a retry, a warning.
	Notice
	// StepEnded ends one step of a stream that has no final event. Ending is
	// what the run came to if this step was its last; empty means that the CLI
	// had more to do.
	StepEnded
	// Finished ends the run with success. Text, where it is set, is the answer.
	Finished
	// Failed ends the run with the error in Text; Ending is set where the
	// stream itself names the class. Without a text of its own it ended with
	// the last Notice.
	Failed
)

// Event is what one line of output tells.
type Event struct {
	Kind Kind
	ID   string
	Text string
	// Session is the session's id in streams that repeat it; Dir is the
	// checkout as the CLI names it when a session starts.
	Session, Dir string
	// Delta says that the text continues the message before it.
	Delta bool
	// Wrote is text that the agent itself wrote: a command, tool arguments, a
	// message. Ran says that it was executed and not merely said.
	Wrote string
	Ran   bool
	// Quotes says that the event quotes a limit text without being a limit.
	Quotes bool
	Edits  []Edit
	// Done and Rejected describe an ended call; a rejected one had no effect.
	// Failed is a rejected one, or a command that failed; Result stands for what
	// a failed one answered.
	Done, Rejected, Failed bool
	Result                 uint64
	Ending                 Ending
	ResetsAt               *time.Time
	// Tokens and Cost are those of the whole session so far, as the CLI counts
	// them, or with Step those of one step, to be added.
	Tokens *Tokens
	Cost   *float64
	Step   bool
	// Turns is the CLI's own count of turns; zero where it tells none.
	Turns int
}

// Tokens counts what a session used. Input includes the cached part, Output
// the reasoning.
type Tokens struct {
	Input       int64 `json:"input"`
	CachedInput int64 `json:"cached_input"`
	Output      int64 `json:"output"`
}

// Plus returns the sum of two counts.
func (t Tokens) Plus(more Tokens) Tokens {
	return Tokens{Input: t.Input + more.Input, CachedInput: t.CachedInput + more.CachedInput, Output: t.Output + more.Output}
}

// Minus returns what was used since an earlier count, never below zero.
func (t Tokens) Minus(before Tokens) Tokens {
	return Tokens{
		Input:       max(0, t.Input-before.Input),
		CachedInput: max(0, t.CachedInput-before.CachedInput),
		Output:      max(0, t.Output-before.Output),
	}
}
