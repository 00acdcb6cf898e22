package agent

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent/edit"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

type Kind int

const (
	// SessionStarted has the session in ID.
	SessionStarted Kind = iota + 1
	// TurnStarted begins a turn of the model.
	TurnStarted
	// Message has the agent's text in Text and Authored.
	Message
	// Thought is reasoning or a minor event. Only its tokens and mentions of limits count.
	Thought
	// ToolCall is the start of a call (Done unset) or its answer.
	ToolCall
	// Notice is a non-final error in Text: a retry, a warning.
	Notice
	// StepEnded ends a step of a stream without a final event. Ending is the run's ending if this is the last step;
	// empty means that another step must follow.
	StepEnded
	// Finished ends the run with success. Text, if set, is the answer; Wordless means an empty answer.
	Finished
	// Failed ends the run with the error in Text, or else in the last Notice. Ending is set if the stream names it.
	Failed
)

// Event is one event of a line of output.
type Event struct {
	Kind         Kind
	ID           string
	Text         string
	Session, Dir string // the session's id in streams that repeat it; the checkout as the CLI sees it
	// Delta means that the text continues the previous message.
	Delta bool
	// Authored is the agent's own text: a command, tool arguments, a message. Ran means that it was executed.
	Authored string
	Ran      bool
	Does     string // the call as users see it, formatted by the function Does
	// Quotes means that the event quotes a limit text.
	Quotes bool
	Edits  []policy.Edit
	// Place identifies a call's message and its position in that message; empty if unknown. Whole means that an ended
	// call's event also describes the call.
	Place string
	Whole bool
	// Within is the call whose subagent made this event; empty for the main agent.
	Within string
	// Began is when the call of a Whole event began; zero if unknown.
	Began time.Time
	// Done and Rejected describe an ended call; a rejected one had no effect. Failed includes failed commands. Result
	// hashes the answer; zero if unknown. Silent means an empty answer.
	Done, Rejected, Failed, Silent bool
	Result                         uint64
	Ending                         policy.Ending
	ResetsAt                       time.Time // zero if unknown
	// Status and Names are an error's HTTP status, types and codes.
	Status int
	Names  []string
	// Idle means that a final event reports zero turns.
	Idle bool
	// Task is a background task that began, or ended with TaskEnd.
	Task, TaskEnd string
	// Windows are usage windows that the CLI reports. Run sets SeenAt, which Parse leaves zero, and drops nonsense.
	Windows []policy.Window
	// Tokens and Cost are the session's total so far or, if Step, one step's.
	Tokens *policy.Tokens
	Cost   *float64
	Step   bool
	// Wordless means that Finished has an empty answer.
	Wordless bool
	Turns    int // the CLI's own count; zero if none
}

// Call is one ended call. A rejected call has no Edits.
type Call struct {
	Edits []policy.Edit
	// Key hashes the call with its arguments. Result hashes the answer; zero if unknown.
	Key, Result uint64
	Failed      bool
	Silent      bool          // no output
	Authored    string        // the call's text, truncated
	Pause       time.Duration // pause before the call, from the stream's timestamps; zero if unknown
	Open        int           // other open calls, except those that run a subagent
}

// Count counts the call's edits, or the call if it edited nothing.
func (d Call) Count(c *policy.Circles) {
	for _, e := range d.Edits {
		c.Edit(e)
	}
	if len(d.Edits) == 0 {
		c.Call(policy.Call{
			Key:    d.Key,
			Result: d.Result,
			Failed: d.Failed,
			Silent: d.Silent,
			Text:   d.Authored,
			Pause:  d.Pause,
		})
	}
}

// Answered sets a call's Failed, and sets Result and Silent from its JSON answer.
func (e *Event) Answered(failed bool, answer string) {
	e.Failed, e.Result, e.Silent = failed, edit.Result(answer), edit.Silent(answer)
}

// Exit is a process's exit code, and the signal that ended it; empty for none.
type Exit struct {
	Code     int
	Signal   string
	Exceeded string // an exceeded resource limit, for users
}

// Report is a run's result as its output shows it.
type Report struct {
	CLI     string        `json:"cli"`
	Ending  policy.Ending `json:"ending"`
	Reasons []string      `json:"reasons"`
	Limit   *policy.Limit `json:"limit"`
	// Edits are set by Inspect only. A running process's watcher counts them, since it also sees the files.
	Edits        policy.Edits  `json:"edits"`
	FinalMessage string        `json:"final_message"`     // the agent's last message; after success its answer
	Failure      string        `json:"failure,omitempty"` // final error
	Tokens       policy.Tokens `json:"tokens"`
	CostUSD      *float64      `json:"cost_usd"` // nil if unknown
	SessionID    string        `json:"session_id"`
	ToolCalls    int           `json:"tool_calls"` // answered calls
	Turns        int           `json:"turns"`      // by the CLI's own count: the model's answers (claude, opencode) or prompts (codex, gemini)
	// Mentions counts ignored quotations of limit texts.
	Mentions  int  `json:"mentions"`
	Exit      Exit `json:"-"` // zero if unknown (ExitKnown false)
	ExitKnown bool `json:"-"`
	// Killed means that Pawl ended the process.
	Killed bool `json:"-"`
	// Interrupted means that Run ended a working agent because of RunOptions.Interrupt. Its session may continue.
	Interrupted bool          `json:"-"`
	Mute        bool          `json:"-"` // the agent wrote nothing and called nothing
	Silent      time.Duration `json:"-"` // the silence that caused the kill
	Duration    time.Duration `json:"-"`
	Stderr      string        `json:"-"` // head and tail
	OutputBytes int64         `json:"-"` // size of standard output

	output string // plain streams: head and tail of the output
	final  bool   // the stream had its final event
	named  bool   // a field or a code determined the ending, not the wording
}

// Evidence returns the text for a fingerprint: a plain stream's output, the failure, else the final message.
func (r Report) Evidence() string { return cmp.Or(r.output, r.Failure, r.FinalMessage) }

// Printed returns the head and tail of a plain stream's output; empty for others.
func (r Report) Printed() string { return r.output }

// After returns the report of a run that continued an interrupted one: r's ending with the counts of both runs. If the
// continued run did not start, the result is the interrupted run's report.
func (r Report) After(before Report) Report {
	if r.Ending == "" {
		return before
	}
	r.SessionID = cmp.Or(r.SessionID, before.SessionID)
	r.Tokens = before.Tokens.Plus(r.Tokens)
	r.ToolCalls += before.ToolCalls
	r.Turns += before.Turns
	r.Mentions += before.Mentions
	r.Duration += before.Duration
	r.OutputBytes += before.OutputBytes
	switch {
	case r.CostUSD == nil:
		r.CostUSD = before.CostUSD
	case before.CostUSD != nil:
		both := *r.CostUSD + *before.CostUSD
		r.CostUSD = &both
	}
	return r
}

func (r *Report) because(reason string) { r.Reasons = append(r.Reasons, reason) }

func (r *Report) end(ending policy.Ending, reason string) {
	r.Ending = ending
	r.because(reason)
}

// setLimit sets the limit of a report whose ending is a limit, with its reset if known.
func (r *Report) setLimit(message string, resets time.Time, source string, now time.Time) {
	r.Limit = nil
	if !r.Ending.IsLimit() {
		return
	}
	r.Limit = &policy.Limit{Kind: r.Ending, Message: message, Source: policy.SourceNone, Certainty: policy.Likely}
	if r.named || source == policy.SourceStructured && !resets.IsZero() {
		r.Limit.Certainty = policy.Certain
	}
	if resets.IsZero() {
		return
	}
	at, corrected := limit.Bound(resets, now, limit.Soonest)
	if corrected != "" {
		r.because(corrected)
	}
	r.Limit.ResetsAt, r.Limit.Source = at, source
}

// Shorten truncates s to about n bytes on a rune boundary.
func Shorten(s string, n int) string {
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " …"
}

var byteOrderMark = []byte("\uFEFF")

// Line parses a line as a JSON object. If the line is truncated or broken, the intact beginning suffices to classify
// it. The result is valid UTF-8 and shares no memory with the line.
func Line(line []byte) gjson.Result {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, byteOrderMark))
	if len(line) == 0 || line[0] != '{' {
		return gjson.Result{}
	}
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	if line[len(line)-1] != '}' {
		text = closed(text)
	}
	return gjson.Parse(text)
}

// EmitFinal emits an event that may end the run. A truncated line ends nothing; only its error counts.
func EmitFinal(line gjson.Result, e Event, emit func(Event)) {
	final := e.Kind == Finished || e.Kind == Failed
	switch {
	case !final || gjson.Valid(line.Raw):
		emit(e)
	case e.Kind == Failed:
		emit(Event{Kind: Notice, Text: e.Text, Ending: e.Ending, Status: e.Status, Names: e.Names})
	}
}

// closed ends the string in which a line was truncated. gjson needs no closing braces or brackets.
func closed(line string) string {
	inside := false
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '"':
			inside = !inside
		case line[i] == '\\' && i+1 == len(line):
			line = line[:i] // half an escape
		case line[i] == '\\':
			i++
		}
	}
	if inside {
		line += `"`
	}
	return line
}

// Each calls visit with each element of a list. It does not collect them, since a list of zeros would take forty times
// its bytes.
func Each(list gjson.Result, visit func(gjson.Result)) {
	if list.IsArray() {
		list.ForEach(func(_, element gjson.Result) bool {
			visit(element)
			return true
		})
	}
}

// Count returns a number as a count; 0 if missing, broken or negative.
func Count(v gjson.Result) int64 {
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Tokens returns an object's counts by field names; the input includes the cached part. Nil for none.
func Tokens(usage gjson.Result, input, cached, output string) *policy.Tokens {
	return Reported(policy.Tokens{
		Input:       Count(usage.Get(input)),
		CachedInput: Count(usage.Get(cached)),
		Output:      Count(usage.Get(output)),
	})
}

// Reported returns nil for zero counts: providers without counts report zeros.
func Reported(t policy.Tokens) *policy.Tokens {
	if t == (policy.Tokens{}) {
		return nil
	}
	return &t
}

// Dollars returns a number as a cost; nil for none.
func Dollars(v gjson.Result) *float64 {
	if v.Type != gjson.Number || math.IsInf(v.Num, 0) || math.IsNaN(v.Num) {
		return nil
	}
	return &v.Num
}

// maxArgument limits a displayed argument, in characters (our choice: most fit a terminal's line).
const maxArgument = 120

// Does formats a call for users: a command line after a dollar sign, else the tool with its text and number
// arguments. input is the object of arguments, or the only argument. CLIs name a command line's argument "command".
func Does(tool string, input gjson.Result) string {
	words := []string{tool}
	add := func(_, argument gjson.Result) bool {
		if argument.Type != gjson.JSON {
			words = append(words, render.Line(argument.String(), maxArgument))
		}
		return true
	}
	command := input.Get("command")
	switch {
	case command.Type == gjson.String:
		return "$ " + command.Str
	case command.IsArray():
		words[0] = "$"
		command.ForEach(add)
	case input.IsObject():
		input.ForEach(add)
	default:
		add(input, input)
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// EditTools holds a CLI's names for its editing tools and their arguments.
type EditTools struct {
	Write, Replace, Several []string
	Path, Before, After     string
}

// Edits returns a call's edits; nil for none.
func (n EditTools) Edits(tool string, input gjson.Result) []policy.Edit {
	path := input.Get(n.Path).Str
	if path == "" {
		return nil
	}
	replaced := func(part gjson.Result) policy.Edit {
		return edit.Replaced(path, part.Get(n.Before).Str, part.Get(n.After).Str)
	}
	switch {
	case slices.Contains(n.Write, tool):
		return []policy.Edit{edit.Written(path, input.Get("content").Str)}
	case slices.Contains(n.Replace, tool):
		return []policy.Edit{replaced(input)}
	case slices.Contains(n.Several, tool):
		var parts []policy.Edit
		Each(input.Get("edits"), func(part gjson.Result) {
			if len(parts) < edit.Max {
				parts = append(parts, replaced(part))
			}
		})
		return []policy.Edit{edit.Joined(path, parts)}
	}
	return nil
}
