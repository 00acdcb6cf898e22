package local

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Feed prints a run's progress. Its methods may be called concurrently.
type Feed struct {
	Print func(line string) // takes a line safe for terminals; calls never overlap
	Quiet bool              // omits agents' messages and calls

	mu         sync.Mutex
	open       map[string]string // printed calls that have not ended, by ID
	last       string            // last message
	unfinished string            // unprinted end of a message
}

// Limits, our choice. maxLine and maxDoes limit a line, in characters.
const (
	maxLine  = 1000
	maxDoes  = 200
	maxOpen  = 1000
	maxPaths = 5
	// maxUnfinished is the length at which a streamed message's unfinished line is printed, in bytes.
	maxUnfinished = 400
)

// Prepare prints a setup or verify command when it starts. An empty string means that the command ended.
func (f *Feed) Prepare(what string) {
	if what != "" {
		f.report("", what)
	}
}

// Begin prints the attempt's number and backend. From the second attempt on it also prints the reason.
func (f *Feed) Begin(s thread.Started) {
	f.mu.Lock()
	f.open, f.last, f.unfinished = map[string]string{}, "", ""
	f.mu.Unlock()
	why := ""
	if s.N > 1 {
		why = ": " + s.Decision.Reasons.String()
	}
	f.report("", fmt.Sprintf("Attempt %d on %s%s", s.N, render.Label(s.Backend), why))
}

// End prints an attempt's result.
func (f *Feed) End(r policy.Receipt) {
	f.report("", fmt.Sprintf("Attempt %d ended: %s", r.N, render.Spaced(cmp.Or(r.Outcome, policy.Outcome(r.Ending)))))
	if r.Outcome.Work() {
		return
	}
	f.because(r.Reasons)
}

// Wait prints why the run waits, and for how long.
func (f *Feed) Wait(v checkrun.View) {
	f.report("", checkrun.Headline(v))
	f.because(v.Reasons.Texts())
}

func (f *Feed) because(reasons []string) {
	for _, reason := range reasons {
		f.report("  ", reason)
	}
}

// report prints a line of Pawl's own.
func (f *Feed) report(indent, line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Print(indent + render.Line(line, maxLine))
}

// print prints a line and keeps its indentation. The caller holds the lock.
func (f *Feed) print(line string) {
	line = strings.TrimRight(render.Clean(render.Head(line, 8*maxLine)), " \t\n")
	if strings.TrimSpace(line) != "" {
		f.Print(render.Short(strings.ReplaceAll(line, "\n", " "), maxLine))
	}
}

// Event prints an agent's message, tool call or notice.
func (f *Feed) Event(e agent.Event) {
	if f.Quiet {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	continues := e.Kind == agent.Message && e.Delta
	if !continues {
		f.message(f.unfinished)
		f.unfinished = ""
	}
	switch e.Kind {
	case agent.Message:
		f.printMessage(e)
	case agent.ToolCall:
		f.call(e)
	case agent.Notice:
		if e.Text != "" {
			f.print("  ! " + render.Line(e.Text, maxDoes))
		}
	default:
	}
}

// printMessage prints a whole message, or the finished lines of a streamed one.
func (f *Feed) printMessage(e agent.Event) {
	if !e.Delta {
		if e.Text != f.last {
			f.message(e.Text)
		}
		f.last = e.Text
		return
	}
	f.unfinished += e.Text
	end := strings.LastIndexByte(f.unfinished, '\n')
	if end < 0 && len(f.unfinished) > maxUnfinished {
		end = strings.LastIndexByte(f.unfinished, ' ')
	}
	if end >= 0 {
		f.message(f.unfinished[:end])
		f.unfinished = f.unfinished[end+1:]
	}
}

func (f *Feed) message(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		f.print("  " + line)
	}
}

// call prints a call once: at its beginning, or at its end if the stream has no other event.
func (f *Feed) call(e agent.Event) {
	what := e.Does
	if len(e.Edits) > 0 {
		what = "edits " + paths(e.Edits)
	}
	known := e.ID != "" && f.open[e.ID] == what
	switch {
	case e.Done:
		delete(f.open, e.ID)
	case len(f.open) < maxOpen:
		f.open[e.ID] = what
	}
	if what != "" && !known {
		f.print("  " + render.Line(what, maxDoes))
	}
}

func paths(edits []policy.Edit) string {
	var names []string
	seen := map[string]bool{}
	for _, e := range edits {
		if !seen[e.Path] {
			names = append(names, e.Path)
		}
		seen[e.Path] = true
	}
	if more := len(names) - maxPaths; more > 0 {
		names = append(names[:maxPaths], policy.Plural(more, "more file"))
	}
	return strings.Join(names, ", ")
}
