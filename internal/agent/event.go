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

// The kinds of events.
const (
	// SessionStarted has the session in ID.
	SessionStarted Kind = iota + 1
	// TurnStarted opens one turn of the model.
	TurnStarted
	// Message is the agent's text, in Text and Wrote.
	Message
	// Thought is reasoning; only its mentions matter.
	Thought
	// ToolCall is a call that began (Done unset) or was answered, with its edited files and arguments.
	ToolCall
	// Notice is an error that is not final, in Text: a retry, a warning.
	Notice
	// StepEnded ends one step of a stream without a final event. Ending is the run's if this step was its last;
	// empty: more follows.
	StepEnded
	// Finished ends the run with success. Text, if set, is the answer; Wordless says that the answer is empty.
	Finished
	// Failed ends the run with the error in Text, or else the last Notice's; Ending is set if the stream names it.
	Failed
)

// Event is one event of a line of output.
type Event struct {
	Kind         Kind
	ID           string
	Text         string
	Session, Dir string // the session's id in streams that repeat it; Dir is the checkout's path for the CLI
	// Delta says that the text continues the previous message.
	Delta bool
	// Authored is the agent's own text: a command, tool arguments, a message. Ran says that it was executed, not
	// only said.
	Authored string
	Ran      bool
	Does     string // what a call does, for people, as the function Does writes it
	// Quotes says that the event quotes a limit text without being a limit.
	Quotes bool
	Edits  []policy.Edit
	// Place is the message of a call and its position there, empty if unknown. Whole says that an ended call's event
	// has the call, too, and not only its answer.
	Place string
	Whole bool
	// Began is when a whole event's call began; zero if unknown.
	Began time.Time
	// Done and Rejected describe an ended call; a rejected one had no effect. Failed is a rejected one, or a command
	// that failed; Result is a hash of its answer, zero if unknown. Silent says that the answer is empty.
	Done, Rejected, Failed, Silent bool
	Result                         uint64
	Ending                         policy.Ending
	ResetsAt                       time.Time // zero if unknown
	// Status and Names are an error's fields: the HTTP status, its types and codes.
	Status int
	Names  []string
	// Idle says that a final event reports no turn at all.
	Idle bool
	// Task is background work that began, or ended with TaskEnd.
	Task, TaskEnd string
	// Tokens and Cost are the session's total so far, or with Step one step's.
	Tokens *policy.Tokens
	Cost   *float64
	Step   bool
	// Wordless says that Finished has an empty answer.
	Wordless bool
	Turns    int // the CLI's own count of turns; zero if it has none
}

// Call is one ended call, for circles. A refused or failed one edits nothing.
type Call struct {
	Edits []policy.Edit
	// Key hashes the call with its arguments, Result its answer, zero if unknown.
	Key, Result uint64
	Failed      bool
	Silent      bool          // it had no output
	Authored    string        // the call's text, its head if it is long
	Pause       time.Duration // before the call, by the stream's times; zero if it has none
}

// Count counts the call: its edits, or that it edited nothing.
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

// Answered sets whether a call failed, and its answer as JSON.
func (e *Event) Answered(failed bool, answer string) {
	e.Failed, e.Result, e.Silent = failed, edit.Result(answer), edit.Silent(answer)
}

// Exit is a process's end: its exit code, and the signal that ended it, empty for none.
type Exit struct {
	Code     int
	Signal   string
	Exceeded string // for people
}

// Report is the result of a run, by its output.
type Report struct {
	CLI     string        `json:"cli"`
	Ending  policy.Ending `json:"ending"`
	Reasons []string      `json:"reasons"`
	Limit   *policy.Limit `json:"limit"`
	// Edits are counted by Inspect. They are zero for a running process: its watcher also sees the files.
	Edits        policy.Edits  `json:"edits"`
	FinalMessage string        `json:"final_message"`     // the agent's last message; after success its answer
	Failure      string        `json:"failure,omitempty"` // the final error
	Tokens       policy.Tokens `json:"tokens"`
	CostUSD      *float64      `json:"cost_usd"` // nil if the CLI reports none
	SessionID    string        `json:"session_id"`
	ToolCalls    int           `json:"tool_calls"` // answered ones
	Turns        int           `json:"turns"`      // the model's answers for claude and opencode, prompts for codex and gemini, by their own count
	// Mentions counts the ignored quotations of limit texts.
	Mentions  int  `json:"mentions"`
	Exit      Exit `json:"-"` // zero, with ExitKnown false, if unknown
	ExitKnown bool `json:"-"`
	// Killed says that Pawl ended the process.
	Killed      bool          `json:"-"`
	Silent      time.Duration `json:"-"` // the silence, if that is why
	Duration    time.Duration `json:"-"`
	Stderr      string        `json:"-"` // the head and tail of it
	OutputBytes int64         `json:"-"` // of standard output

	output string // plain streams: the output, head and tail if it is long
	final  bool   // the stream had its final event
	named  bool   // the ending is by a field or a code, not by a wording
}

// Evidence is the text for a fingerprint: a plain stream's output, the failure, else the final message.
func (r Report) Evidence() string { return cmp.Or(r.output, r.Failure, r.FinalMessage) }

// Printed is a plain stream's output, head and tail if it is long; empty for others.
func (r Report) Printed() string { return r.output }

func (r *Report) because(reason string) { r.Reasons = append(r.Reasons, reason) }

func (r *Report) end(ending policy.Ending, reason string) {
	r.Ending = ending
	r.because(reason)
}

// setLimit describes the limit of a report with such an ending, with its reset if known.
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

// byteOrderMark may begin a file and has no meaning in UTF-8.
var byteOrderMark = []byte("\uFEFF")

// Line parses one line of output as JSON; it does not exist for other values than objects. The line may be cut, or
// broken later: the part before is read, also of a string. Agents print lines of any length, and their heads
// classify them. The result is valid UTF-8 and shares no memory with the line.
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

// EmitFinal emits an event of a line that may be final. A cut line ends nothing, and only its error counts.
func EmitFinal(line gjson.Result, e Event, emit func(Event)) {
	final := e.Kind == Finished || e.Kind == Failed
	switch {
	case !final || gjson.Valid(line.Raw):
		emit(e)
	case e.Kind == Failed:
		emit(Event{Kind: Notice, Text: e.Text, Ending: e.Ending, Status: e.Status, Names: e.Names})
	}
}

// closed ends the string in which a line was cut, since gjson leaves out strings without an end. It needs no ends
// of objects and lists.
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

// Each calls visit with each element of a list, and does nothing for other values. It does not collect them: in a
// list of zeros each would take forty times its bytes.
func Each(list gjson.Result, visit func(gjson.Result)) {
	if list.IsArray() {
		list.ForEach(func(_, element gjson.Result) bool {
			visit(element)
			return true
		})
	}
}

// Count is a number as a count: 0 if it is missing, broken or negative.
func Count(v gjson.Result) int64 {
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Tokens are the counts of an object whose input includes the cached, by field names; nil if it has none.
func Tokens(usage gjson.Result, input, cached, output string) *policy.Tokens {
	return Told(policy.Tokens{
		Input:       Count(usage.Get(input)),
		CachedInput: Count(usage.Get(cached)),
		Output:      Count(usage.Get(output)),
	})
}

// Told is a count of tokens, nil for zeros: providers without counts appear as zeros, too.
func Told(t policy.Tokens) *policy.Tokens {
	if t == (policy.Tokens{}) {
		return nil
	}
	return &t
}

// Dollars is a number as a cost, nil for none.
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

// EditTools are a CLI's names of its editing tools, and of their other arguments than content.
type EditTools struct {
	Write, Replace, Several []string
	Path, Before, After     string
}

// Edits are a call's edits, nil for none known.
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
