package agent

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Exit is how a process ended: its exit code, and the name of the signal that
// ended it, empty where none did.
type Exit struct {
	Code   int
	Signal string
}

// The sources of a reset time.
const (
	SourceStructured = "structured" // a field of the stream or the session file
	SourceText       = "text"       // read from the message; whole minutes
	SourceNone       = "none"       // unknown
)

// Limit says what the provider refused.
type Limit struct {
	// Kind is usage_limit, rate_limited, overloaded or auth.
	Kind    Ending `json:"kind"`
	Message string `json:"message"`
	// ResetsAt is nil where the time is unknown. It lies between one minute and
	// eight days after the moment of reading.
	ResetsAt *time.Time `json:"resets_at"`
	// Source says where ResetsAt comes from: structured, text or none. A text
	// names whole minutes, so the true reset may be up to a minute later.
	Source string `json:"source"`
}

// Edits counts what the agent changed through its editing tools. Changes made
// by shell commands are not in it; the tree tells of those. Operations counts
// all; Files and MaxRepeat look at the first 20,000 paths only.
type Edits struct {
	Operations    int    `json:"operations"`
	Files         int    `json:"files"`
	MaxRepeat     int    `json:"max_repeat"`
	MaxRepeatPath string `json:"max_repeat_path"`
}

// Report is what a run came to, as far as its output tells.
type Report struct {
	CLI     string   `json:"cli"`
	Ending  Ending   `json:"ending"`
	Reasons []string `json:"reasons"`
	Limit   *Limit   `json:"limit"`
	Edits   Edits    `json:"edits"`
	// FinalMessage is the agent's last message, Failure the final error.
	FinalMessage string `json:"final_message"`
	Failure      string `json:"failure,omitempty"`
	Tokens       Tokens `json:"tokens"`
	// CostUSD is nil where the CLI tells no cost.
	CostUSD   *float64 `json:"cost_usd"`
	SessionID string   `json:"session_id"`
	ToolCalls int      `json:"tool_calls"`
	// Turns are counted as the CLI does: answers of the model for claude and
	// opencode, prompts for codex and gemini.
	Turns int `json:"turns"`
	// Mentions counts the items that quoted a limit text and were ignored.
	Mentions int `json:"mentions"`
	// Exit is how the process ended; ExitKnown is false for a transcript
	// without an exit code.
	Exit      Exit `json:"-"`
	ExitKnown bool `json:"-"`
	// Killed says that Pawl ended the process.
	Killed   bool          `json:"-"`
	Duration time.Duration `json:"-"`
	// Stderr is the head and tail of standard error, OutputBytes the size of standard output.
	Stderr      string `json:"-"`
	OutputBytes int64  `json:"-"`

	output string // plain streams: the output, head and tail where it is long
	final  bool   // the stream had its final event
}

// Evidence is the text that a fingerprint is taken of: the failure, else the
// final message; for plain streams the output.
func (r Report) Evidence() string {
	switch {
	case r.output != "":
		return r.output
	case r.Failure != "":
		return r.Failure
	}
	return r.FinalMessage
}

func (r *Report) because(reason string) { r.Reasons = append(r.Reasons, reason) }

// Bounds of a reset time, from the moment it is read. Nothing is gained by
// asking sooner, and no plan has a window of more than a week; a later time is
// a misreading or a monthly cap that a person may lift.
const (
	minReset = time.Minute
	maxReset = 8 * 24 * time.Hour
)

// setLimit describes the limit of a report whose ending is one, and the time of
// its reset where one is known.
func (r *Report) setLimit(message string, resets *time.Time, source string, now time.Time) {
	r.Limit = nil
	if !r.Ending.isLimit() {
		return
	}
	r.Limit = &Limit{Kind: r.Ending, Message: message, Source: SourceNone}
	if resets == nil {
		return
	}
	at := resets.UTC()
	switch {
	case at.Before(now.Add(minReset)):
		r.because("the reset time " + at.Format(time.RFC3339) + " is past or too near; the earliest used is one minute from now")
		at = now.Add(minReset).UTC()
	case at.After(now.Add(maxReset)):
		r.because("the reset time " + at.Format(time.RFC3339) + " is more than eight days away; eight days are used")
		at = now.Add(maxReset).UTC()
	}
	r.Limit.ResetsAt, r.Limit.Source = &at, source
}

// shorten cuts s to about n bytes for a reason or a report, on a rune boundary.
func shorten(s string, n int) string {
	if !utf8.ValidString(s) { // which is asked more quickly than made so
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " …"
}
