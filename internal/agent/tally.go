package agent

import (
	"cmp"
	"hash/maphash"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/hashicorp/golang-lru/simplelru"

	"github.com/pawlbot/pawl/policy"
)

// Bounds in bytes of the texts and of the session's id that a tally keeps.
const (
	MaxText      = 64 << 10
	maxSessionID = 256
)

// tally folds the events of one stream. What it remembers is bounded, whatever the stream holds, far above real
// sessions (335 kB lines, some hundred calls): see maxOpen and maxIDs.
type tally struct {
	rep    Report
	cli    Adapter
	dir    string
	seed   maphash.Seed
	open   map[uint64]begun // calls that started and have not ended, by the hash of their id
	held   int              // the sizes of the open calls together
	onCall func(Call)       // told of each call that ended; nil where nobody asks
	// done holds the calls that ended, quoted the items that quote a limit. Both
	// are emptied with each session, because ids are unique within one.
	done     *simplelru.LRU
	quoted   *simplelru.LRU
	messages int
	working  bool   // the last turn has begun and not ended
	did      int    // calls that ended with an effect
	notice   Event  // the last error that was not final
	step     *Event // the last step's end, in streams without a final event
	last     Kind
	failed   *Event
	resets   time.Time // the reset that the error itself names
	// By standard error: what was said to the last request that failed, and the last refusal after which the CLI
	// announced a wait that is Pawl's; its Kind is 0 where there is none.
	try   string
	slept Event
}

func newTally(cli Adapter, dir string) *tally {
	t := &tally{
		cli:    cli,
		dir:    dir,
		seed:   maphash.MakeSeed(),
		open:   map[uint64]begun{},
		done:   newIDs(),
		quoted: newIDs(),
	}
	t.rep.CLI = cli.Stream
	return t
}

func (t *tally) add(e Event) {
	if e.Quotes {
		t.mention(e.ID)
	}
	t.spend(e)
	if e.Session != "" {
		t.rep.SessionID = Shorten(e.Session, maxSessionID)
	}
	switch e.Kind {
	case SessionStarted:
		t.settleTo(0)
		t.done.Purge()
		t.quoted.Purge()
		t.rep.SessionID = Shorten(e.ID, maxSessionID)
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
			e.Text = Shorten(e.Text, MaxText)
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
	if id := t.hash(item); item != "" {
		if t.quoted.Contains(id) {
			return
		}
		t.quoted.Add(id, nil)
	}
	t.rep.Mentions++
}

// goOn makes the last error and the last step's end old.
func (t *tally) goOn() { t.notice, t.step = Event{}, nil }

func (t *tally) spend(e Event) {
	if e.Cost != nil {
		cost := *e.Cost
		if e.Step && t.rep.CostUSD != nil {
			cost += *t.rep.CostUSD
		}
		t.rep.CostUSD = &cost
	}
	if e.Tokens != nil {
		tokens := *e.Tokens
		if e.Step {
			tokens = t.rep.Tokens.Plus(tokens)
		}
		t.rep.Tokens = tokens
	}
	if e.Turns > 0 {
		t.rep.Turns = e.Turns
	}
}

func (t *tally) message(e Event) {
	if e.Delta && t.last == Message {
		if len(t.rep.FinalMessage) <= MaxText {
			t.rep.FinalMessage = Shorten(t.rep.FinalMessage+e.Text, MaxText)
		}
		return
	}
	t.messages++
	t.rep.FinalMessage = Shorten(e.Text, MaxText)
}

// after completes an error by the one before it, where no work came between:
// CLIs tell the class and the reset in one event and the text in the next.
func (t *tally) after(e Event) Event {
	e.Text = cmp.Or(e.Text, t.notice.Text)
	e.ResetsAt = cmp.Or(e.ResetsAt, t.notice.ResetsAt)
	if e.Ending == "" || e.Ending == policy.RateLimited && t.notice.Ending == policy.UsageLimit {
		e.Ending = t.notice.Ending
	}
	return e
}

// finish takes the final event into account. A CLI that stopped itself, or
// whose answer is the error it showed before, did not succeed.
func (t *tally) finish(e Event) {
	e.Text = Shorten(e.Text, MaxText)
	t.working, t.rep.final, t.failed = false, true, nil
	if e.Kind == Failed {
		e = t.after(e)
		failed := e // so that only a failure outlives the call
		t.failed = &failed
		return
	}
	if t.notice.isAnswer(e.Text) {
		failed := t.notice
		t.failed = &failed
		return
	}
	if e.Text != "" {
		t.messages++
		t.rep.FinalMessage = e.Text
	}
}

// isAnswer reports whether an error is what stands for the answer of the run.
func (e Event) isAnswer(text string) bool {
	switch e.Ending {
	case "":
		return false
	case policy.SelfLoop:
		return true
	default:
		return text != "" && text == e.Text
	}
}

type begun struct {
	edits    []policy.Edit
	call     uint64
	authored string
	place    int
	size     int // about the bytes that it holds
}

// maxOpen bounds the bytes of all calls under way. Agents run some ten at once, of some kilobytes; the largest
// that fits a line holds some 3 MB.
const maxOpen = 8 << 20

// maxCallText bounds the text of one call.
const maxCallText = 4 << 10

// openCost is about what a call under way costs in the map, without its content.
const openCost = 2 * (int(unsafe.Sizeof(begun{})) + 8)

func (b *begun) measure() {
	b.size = openCost + len(b.authored) + cap(b.edits)*int(unsafe.Sizeof(policy.Edit{}))
	for _, e := range b.edits {
		b.size += len(e.Path) + 8*(cap(e.Added)+cap(e.Removed))
	}
}

// author takes down what the agent wrote of a call. Most streams tell it twice.
func (b *begun) author(text string) {
	if text == "" {
		return
	}
	call := policy.Hash(text)
	if call == b.call && b.authored != "" {
		return
	}
	head := text[:min(len(text), maxCallText)]
	b.call = call
	b.authored = strings.Clone(Shorten(head, maxCallText))
}

// hash stands for a call's id or a path, seeded for each stream: none can be made in which two collide.
func (t *tally) hash(s string) uint64 { return maphash.String(t.seed, s) }

func (t *tally) call(e Event) {
	id := t.hash(e.ID)
	if e.ID != "" && t.done.Contains(id) {
		return
	}
	b, started := t.open[id]
	if started {
		delete(t.open, id)
		t.held -= b.size
	}
	if !started || e.ID == "" {
		t.rep.ToolCalls++
		b = begun{place: t.rep.ToolCalls}
	}
	b.author(e.Authored)
	if e.Edits != nil {
		b.edits = e.Edits // some streams name them only at the start
		for i := range b.edits {
			b.edits[i].Path = relative(t.dir, b.edits[i].Path)
		}
	}
	if !e.Done {
		b.measure()
		t.open[id] = b
		if t.held += b.size; t.held > maxOpen {
			t.settleTo(maxOpen / 2)
		}
		return
	}
	if e.ID != "" {
		t.done.Add(id, nil)
	}
	if e.Rejected {
		b.edits = nil
	} else {
		t.did++
	}
	t.ended(b, e)
}

func (t *tally) ended(b begun, e Event) {
	if t.onCall != nil {
		t.onCall(Call{Edits: b.edits, Key: b.call, Result: e.Result, Failed: e.Failed, Authored: b.authored})
	}
}

// settleTo takes calls under way for ended, in their order, until the others hold no more than size bytes; a
// later end does not count. When the stream has ended all are settled: they may have been made.
func (t *tally) settleTo(size int) {
	left := slices.SortedFunc(maps.Keys(t.open), func(a, b uint64) int { return t.open[a].place - t.open[b].place })
	for _, id := range left {
		if t.held <= size {
			return
		}
		b := t.open[id]
		delete(t.open, id)
		t.held -= b.size
		if id != t.hash("") {
			t.done.Add(id, nil)
		}
		t.ended(b, Event{})
	}
}

// maxPath is how many bytes of a path are kept, a quarter of Linux's PATH_MAX.
const maxPath = 1 << 10

// relative names a path within the checkout as git does. The result holds no larger text in memory.
func relative(dir, p string) string {
	p = path.Clean(strings.ToValidUTF8(p[:min(len(p), maxPath)], "\uFFFD"))
	return strings.Clone(strings.TrimPrefix(p, path.Clean(dir)+"/"))
}

// maxIDs is how many calls of a session are known again for sure; real ones have some hundred.
const maxIDs = 25_000

// newIDs holds the hashes of the last ids. What comes under an older one counts as new.
func newIDs() *simplelru.LRU {
	ids, _ := simplelru.NewLRU(maxIDs, nil) // fails for no size only
	return ids
}
