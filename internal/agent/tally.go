package agent

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Bounds of what a tally remembers, so that a hostile stream cannot fill the
// memory. Real sessions stay far below them (335 kB lines, some hundred calls).
const (
	maxCalls    = 50_000
	maxFiles    = 20_000
	maxPath     = 1 << 10
	maxText     = 64 << 10
	maxCallName = 256
)

// tally folds the events of one stream.
type tally struct {
	rep  Report
	cli  Adapter
	dir  string
	open map[string][]string // calls that started and have not ended: their paths
	// done holds the calls that ended; both maps are emptied with each session,
	// because ids are unique within one.
	done     map[string]bool
	quoted   map[string]bool
	files    map[string]int
	messages int
	working  bool   // the last turn has begun and not ended
	did      int    // calls that ended with an effect
	notice   Event  // the last error that was not final
	step     *Event // the last step's end, in streams without a final event
	last     Kind
	failed   *Event
	resets   *time.Time // the reset that the error itself names
}

func newTally(cli Adapter, dir string) *tally {
	t := &tally{cli: cli, dir: dir, files: map[string]int{}}
	t.rep.CLI = cli.Stream
	t.forget()
	return t
}

func (t *tally) forget() {
	t.open, t.done, t.quoted = map[string][]string{}, map[string]bool{}, map[string]bool{}
}

// add takes one event into account.
func (t *tally) add(e Event) {
	if len(e.ID) > maxCallName {
		e.ID = e.ID[:maxCallName]
	}
	if e.Quotes && !t.quoted[e.ID] {
		t.rep.Mentions++
		if e.ID != "" && len(t.quoted) < maxCalls {
			t.quoted[e.ID] = true
		}
	}
	t.spend(e)
	if e.Session != "" {
		t.rep.SessionID = shorten(e.Session, maxCallName)
	}
	switch e.Kind {
	case SessionStarted:
		t.settle()
		t.forget()
		t.rep.SessionID = e.ID
		if t.dir == "" {
			t.dir = e.Dir
		}
	case TurnStarted:
		t.rep.Turns++
		t.working, t.rep.final, t.failed = true, false, nil
		t.goOn()
	case Message:
		t.message(e)
		t.goOn()
	case ToolCall:
		t.call(e)
		t.goOn()
	case Notice:
		if e.Text != "" {
			e.Text = shorten(e.Text, maxText)
			t.notice = t.after(e)
		}
	case StepEnded:
		t.working, t.step = false, &e
	case Finished, Failed:
		t.finish(e)
	}
	t.last = e.Kind
}

// goOn makes the last error and the last step's end old.
func (t *tally) goOn() { t.notice, t.step = Event{}, nil }

// spend takes the tokens, cost and turns of an event into account.
func (t *tally) spend(e Event) {
	switch {
	case e.Cost == nil:
	case e.Step && t.rep.CostUSD != nil:
		sum := *t.rep.CostUSD + *e.Cost
		t.rep.CostUSD = &sum
	default:
		t.rep.CostUSD = e.Cost
	}
	switch {
	case e.Tokens == nil:
	case e.Step:
		t.rep.Tokens = t.rep.Tokens.Plus(*e.Tokens)
	default:
		t.rep.Tokens = *e.Tokens
	}
	if e.Turns > 0 {
		t.rep.Turns = e.Turns
	}
}

func (t *tally) message(e Event) {
	if e.Delta && t.last == Message {
		if len(t.rep.FinalMessage) <= maxText {
			t.rep.FinalMessage = shorten(t.rep.FinalMessage+e.Text, maxText)
		}
		return
	}
	t.messages++
	t.rep.FinalMessage = shorten(e.Text, maxText)
}

// after completes an error by the one before it, where no work came between:
// CLIs tell the class and the reset in one event and the text in the next.
func (t *tally) after(e Event) Event {
	if e.Text == "" {
		e.Text = t.notice.Text
	}
	if e.ResetsAt == nil {
		e.ResetsAt = t.notice.ResetsAt
	}
	if e.Ending == "" || e.Ending == RateLimited && t.notice.Ending == UsageLimit {
		e.Ending = t.notice.Ending
	}
	return e
}

// finish takes the final event into account. A CLI that stopped itself, or
// whose answer is the error it showed before, did not succeed.
func (t *tally) finish(e Event) {
	e.Text = shorten(e.Text, maxText)
	t.working, t.rep.final, t.failed = false, true, nil
	if e.Kind == Failed {
		e = t.after(e)
		t.failed = &e
		return
	}
	if n := t.notice; n.Ending == SelfLoop || n.Ending != "" && e.Text != "" && e.Text == n.Text {
		t.failed = &n
		return
	}
	if e.Text != "" {
		t.messages++
		t.rep.FinalMessage = e.Text
	}
}

// call counts a tool call once, and its edits when it ended with an effect.
func (t *tally) call(e Event) {
	if t.done[e.ID] && e.ID != "" {
		return
	}
	_, started := t.open[e.ID]
	if !started || e.ID == "" {
		t.rep.ToolCalls++
	}
	if !e.Done {
		if len(t.open) < maxCalls {
			t.open[e.ID] = e.Paths
		}
		return
	}
	if e.Paths == nil {
		e.Paths = t.open[e.ID] // some streams name them only at the start
	}
	delete(t.open, e.ID)
	if e.ID != "" && len(t.done) < maxCalls {
		t.done[e.ID] = true
	}
	if !e.Rejected {
		t.did++
		t.edit(e.Paths)
	}
}

func (t *tally) edit(paths []string) {
	for _, p := range paths {
		t.rep.Edits.Operations++
		p = relative(t.dir, p)
		n, known := t.files[p]
		if !known && len(t.files) >= maxFiles {
			continue
		}
		t.files[p] = n + 1
		if n+1 > t.rep.Edits.MaxRepeat {
			t.rep.Edits.MaxRepeat, t.rep.Edits.MaxRepeatPath = n+1, p
		}
	}
}

// settle counts the edits of calls that were still under way when the stream
// ended: they may well have been made.
func (t *tally) settle() {
	for _, id := range slices.Sorted(maps.Keys(t.open)) {
		t.edit(t.open[id])
	}
	clear(t.open)
	t.rep.Edits.Files = len(t.files)
}

// relative names a path within the checkout the way git does.
func relative(dir, p string) string {
	if len(p) > maxPath {
		p = p[:maxPath]
	}
	p = path.Clean(strings.ToValidUTF8(p, "\uFFFD"))
	if dir == "" {
		return p
	}
	if rest, ok := strings.CutPrefix(p, path.Clean(dir)+"/"); ok {
		return rest
	}
	return p
}
