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
	// ToolCall is a call that began (Done unset) or was answered, with the files that it edited and its arguments.
	ToolCall
	// Notice is an error that is not final, in Text: a retry, a warning.
	Notice
	// StepEnded ends one step of a stream without final event. Ending is the run's if this step was its last;
	// empty: there is more.
	StepEnded
	// Finished ends the run with success. Text, where it is set, is the answer; Wordless says that the answer is empty.
	Finished
	// Failed ends the run with the error in Text, else that of the last Notice; Ending is set where the stream
	// names it.
	Failed
)

// Event is what one line of output tells.
type Event struct {
	Kind         Kind
	ID           string
	Text         string
	Session, Dir string // the session's id in streams that repeat it; Dir the checkout as the CLI names it
	// Delta says that the text continues the message before it.
	Delta bool
	// Authored is text that the agent itself wrote: a command, tool arguments, a
	// message. Ran says that it was executed and not merely said.
	Authored string
	Ran      bool
	Does     string // what a call does, for people, as the function Does writes it
	// Quotes says that the event quotes a limit text without being a limit.
	Quotes bool
	Edits  []policy.Edit
	// Place names the message that a call stands in and its place there, empty where the stream does not tell them.
	// Whole says of an ended call that the event tells the call, too, and not only its answer.
	Place string
	Whole bool
	// Began is when a call began that a whole event tells; zero where it does not say.
	Began time.Time
	// Done and Rejected describe an ended call; a rejected one had no effect. Failed is a rejected one, or a
	// command that failed; Result stands for its answer, zero where that is not told.
	// Silent says that the answer is empty.
	Done, Rejected, Failed, Silent bool
	Result                         uint64
	Ending                         policy.Ending
	ResetsAt                       time.Time // zero where it is not told
	// Status and Names are what the fields of an error say of it: the HTTP status, its types and codes.
	Status int
	Names  []string
	// Idle says that a final event tells of no turn at all.
	Idle bool
	// Task is work in the background that began, or ended as TaskEnd says.
	Task, TaskEnd string
	// Tokens and Cost are the whole session's so far, or with Step those of one step.
	Tokens *policy.Tokens
	Cost   *float64
	Step   bool
	// Wordless says of Finished that the CLI tells an empty answer.
	Wordless bool
	Turns    int // the CLI's own count of turns; zero where it tells none
}

// Call is one call that ended, for circles. One that was refused or failed edits nothing.
type Call struct {
	Edits []policy.Edit
	// Key stands for the call with its arguments, Result for its answer, zero where unknown.
	Key, Result uint64
	Failed      bool
	Silent      bool          // it answered nothing
	Authored    string        // what the agent wrote to make the call, the head of it where it is long
	Pause       time.Duration // before the call, by the times of the stream; zero where it tells none
}

// Count tells a detector of circles of the call: its edits, or that it edited nothing.
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

// Answered says whether a call failed and what it answered, as it stands in the JSON.
func (e *Event) Answered(failed bool, answer string) {
	e.Failed, e.Result, e.Silent = failed, edit.Result(answer), edit.Silent(answer)
}

// Exit is how a process ended: its exit code, and the name of the signal that ended it, empty where none did.
type Exit struct {
	Code     int
	Signal   string
	Exceeded string // which limit it met, for people
}

// Report is what a run came to, as far as its output tells.
type Report struct {
	CLI     string        `json:"cli"`
	Ending  policy.Ending `json:"ending"`
	Reasons []string      `json:"reasons"`
	Limit   *policy.Limit `json:"limit"`
	// Edits are counted by Inspect. Of a process that runs they are zero: who watches it sees the files, too.
	Edits        policy.Edits  `json:"edits"`
	FinalMessage string        `json:"final_message"`     // the agent's last message; of a finished run its answer
	Failure      string        `json:"failure,omitempty"` // the final error
	Tokens       policy.Tokens `json:"tokens"`
	CostUSD      *float64      `json:"cost_usd"` // nil where the CLI tells no cost
	SessionID    string        `json:"session_id"`
	ToolCalls    int           `json:"tool_calls"` // those that were answered
	Turns        int           `json:"turns"`      // answers of the model for claude and opencode, prompts for codex and gemini, as they count
	// Mentions counts the items that quoted a limit text and were ignored.
	Mentions  int  `json:"mentions"`
	Exit      Exit `json:"-"` // how the process ended; zero, with ExitKnown false, where that is unknown
	ExitKnown bool `json:"-"`
	// Killed says that Pawl ended the process.
	Killed      bool          `json:"-"`
	Silent      time.Duration `json:"-"` // without a sign of life, where that is why
	Duration    time.Duration `json:"-"`
	Stderr      string        `json:"-"` // the head and tail of it
	OutputBytes int64         `json:"-"` // of standard output

	output string // plain streams: the output, head and tail where it is long
	final  bool   // the stream had its final event
	named  bool   // the ending is by a field or a code, not by a wording
}

// Evidence is what a fingerprint is taken of: a plain stream's output, the failure, else the final message.
func (r Report) Evidence() string { return cmp.Or(r.output, r.Failure, r.FinalMessage) }

// Printed is what a plain stream held, the head and tail where it is long; empty for others.
func (r Report) Printed() string { return r.output }

func (r *Report) because(reason string) { r.Reasons = append(r.Reasons, reason) }

func (r *Report) end(ending policy.Ending, reason string) {
	r.Ending = ending
	r.because(reason)
}

// setLimit describes the limit of a report whose ending is one, with its reset where that is known.
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

// Shorten cuts s to about n bytes for a reason or a report, on a rune boundary.
func Shorten(s string, n int) string {
	if s = strings.ToValidUTF8(s, "\uFFFD"); len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + " …"
}

// byteOrderMark begins files of some programs, and tells nothing in UTF-8.
var byteOrderMark = []byte("\uFEFF")

// Line is one line of output as JSON; it does not exist where that is no object. The line may be cut, or broken
// further on: what stands before is read, a string as far as it is there. Agents print lines of any length, and
// what classifies one stands at its head. The result is valid UTF-8 and no part of the line's memory.
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

// EmitFinal emits an event of a line that may be final. Where the line was cut it ends nothing, and only its error counts.
func EmitFinal(line gjson.Result, e Event, emit func(Event)) {
	final := e.Kind == Finished || e.Kind == Failed
	switch {
	case !final || gjson.Valid(line.Raw):
		emit(e)
	case e.Kind == Failed:
		emit(Event{Kind: Notice, Text: e.Text, Ending: e.Ending, Status: e.Status, Names: e.Names})
	}
}

// closed is a cut line with an end to the string in which it was cut, since gjson
// leaves out strings without one. It does not miss the ends of objects and lists.
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

// Each calls visit with each element of a list; for what is no list it does nothing. They are not gathered: in a list of
// zeros each would take forty times its bytes.
func Each(list gjson.Result, visit func(gjson.Result)) {
	if list.IsArray() {
		list.ForEach(func(_, element gjson.Result) bool {
			visit(element)
			return true
		})
	}
}

// Count is a number as a count: 0 where it is none, broken or negative.
func Count(v gjson.Result) int64 {
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Tokens are those of an object whose input includes the cached, by the names of its fields; nil where it tells none.
func Tokens(usage gjson.Result, input, cached, output string) *policy.Tokens {
	return Told(policy.Tokens{
		Input:       Count(usage.Get(input)),
		CachedInput: Count(usage.Get(cached)),
		Output:      Count(usage.Get(output)),
	})
}

// Told is a count of tokens, nil for zeros: a provider that counts none is told as zeros, too.
func Told(t policy.Tokens) *policy.Tokens {
	if t == (policy.Tokens{}) {
		return nil
	}
	return &t
}

// Dollars is a number as a cost, nil where it is none.
func Dollars(v gjson.Result) *float64 {
	if v.Type != gjson.Number || math.IsInf(v.Num, 0) || math.IsNaN(v.Num) {
		return nil
	}
	return &v.Num
}

// maxArgument is how much of one argument is shown, in characters (our choice: most fit a terminal's line).
const maxArgument = 120

// Does writes a call for people: a command line after a dollar sign, or the tool with its arguments that are texts and
// numbers. The input is the object of the arguments, or the only argument. CLIs name the argument with a
// command line "command", whatever the tool is called.
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

// EditTools are a CLI's names of its tools that change files, and of their arguments beside content.
type EditTools struct {
	Write, Replace, Several []string
	Path, Before, After     string
}

// Edits are those that a call makes, nil where it makes none that are known.
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
