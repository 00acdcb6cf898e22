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
	open map[string]begun // calls that started and have not ended
	// onDeed is told of each call that ended; nil where nobody asks.
	onDeed func(Deed)
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
	t.open, t.done, t.quoted = map[string]begun{}, map[string]bool{}, map[string]bool{}
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
		ended := e // so that only this event outlives the call
		t.working, t.step = false, &ended
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
		failed := e // so that only a failure outlives the call
		t.failed = &failed
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

// begun is a call that started: its edits, what was written for it, and its
// place in the order of the calls.
type begun struct {
	edits []Edit
	call  uint64
	wrote string
	place int
}

// maxFullCalls is for how many calls under way the content of edits is kept.
// Agents run some ten calls at once.
const maxFullCalls = 256

// call counts a tool call once, and its edits when it ended with an effect.
func (t *tally) call(e Event) {
	if t.done[e.ID] && e.ID != "" {
		return
	}
	b, started := t.open[e.ID]
	if !started || e.ID == "" {
		t.rep.ToolCalls++
		b = begun{place: t.rep.ToolCalls}
	}
	if e.Wrote != "" {
		b.call, b.wrote = hashOf(e.Wrote), shorten(e.Wrote[:min(len(e.Wrote), maxDeedText)], maxDeedText)
	}
	if e.Edits != nil {
		b.edits = e.Edits // some streams name them only at the start
	}
	if !e.Done {
		if len(t.open) >= maxFullCalls {
			b.wrote = ""
			for i, e := range b.edits {
				b.edits[i] = Edit{Path: e.Path, Key: e.Key, State: e.State}
			}
		}
		if len(t.open) < maxCalls {
			t.open[e.ID] = b
		}
		return
	}
	delete(t.open, e.ID)
	if e.ID != "" && len(t.done) < maxCalls {
		t.done[e.ID] = true
	}
	if e.Rejected {
		b.edits = nil
	} else {
		t.did++
	}
	t.ended(b, e)
}

// ended counts the edits of a call and tells of it.
func (t *tally) ended(b begun, e Event) {
	for i := range b.edits {
		b.edits[i].Path = relative(t.dir, b.edits[i].Path)
		t.edit(b.edits[i].Path)
	}
	if t.onDeed != nil {
		t.onDeed(Deed{Edits: b.edits, Call: b.call, Result: e.Result, Failed: e.Failed, Wrote: b.wrote})
	}
}

func (t *tally) edit(p string) {
	t.rep.Edits.Operations++
	n, known := t.files[p]
	if !known && len(t.files) >= maxFiles {
		return
	}
	t.files[p] = n + 1
	if n+1 > t.rep.Edits.MaxRepeat {
		t.rep.Edits.MaxRepeat, t.rep.Edits.MaxRepeatPath = n+1, p
	}
}

// settle counts the edits of calls that were still under way when the stream
// ended, in the order in which they began: they may well have been made.
func (t *tally) settle() {
	left := slices.SortedFunc(maps.Values(t.open), func(a, b begun) int { return a.place - b.place })
	clear(t.open)
	for _, b := range left {
		t.ended(b, Event{})
	}
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
