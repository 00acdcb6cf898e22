package policy

import (
	"hash/fnv"
	"time"
)

// Edit is one edit operation, as far as a stream, a session file or the tree
// tells it. Zero keys and nil lines are unknown.
type Edit struct {
	Path string
	// Key stands for what was replaced by what, State for the content of the
	// whole file afterwards. Equal texts have equal keys.
	Key, State uint64
	// Added and Removed stand for the lines that it changed; with Whole, Added
	// stands for all lines of the file.
	Added, Removed []uint64
	Whole          bool
}

// What counts as going in circles (docs/verdicts.md has the measurements).
const (
	// circledShare is the reciprocal of the share of an attempt's edits that must
	// have made again what had been there: in healthy sessions with at least 8
	// edits it is at most an eighth, in a cycle of up to 26 states a third of 40.
	circledShare = 3
	// churnTimes is how many times the lines that remain of a file's edits must
	// have been written for its edits to come to nothing, and churnedShare the
	// reciprocal of the share of the attempt's edits in such files.
	churnTimes   = 6
	churnedShare = 2
	// manyFailures is how often the same call must fail with the same output.
	// In healthy sessions it was at most 2.
	manyFailures = 8
	// manyFailed is how often the same call must fail, whatever its output.
	manyFailed = 40
	// manyChecks is how often a call must have the same result after yet another edit. The largest count in 708
	// healthy sessions was 6.
	manyChecks = 12
	// ManyCalls is how often one call must have the same result, with no edit in between, before Pawl reports
	// it, and MaxCalls how often before the attempt ends. The largest count in 708 healthy sessions was 5.
	ManyCalls = 8
	MaxCalls  = 20
)

// Bounds of what a detector remembers. What is full begins anew.
const (
	maxRemembered = 1 << 16
	maxCircleFile = 20_000
	maxWholeFiles = 256
	maxCallText   = 200
)

// Circles watches the edits and calls of one attempt and counts what shows that they lead nowhere: the same
// edit again, a file that comes back to an earlier state, lines that are written and taken out again, the
// same failure again. Each observation costs time in proportion to its own lines, and memory is bounded. Make
// it with NewCircles.
type Circles struct {
	edits       Edits
	files       map[uint64]*circledFile
	came        map[uint64]bool
	lines       map[uint64]int
	results     map[uint64]repeated // by the call and its result
	failures    map[uint64]int      // by the call
	waits       int32               // how often the agent waited
	whole       map[uint64][]uint64
	churnedMost int // the number of edits of CirclePath
}

// Call is a call that ended and edited nothing.
type Call struct {
	// Key stands for the call with its arguments, Result for its answer, zero where unknown.
	Key, Result uint64
	Failed      bool
	Silent      bool          // it answered nothing
	Text        string        // what the agent wrote to make the call
	Pause       time.Duration // between the end of the call before it and its own begin; zero where unknown
}

// repeated is what is known of a call with one result.
type repeated struct {
	row    int32 // how often it came since the last edit
	checks int32 // how often it came again after another edit
	failed int32 // how often the call failed so
	edits  int32 // the number of edits when it last came
	waits  int32 // the number of waits when it last came
}

// circledFile is what is known of one path: its edits, those with known content, those since the last known
// state, the lines that were added and taken out, and how many of them remain as a change.
type circledFile struct {
	edits, seen, unseen int
	churn, net          int
	nothing             int // its edits, where they came to nothing
}

func NewCircles() *Circles {
	return &Circles{files: map[uint64]*circledFile{}, came: map[uint64]bool{}, lines: map[uint64]int{},
		results: map[uint64]repeated{}, failures: map[uint64]int{}, whole: map[uint64][]uint64{}}
}

// Edits returns the counts so far. They are all that Judge needs.
func (c *Circles) Edits() Edits { return c.edits }

// Call counts a call. A call that comes again after a wait, with no edit in between, polls and does not count.
func (c *Circles) Call(call Call) {
	said := readCall(call.Text)
	if said.waits() {
		c.waits++
	}
	if call.Key == 0 || call.Result == 0 {
		return
	}
	at := Mix(call.Key, call.Result)
	r, came := c.results[at]
	edits := int32(c.edits.Operations)
	waited := r.waits != c.waits || call.Pause >= minPause
	edited := r.edits != edits
	r.edits, r.waits = edits, c.waits
	polls := came && waited && !edited
	if !polls {
		r.count(call, said, came && edited)
		c.most(call, r)
	}
	room(c.results, maxRemembered)[at] = r
}

// count takes one more occurrence of the call into account. What answers nothing, as a formatter does, checks nothing.
func (r *repeated) count(call Call, said spoken, afterEdit bool) {
	r.row++
	if afterEdit {
		r.row = 1
	}
	checks := !call.Silent && !said.looks()
	if afterEdit && checks {
		r.checks++
	}
	if call.Failed {
		r.failed++
	}
}

// most keeps the counts of the call where they are the largest so far.
func (c *Circles) most(call Call, r repeated) {
	text := call.Text[:min(len(call.Text), maxCallText)]
	larger := func(n int, count *int, name *string) {
		if n > *count {
			*count, *name = n, text
		}
	}
	larger(int(r.row), &c.edits.SameCalls, &c.edits.SameCall)
	larger(int(r.checks), &c.edits.SameChecks, &c.edits.SameCheck)
	if !call.Failed {
		return
	}
	room(c.failures, maxRemembered)[call.Key]++
	c.edits.SameFailures = max(c.edits.SameFailures, int(r.failed))
	larger(c.failures[call.Key], &c.edits.Failures, &c.edits.FailedCall)
}

func (c *Circles) Edit(e Edit) {
	c.edits.Operations++
	path := Hash(e.Path)
	f := c.files[path]
	if f == nil {
		if len(c.files) >= maxCircleFile {
			return
		}
		f = &circledFile{}
		c.files[path] = f
		c.edits.Files++
	}
	f.edits++
	if f.edits > c.edits.MaxRepeat || e.Path == c.edits.MaxRepeatPath {
		c.edits.MaxRepeat, c.edits.MaxRepeatPath = f.edits, e.Path
	}
	c.observe(path, f, e)
	if e.Path == c.edits.MaxRepeatPath {
		c.edits.MaxRepeatSeen = f.seen
	}
	c.sum(f, e.Path)
}

func (c *Circles) observe(path uint64, f *circledFile, e Edit) {
	if e.Key == 0 && e.State == 0 {
		f.unseen++
		return
	}
	n := 1
	if e.Key == 0 {
		// The file was looked at too late to tell the edits since the last look
		// apart. They led where this one led.
		n += f.unseen
		f.unseen = 0
	}
	f.seen += n
	c.edits.Seen += n
	again, returned := c.again(Mix(path, e.Key), e.Key), c.again(Mix(^path, e.State), e.State)
	c.weigh(path, f, e)
	switch {
	case again:
		c.edits.Again += n
	case returned:
		c.edits.Returned += n
	}
}

// again remembers that something came, unless it is unknown, and reports whether it had come before.
func (c *Circles) again(at, key uint64) bool {
	if key == 0 {
		return false
	}
	came := c.came[at]
	room(c.came, maxRemembered)[at] = true
	return came
}

// weigh sets the lines that an edit changed against what remains of the file's
// changes: a line that is taken out after it was added is no change.
func (c *Circles) weigh(path uint64, f *circledFile, e Edit) {
	added, removed := e.Added, e.Removed
	if e.Whole {
		before, known := c.whole[path]
		room(c.whole, maxWholeFiles)[path] = e.Added
		if !known {
			return
		}
		added, removed = LinesWithout(e.Added, before), LinesWithout(before, e.Added)
	}
	change := func(lines []uint64, by int) {
		for _, l := range lines {
			balance := c.lines[Mix(path, l)]
			room(c.lines, maxRemembered)[Mix(path, l)] = balance + by
			f.net += max(balance+by, -balance-by) - max(balance, -balance)
		}
		f.churn += len(lines)
	}
	change(removed, -1)
	change(added, 1)
}

func (c *Circles) sum(f *circledFile, path string) {
	c.edits.Churned -= f.nothing
	f.nothing = 0
	if f.churn > 0 && churnTimes*f.net <= f.churn {
		f.nothing = f.edits
	}
	c.edits.Churned += f.nothing
	if path == c.edits.CirclePath || f.nothing > c.churnedMost {
		c.edits.CirclePath, c.churnedMost = path, f.nothing
	}
}

// LinesWithout returns the lines of a that are not among those of b, counted as often as they occur.
func LinesWithout(a, b []uint64) []uint64 {
	left := make(map[uint64]int, len(b))
	for _, l := range b {
		left[l]++
	}
	var rest []uint64
	for _, l := range a {
		if left[l] > 0 {
			left[l]--
			continue
		}
		rest = append(rest, l)
	}
	return rest
}

// room is a map with room for another key: one that is full is emptied.
func room[V any](m map[uint64]V, most int) map[uint64]V {
	if len(m) >= most {
		clear(m)
	}
	return m
}

// Hash is the key of a text, 64-bit FNV-1a. That of the empty text is not zero.
func Hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// Mix joins two keys into one; their order matters (the finaliser of MurmurHash3).
func Mix(a, b uint64) uint64 {
	h := a*31 ^ b*0x9e3779b97f4a7c15
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
