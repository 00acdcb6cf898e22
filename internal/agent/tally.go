package agent

import (
	"cmp"
	"hash/maphash"
	"path"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/hashicorp/golang-lru/simplelru"

	"github.com/pawlbot/pawl/policy"
)

// Limits for a tally's texts and session id, in bytes.
const (
	MaxText      = 64 << 10
	maxSessionID = 256
)

// tally folds one stream's events. Its memory is bounded far above real sessions (335 kB lines, some hundred calls):
// see maxOpen, maxParallel and maxIDs.
type tally struct {
	rep    Report
	cli    Adapter
	dir    string
	seed   maphash.Seed
	open   []begun    // unanswered calls, oldest first
	held   int        // total size of open
	onCall func(Call) // for each ended call; may be nil
	clock  clock
	// past has the last call of each id. quoted has the items that quote a limit. A new session empties both.
	past     *simplelru.LRU
	quoted   *simplelru.LRU
	spent    spending
	messages int
	working  bool   // the last turn has not ended
	called   bool   // a call began
	messaged bool   // a message followed the last turn's last call
	did      int    // ended calls with an effect
	notice   Event  // last non-final error
	step     *Event // end of the last step, in streams without a final event
	last     Kind
	failed   *Event
	now      time.Time // the run's end
	zone     *time.Location
	well     bool   // the run ended well, without later work
	answered bool   // value of messaged at that end
	spurious string // a later error without work
	// Tasks that the agent started without waiting.
	background background
	// From standard error: the last failed request's message, and the last refusal with a wait longer than
	// LongestWait.
	try   string
	slept Event
}

func newTally(cli Adapter, dir string) *tally {
	t := &tally{
		cli:    cli,
		dir:    dir,
		seed:   maphash.MakeSeed(),
		past:   newIDs(),
		quoted: newIDs(),
	}
	t.rep.CLI = cli.Stream
	return t
}

func (t *tally) add(e Event) {
	if e.Quotes && e.Kind != ToolCall {
		t.mention(e.ID)
	}
	if e.Kind == SessionStarted {
		t.newSession(e)
	}
	if t.unearned(e) {
		return
	}
	t.spend(e)
	t.delegates(e.Within)
	t.background.add(e)
	if e.Session != "" {
		t.rep.SessionID = Shorten(e.Session, maxSessionID)
	}
	switch e.Kind {
	case TurnStarted:
		t.rep.Turns++
		t.working, t.rep.final, t.failed, t.messaged = true, false, nil, false
		t.goOn()
	case Message:
		t.message(e)
		t.goOn()
		t.well = false
	case ToolCall:
		t.call(e)
		t.goOn()
		t.well = false
	case Notice:
		if e.Text != "" {
			e.Text = Shorten(e.Text, MaxText)
			t.notice = t.after(e)
			t.well = false
		}
	case StepEnded:
		ended := e // a copy, so that only this event escapes to the heap
		t.working, t.step = false, &ended
	case Finished, Failed:
		t.finish(e)
	}
	t.last = e.Kind
}

// newSession forgets the previous session's calls. A session that continues under its id keeps its counts.
func (t *tally) newSession(e Event) {
	t.open, t.held = nil, 0
	t.past.Purge()
	t.quoted.Purge()
	id := Shorten(e.ID, maxSessionID)
	if id != t.rep.SessionID {
		t.spent.anew()
	}
	t.rep.SessionID = id
	if t.dir == "" && len(e.Dir) <= maxPath {
		t.dir = e.Dir
	}
}

// mention counts an item that quotes a limit, but each id only once.
func (t *tally) mention(item string) {
	if id := t.hash(item); item != "" {
		if t.quoted.Contains(id) {
			return
		}
		t.quoted.Add(id, nil)
	}
	t.rep.Mentions++
}

func (t *tally) goOn() { t.notice, t.step = Event{}, nil }

// spending sums a stream's sessions. Each reports its total so far, or its steps.
type spending struct {
	before, now       policy.Tokens // finished counts, and the current one
	beforeUSD, nowUSD float64
}

func (s *spending) anew() {
	s.before, s.now = s.before.Plus(s.now), policy.Tokens{}
	s.beforeUSD, s.nowUSD = s.beforeUSD+s.nowUSD, 0
}

// tokens adds a total or a step. A smaller total begins another count.
func (s *spending) tokens(reported policy.Tokens, step bool) policy.Tokens {
	switch {
	case step:
		reported = s.now.Plus(reported)
	case reported.Input < s.now.Input, reported.Output < s.now.Output:
		s.before = s.before.Plus(s.now)
	}
	s.now = reported
	return s.before.Plus(reported)
}

func (s *spending) cost(reported float64, step bool) float64 {
	switch {
	case step:
		reported += s.nowUSD
	case reported < s.nowUSD:
		s.beforeUSD += s.nowUSD
	}
	s.nowUSD = reported
	return s.beforeUSD + reported
}

func (t *tally) spend(e Event) {
	if e.Cost != nil {
		cost := t.spent.cost(*e.Cost, e.Step)
		t.rep.CostUSD = &cost
	}
	if e.Tokens != nil {
		t.rep.Tokens = t.spent.tokens(*e.Tokens, e.Step)
	}
	if e.Turns > 0 {
		t.rep.Turns = e.Turns
	}
}

func (t *tally) message(e Event) {
	hasText := strings.TrimSpace(e.Text) != ""
	if e.Delta && t.last == Message {
		t.messaged = t.messaged || hasText
		if len(t.rep.FinalMessage) <= MaxText {
			t.rep.FinalMessage = Shorten(t.rep.FinalMessage+e.Text, MaxText)
		}
		return
	}
	t.messages++
	t.messaged = hasText
	t.rep.FinalMessage = Shorten(e.Text, MaxText)
}

// after completes an error with the previous error if no work lies between them. CLIs put class and reset into one
// event, and the text into the next.
func (t *tally) after(e Event) Event {
	e.Text = cmp.Or(e.Text, t.notice.Text)
	e.ResetsAt = cmp.Or(e.ResetsAt, t.notice.ResetsAt)
	before := t.read(t.notice).Kind
	if before == "" {
		return e
	}
	switch own := t.read(e).Kind; {
	case own == "":
		e.Status, e.Names, e.Ending = t.notice.Status, t.notice.Names, before
	case own == policy.RateLimited && before == policy.UsageLimit:
		e.Ending = before
	}
	return e
}

// finish handles the final event. A CLI that stopped itself, or whose answer is an earlier error, did not succeed.
func (t *tally) finish(e Event) {
	e.Text = Shorten(e.Text, MaxText)
	t.working, t.rep.final, t.failed = false, true, nil
	if e.Kind == Failed {
		e = t.after(e)
		failed := e // a copy, so that only a failure escapes to the heap
		t.failed = &failed
		return
	}
	if t.isAnswer(e.Text) {
		failed := t.notice
		t.failed = &failed
		return
	}
	t.well = true
	switch {
	case strings.TrimSpace(e.Text) != "":
		if e.Text != t.rep.FinalMessage {
			t.messages++
		}
		t.messaged, t.rep.FinalMessage = true, e.Text
	case e.Wordless:
		t.messaged = false
	}
	t.answered = t.messaged
}

// unearned reports whether a failure after a good end involved no work. Such a failure does not undo the success.
func (t *tally) unearned(e Event) bool {
	if !t.well || e.Kind != Failed {
		return false
	}
	if !e.Idle && !t.rep.final {
		return false
	}
	t.spurious = cmp.Or(e.Text, "an error without words")
	t.working, t.rep.final, t.messaged = false, true, t.answered
	return true
}

func (t *tally) isAnswer(text string) bool {
	if t.notice.Kind == 0 {
		return false
	}
	switch t.read(t.notice).Kind {
	case "":
		return false
	case policy.SelfLoop:
		return true
	default:
		return text != "" && text == t.notice.Text
	}
}

// delegates marks the call that runs the subagent of an event.
func (t *tally) delegates(call string) {
	if call == "" {
		return
	}
	id := t.hash(call)
	for i := range t.open {
		if b := &t.open[i]; b.named && b.id == id {
			b.delegates = true
		}
	}
}

// atWork counts the open calls that do work themselves. A call that runs a subagent only waits for the subagent's.
func (t *tally) atWork() (n int) {
	for i := range t.open {
		if !t.open[i].delegates {
			n++
		}
	}
	return n
}

type begun struct {
	edits     []policy.Edit
	id        uint64 // hash of the call's id; named if it has one
	named     bool
	place     uint64 // hash of Event.Place
	call      uint64
	authored  string
	pause     time.Duration // before the call
	announced bool          // reported at its start
	quoted    bool          // counted as a mention of a limit
	again     bool          // equals the last answered call with its id, so it may be that call
	// delegates means that the call runs a subagent, whose calls the stream shows.
	delegates bool
	size      int // approximate bytes
}

// Limits of open calls, in bytes and number. Agents run about ten calls at once, of a few kilobytes each. The largest
// call in one line takes about 3 MB.
const (
	maxOpen     = 8 << 20
	maxParallel = 1 << 10
)

const maxCallText = 4 << 10

func (b *begun) measure() {
	b.size = int(unsafe.Sizeof(begun{})) + len(b.authored) + cap(b.edits)*int(unsafe.Sizeof(policy.Edit{}))
	for _, e := range b.edits {
		b.size += len(e.Path) + 8*(cap(e.Added)+cap(e.Removed))
	}
}

// author adds a call's text. Most streams report it twice.
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

// hash hashes a call's id or place with the stream's seed, so agents cannot cause collisions.
func (t *tally) hash(s string) uint64 { return maphash.String(t.seed, s) }

type ended struct {
	place, call uint64
	announced   bool    // also reported at its start
	dropped     bool    // forgotten while open
	early       *answer // came before its call; nil once used
}

type answer struct {
	result                   uint64
	failed, rejected, silent bool
}

// call handles a call's start or end. A call counts when answered. An id only matches a call with its answer, since
// agents and providers may reuse ids.
func (t *tally) call(e Event) {
	if e.Done {
		t.answer(e)
		return
	}
	t.begin(e)
}

func (t *tally) begin(e Event) {
	if i := t.retold(e); i >= 0 {
		b := t.open[i]
		t.remove(i)
		t.fill(&b, e)
		t.keep(i, b)
		return
	}
	t.called, t.messaged = true, false
	b := t.newCall(e)
	b.pause = t.clock.before(t.clock.now)
	b.announced = true
	t.fill(&b, e)
	last, known := t.lastUnder(e.ID)
	if known && last.early != nil {
		t.end(b, *last.early)
		return
	}
	b.again = known && b.repeats(last, e)
	t.doubt(b)
	t.keep(len(t.open), b)
}

func (t *tally) newCall(e Event) begun {
	return begun{id: t.hash(e.ID), named: e.ID != "", place: t.hash(e.Place)}
}

// retold finds the open call that an event reports again, perhaps with more arguments; -1 for none.
func (t *tally) retold(e Event) int {
	id, place := t.hash(e.ID), t.hash(e.Place)
	return slices.IndexFunc(t.open, func(b begun) bool {
		if !b.named || b.id != id {
			return false
		}
		return b.place == place && b.continuedBy(e.Authored)
	})
}

func (b begun) repeats(last ended, e Event) bool {
	if e.Place == "" {
		return false
	}
	return last.place == b.place && last.call == b.call
}

// continuedBy reports whether a text begins with the call's text.
func (b begun) continuedBy(text string) bool {
	return policy.Hash(text) == b.call || strings.HasPrefix(text, strings.TrimRight(b.authored, `"]} `))
}

// doubt forgets open calls that seemed to repeat an answered call, once another call with their id follows.
func (t *tally) doubt(next begun) {
	for i := len(t.open) - 1; i >= 0; i-- {
		if t.open[i].again && t.open[i].id == next.id {
			t.remove(i)
		}
	}
}

func (t *tally) lastUnder(id string) (ended, bool) {
	if id == "" {
		return ended{}, false
	}
	last, known := t.past.Get(t.hash(id))
	if !known {
		return ended{}, false
	}
	return last.(ended), true
}

// fill adds an event's data to a call. Some streams name the edits only at the start.
func (t *tally) fill(b *begun, e Event) {
	if e.Quotes && !b.quoted {
		b.quoted = true
		t.rep.Mentions++
	}
	b.author(e.Authored)
	if e.Edits == nil {
		return
	}
	b.edits = e.Edits
	for i := range b.edits {
		b.edits[i].Path = relative(t.dir, b.edits[i].Path)
	}
}

// keep adds an open call. Above the limits the oldest are forgotten, with their edits.
func (t *tally) keep(at int, b begun) {
	b.measure()
	t.held += b.size
	t.open = slices.Insert(t.open, at, b)
	if t.held > maxOpen || len(t.open) > maxParallel {
		t.forget()
	}
}

// forget removes the oldest half of the open calls. Their answers still count.
func (t *tally) forget() {
	n := 0
	for ; t.held > maxOpen/2 || len(t.open)-n > maxParallel/2; n++ {
		b := t.open[n]
		t.held -= b.size
		if b.named {
			t.past.Add(b.id, ended{dropped: true})
		}
	}
	t.open = slices.Delete(t.open, 0, n)
}

func (t *tally) remove(i int) {
	t.held -= t.open[i].size
	t.open = slices.Delete(t.open, i, i+1)
}

// answer assigns an answer to the oldest matching call.
func (t *tally) answer(e Event) {
	b, open := t.take(e)
	if !open {
		last, _ := t.lastUnder(e.ID)
		if !t.isSeparate(e, last) {
			return
		}
		t.called, t.messaged = true, false
		b = t.newCall(e)
		b.pause = t.clock.before(e.Began)
		b.announced = last.dropped
	}
	t.fill(&b, e)
	t.end(b, answer{result: e.Result, failed: e.Failed, rejected: e.Rejected, silent: e.Silent})
	if e.Whole && e.Place != "" {
		t.past.Add(b.place, ended{})
	}
}

// take removes and returns an answer's call.
func (t *tally) take(e Event) (begun, bool) {
	id, place := t.hash(e.ID), t.hash(e.Place)
	i := slices.IndexFunc(t.open, func(b begun) bool {
		if b.id != id {
			return false
		}
		return e.Place == "" || b.place == place
	})
	if i < 0 && !e.Whole { // one of the two has no id
		i = slices.IndexFunc(t.open, func(b begun) bool { return e.ID == "" || !b.named })
	}
	if i < 0 {
		return begun{}, false
	}
	b := t.open[i]
	t.remove(i)
	return b, true
}

// isSeparate reports whether an answer without an open call is a separate call. It stores answers before their call.
func (t *tally) isSeparate(e Event, last ended) bool {
	switch {
	case last.dropped:
		return true
	case e.Whole && e.Place != "":
		return !t.past.Contains(t.hash(e.Place))
	case e.Whole:
		return !last.announced // otherwise the stream reports the end twice
	case e.ID != "" && !t.past.Contains(t.hash(e.ID)):
		t.past.Add(t.hash(e.ID), ended{early: &answer{result: e.Result, failed: e.Failed, rejected: e.Rejected, silent: e.Silent}})
	}
	return false
}

func (t *tally) end(b begun, a answer) {
	if b.named {
		t.past.Add(b.id, ended{place: b.place, call: b.call, announced: b.announced})
	}
	t.rep.ToolCalls++
	t.clock.end = t.clock.now
	if a.rejected {
		b.edits = nil
	} else {
		t.did++
	}
	if t.onCall != nil {
		t.onCall(Call{Edits: b.edits, Key: b.call, Result: a.result, Failed: a.failed, Silent: a.silent, Authored: b.authored, Pause: b.pause, Open: t.atWork()})
	}
}

// maxPath limits a path in bytes: a quarter of Linux's PATH_MAX.
const maxPath = 1 << 10

// relative returns a path relative to the checkout. The result keeps no larger text in memory.
func relative(dir, p string) string {
	p = path.Clean(strings.ToValidUTF8(p[:min(len(p), maxPath)], "\uFFFD"))
	return strings.Clone(strings.TrimPrefix(p, path.Clean(dir)+"/"))
}

// maxIDs limits the remembered calls of a session; real sessions have some hundred.
const maxIDs = 25_000

// newIDs returns a cache for the hashes of the last ids. Calls of older ids count as new.
func newIDs() *simplelru.LRU {
	ids, _ := simplelru.NewLRU(maxIDs, nil) // fails only for size 0
	return ids
}
