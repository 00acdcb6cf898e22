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

// Bounds in bytes of the texts and of the session's id that a tally keeps.
const (
	MaxText      = 64 << 10
	maxSessionID = 256
)

// tally folds the events of one stream. What it remembers is bounded, whatever the stream holds, far above real
// sessions (335 kB lines, some hundred calls): see maxOpen, maxParallel and maxIDs.
type tally struct {
	rep    Report
	cli    Adapter
	dir    string
	seed   maphash.Seed
	open   []begun    // calls that are not answered yet, oldest first
	held   int        // the sizes of the open calls together
	onCall func(Call) // told of each call that ended; nil where nobody asks
	clock  clock
	// past holds the last call under each id, quoted the items that quote a limit. Both
	// are emptied with each session.
	past     *simplelru.LRU
	quoted   *simplelru.LRU
	spent    spending
	messages int
	working  bool   // the last turn has begun and not ended
	called   bool   // a call was begun, whether or not it was answered
	said     bool   // the last message came after the last call of the last turn
	did      int    // calls that ended with an effect
	notice   Event  // the last error that was not final
	step     *Event // the last step's end, in streams without a final event
	last     Kind
	failed   *Event
	now      time.Time // when the run ended
	zone     *time.Location
	well     bool   // the run ended well, and no work came after that
	answered bool   // said, when it ended well
	spurious string // an error that came after that without any work
	// background is what the agent started and did not wait for.
	background background
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
	t.background.add(e)
	if e.Session != "" {
		t.rep.SessionID = Shorten(e.Session, maxSessionID)
	}
	switch e.Kind {
	case TurnStarted:
		t.rep.Turns++
		t.working, t.rep.final, t.failed, t.said = true, false, nil, false
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
		ended := e // so that only this event outlives the call
		t.working, t.step = false, &ended
	case Finished, Failed:
		t.finish(e)
	}
	t.last = e.Kind
}

// newSession forgets the calls of the session before it. One that goes on under its id counts on.
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

// spending sums what the sessions of a stream used. Each tells its total so far, or its steps.
type spending struct {
	before, now       policy.Tokens // of the counts that were finished, and of the one that goes on
	beforeUSD, nowUSD float64
}

// anew begins a count.
func (s *spending) anew() {
	s.before, s.now = s.before.Plus(s.now), policy.Tokens{}
	s.beforeUSD, s.nowUSD = s.beforeUSD+s.nowUSD, 0
}

// tokens takes a total or a step. A total that is less than the last one is that of a new count.
func (s *spending) tokens(told policy.Tokens, step bool) policy.Tokens {
	switch {
	case step:
		told = s.now.Plus(told)
	case told.Input < s.now.Input, told.Output < s.now.Output:
		s.before = s.before.Plus(s.now)
	}
	s.now = told
	return s.before.Plus(told)
}

// cost takes a cost in US dollars as tokens does.
func (s *spending) cost(told float64, step bool) float64 {
	switch {
	case step:
		told += s.nowUSD
	case told < s.nowUSD:
		s.beforeUSD += s.nowUSD
	}
	s.nowUSD = told
	return s.beforeUSD + told
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
	says := strings.TrimSpace(e.Text) != ""
	if e.Delta && t.last == Message {
		t.said = t.said || says
		if len(t.rep.FinalMessage) <= MaxText {
			t.rep.FinalMessage = Shorten(t.rep.FinalMessage+e.Text, MaxText)
		}
		return
	}
	t.messages++
	t.said = says
	t.rep.FinalMessage = Shorten(e.Text, MaxText)
}

// after completes an error by the one before it, where no work came between:
// CLIs tell the class and the reset in one event and the text in the next.
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
		t.said, t.rep.FinalMessage = true, e.Text
	case e.Wordless:
		t.said = false
	}
	t.answered = t.said
}

// unearned reports whether a final event tells of nothing that was done, after a good end: a CLI that is asked for more
// than it knows fails, and undoes no work by that.
func (t *tally) unearned(e Event) bool {
	if !t.well || e.Kind != Failed {
		return false
	}
	if !e.Idle && !t.rep.final {
		return false
	}
	t.spurious = cmp.Or(e.Text, "an error without words")
	t.working, t.rep.final, t.said = false, true, t.answered
	return true
}

// isAnswer reports whether the last error is what stands for the answer of the run.
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

// begun is a call that was told and is not answered.
type begun struct {
	edits    []policy.Edit
	id       uint64 // the hash of the id under which the answer comes; named says that there is one
	named    bool
	place    uint64 // the hash of Event.Place
	call     uint64
	authored string
	pause    time.Duration // before it
	told     bool          // it was told when it began
	quoted   bool          // it counts as a mention of a limit
	again    bool          // it repeats the last call under its id that was answered, so it may be none
	size     int           // about the bytes that it holds
}

// Bounds of the calls under way: of their bytes and of their number. Agents run some ten at once, of some kilobytes;
// the largest that fits a line holds some 3 MB.
const (
	maxOpen     = 8 << 20
	maxParallel = 1 << 10
)

// maxCallText bounds the text of one call.
const maxCallText = 4 << 10

func (b *begun) measure() {
	b.size = int(unsafe.Sizeof(begun{})) + len(b.authored) + cap(b.edits)*int(unsafe.Sizeof(policy.Edit{}))
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

// hash stands for a call's id or place, seeded for each stream: none can be made in which two collide.
func (t *tally) hash(s string) uint64 { return maphash.String(t.seed, s) }

// ended is the last call under an id.
type ended struct {
	place, call uint64
	told        bool    // it was told when it began, too
	dropped     bool    // it was forgotten while it was under way
	early       *answer // which came before the call; nil once the call has it
}

// answer is what a call came to.
type answer struct {
	result                   uint64
	failed, rejected, silent bool
}

// call takes a call that begins or ends into account. It counts once it is answered; its id does no more than tell which
// call an answer is for, since agents and providers may give one id to all of them.
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
	t.called, t.said = true, false
	b := t.newCall(e)
	b.pause = t.clock.before(t.clock.now)
	b.told = true
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

// retold is the call under way that an event tells again, with more of its arguments perhaps; -1 for none.
func (t *tally) retold(e Event) int {
	id, place := t.hash(e.ID), t.hash(e.Place)
	return slices.IndexFunc(t.open, func(b begun) bool {
		if !b.named || b.id != id {
			return false
		}
		return b.place == place && b.continuedBy(e.Authored)
	})
}

// repeats reports whether the call, which an event begins, is the last answered one once more: in the same place, with the
// same arguments.
func (b begun) repeats(last ended, e Event) bool {
	if e.Place == "" {
		return false
	}
	return last.place == b.place && last.call == b.call
}

// continuedBy reports whether a text is the call's own text, or begins with it.
func (b begun) continuedBy(text string) bool {
	return policy.Hash(text) == b.call || strings.HasPrefix(text, strings.TrimRight(b.authored, `"]} `))
}

// doubt forgets calls that seemed to repeat an answered one, where another follows under their id.
func (t *tally) doubt(next begun) {
	for i := len(t.open) - 1; i >= 0; i-- {
		if t.open[i].again && t.open[i].id == next.id {
			t.remove(i)
		}
	}
}

// lastUnder is the last call under an id.
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

// fill adds what an event tells of a call. Most streams tell it twice, and some name the edits only at the start.
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

// keep takes a call for under way. Beyond the bounds the oldest are forgotten, with their edits.
func (t *tally) keep(at int, b begun) {
	b.measure()
	t.held += b.size
	t.open = slices.Insert(t.open, at, b)
	if t.held > maxOpen || len(t.open) > maxParallel {
		t.forget()
	}
}

// forget forgets the oldest half of the calls under way. Their answers count all the same.
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

// answer takes an answer for that of the oldest call that it can be for.
func (t *tally) answer(e Event) {
	b, open := t.take(e)
	if !open {
		last, _ := t.lastUnder(e.ID)
		if !t.stands(e, last) {
			return
		}
		t.called, t.said = true, false
		b = t.newCall(e)
		b.pause = t.clock.before(e.Began)
		b.told = last.dropped
	}
	t.fill(&b, e)
	t.end(b, answer{result: e.Result, failed: e.Failed, rejected: e.Rejected, silent: e.Silent})
	if e.Whole && e.Place != "" {
		t.past.Add(b.place, ended{})
	}
}

// take removes the call under way that an answer is for.
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

// stands reports whether an end is a call of its own although no call is under way that it could be of. An answer that
// came before its call is kept for it.
func (t *tally) stands(e Event, last ended) bool {
	switch {
	case last.dropped:
		return true
	case e.Whole && e.Place != "":
		return !t.past.Contains(t.hash(e.Place))
	case e.Whole:
		return !last.told // else its end is told twice
	case e.ID != "" && !t.past.Contains(t.hash(e.ID)):
		t.past.Add(t.hash(e.ID), ended{early: &answer{result: e.Result, failed: e.Failed, rejected: e.Rejected, silent: e.Silent}})
	}
	return false
}

// end counts a call that was answered.
func (t *tally) end(b begun, a answer) {
	if b.named {
		t.past.Add(b.id, ended{place: b.place, call: b.call, told: b.told})
	}
	t.rep.ToolCalls++
	t.clock.end = t.clock.now
	if a.rejected {
		b.edits = nil
	} else {
		t.did++
	}
	if t.onCall != nil {
		t.onCall(Call{Edits: b.edits, Key: b.call, Result: a.result, Failed: a.failed, Silent: a.silent, Authored: b.authored, Pause: b.pause})
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
