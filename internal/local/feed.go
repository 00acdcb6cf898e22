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

// Feed tells what a run does while it does it. Its methods may be called concurrently.
type Feed struct {
	Print func(line string) // takes one line that is harmless to a terminal; never called concurrently
	Quiet bool              // leaves out what agents say and do

	mu   sync.Mutex
	open map[string]string // calls that were shown and are not answered, by id
	said string            // the last message
	rest string            // the end of a message that goes on
}

// Bounds of a shown line, in characters, and of the calls that are remembered (our choices).
const (
	maxSaidLine = 1000
	maxDoes     = 200
	maxOpen     = 1000
	maxPaths    = 5
	// maxRest is how much of a line is waited for, in bytes, of a message that comes in pieces.
	maxRest = 400
)

// Prepare tells which command of a setup or a verification runs.
func (f *Feed) Prepare(what string) {
	if what != "" {
		f.tell("", what)
	}
}

// Begin tells which attempt begins, and from the second on why.
func (f *Feed) Begin(s thread.Started) {
	f.mu.Lock()
	f.open, f.said, f.rest = map[string]string{}, "", ""
	f.mu.Unlock()
	why := ""
	if s.N > 1 {
		why = ": " + s.Decision.Reasons.String()
	}
	f.tell("", fmt.Sprintf("Attempt %d on %s%s", s.N, render.Label(s.Backend), why))
}

// End tells what an attempt came to, and why where it was not work.
func (f *Feed) End(r policy.Receipt) {
	f.tell("", fmt.Sprintf("Attempt %d ended: %s", r.N, render.Spaced(cmp.Or(r.Outcome, policy.Outcome(r.Ending)))))
	if r.Outcome.Work() {
		return
	}
	f.because(r.Reasons)
}

// Wait tells why the run waits, and until when.
func (f *Feed) Wait(v checkrun.View) {
	f.tell("", checkrun.Headline(v))
	f.because(v.Reasons.Texts())
}

func (f *Feed) because(reasons []string) {
	for _, reason := range reasons {
		f.tell("  ", reason)
	}
}

// tell prints a line of Pawl's own.
func (f *Feed) tell(indent, line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Print(indent + render.Line(line, maxSaidLine))
}

// print keeps the indentation. The caller holds the lock.
func (f *Feed) print(line string) {
	line = strings.TrimRight(render.Clean(render.Head(line, 8*maxSaidLine)), " \t\n")
	if strings.TrimSpace(line) != "" {
		f.Print(render.Short(strings.ReplaceAll(line, "\n", " "), maxSaidLine))
	}
}

// Event tells what an agent says and does.
func (f *Feed) Event(e agent.Event) {
	if f.Quiet {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	continues := e.Kind == agent.Message && e.Delta
	if !continues {
		f.message(f.rest)
		f.rest = ""
	}
	switch e.Kind {
	case agent.Message:
		f.says(e)
	case agent.ToolCall:
		f.call(e)
	case agent.Notice:
		if e.Text != "" {
			f.print("  ! " + render.Line(e.Text, maxDoes))
		}
	default:
	}
}

// says prints a message: one that comes in pieces, as far as its lines are there.
func (f *Feed) says(e agent.Event) {
	if !e.Delta {
		if e.Text != f.said {
			f.message(e.Text)
		}
		f.said = e.Text
		return
	}
	f.rest += e.Text
	end := strings.LastIndexByte(f.rest, '\n')
	if end < 0 && len(f.rest) > maxRest {
		end = strings.LastIndexByte(f.rest, ' ')
	}
	if end >= 0 {
		f.message(f.rest[:end])
		f.rest = f.rest[end+1:]
	}
}

func (f *Feed) message(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		f.print("  " + line)
	}
}

// call prints a call once: where it begins, or at its end if the stream has no event for its beginning.
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

// paths names the files of edits, each once.
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
