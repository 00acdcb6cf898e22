package agent

import (
	"hash/maphash"
	"time"
)

// Bounds in bytes of the texts and of the session's id that a tally keeps.
const (
	maxText      = 64 << 10
	maxSessionID = 256
)

// tally folds the events of one stream. What it remembers is bounded, whatever
// the stream holds: see maxOpen, maxIDs and maxFiles, which real sessions (335
// kB lines, some hundred calls) stay far below.
type tally struct {
	rep  Report
	cli  Adapter
	dir  string
	seed maphash.Seed
	open map[uint64]begun // calls that started and have not ended, by the hash of their id
	held int              // the sizes of the open calls together
	// onDeed is told of each call that ended; nil where nobody asks.
	onDeed func(Deed)
	// done holds the calls that ended, quoted the items that quote a limit. Both
	// are emptied with each session, because ids are unique within one.
	done     idSet
	quoted   idSet
	files    map[uint64]int // how often each path was edited, by its hash
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
	t := &tally{cli: cli, dir: dir, seed: maphash.MakeSeed(), open: map[uint64]begun{}, files: map[uint64]int{}}
	t.rep.CLI = cli.Stream
	return t
}

// add takes one event into account.
func (t *tally) add(e Event) {
	if e.Quotes {
		t.mention(e.ID)
	}
	t.spend(e)
	if e.Session != "" {
		t.rep.SessionID = shorten(e.Session, maxSessionID)
	}
	switch e.Kind {
	case SessionStarted:
		t.settle()
		t.done, t.quoted = idSet{}, idSet{}
		t.rep.SessionID = shorten(e.ID, maxSessionID)
		if t.dir == "" && len(e.Dir) <= maxPath {
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

// mention counts an item that quotes a limit, once where it has an id.
func (t *tally) mention(item string) {
	id := t.hash(item)
	if item != "" && t.quoted.has(id) {
		return
	}
	t.rep.Mentions++
	if item != "" {
		t.quoted.add(id)
	}
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
