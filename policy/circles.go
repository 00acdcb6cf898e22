package policy

import (
	"hash/fnv"
	"time"
)

// Edit is one edit operation as the stream, the session file or the tree shows it. Zero keys and nil lines are
// unknown.
type Edit struct {
	Path string
	// Key hashes the replaced and the new text. State hashes the whole file afterwards.
	Key, State uint64
	// Added and Removed hash the changed lines. If Whole, Added hashes all lines of the file.
	Added, Removed []uint64
	Whole          bool
}

// Thresholds for edits and calls that go in circles (measurements: docs/verdicts.md).
const (
	// An attempt goes in circles if 1/circledShare of its edits repeat earlier content. Healthy sessions reach an
	// eighth; a cycle of 26 states reaches a third of 40 edits.
	circledShare = 3
	// An attempt also goes in circles if 1/churnedShare of its edits are churn. A file's edits are churn if they wrote
	// at least churnTimes the lines that remain changed.
	churnTimes   = 6
	churnedShare = 2
	// manyFailures limits identical calls with identical failures. Healthy sessions had at most 2.
	manyFailures = 8
	// manyFailed limits failures of one call, whatever its output.
	manyFailed = 40
	// manyChecks limits equal results of one call after edits. 708 healthy sessions reached at most 6.
	manyChecks = 12
	// Pawl reports a call with ManyCalls equal results and no edit in between, and ends the attempt after MaxCalls. 708
	// healthy sessions reached at most 5.
	ManyCalls = 8
	MaxCalls  = 20
)

// Memory limits of a detector. A full map is emptied.
const (
	maxRemembered = 1 << 16
	maxCircleFile = 20_000
	maxWholeFiles = 256
	maxCallText   = 200
)

// Circles counts edits and calls of one attempt that lead nowhere: repeated edits, files that return to an earlier
// state, lines added and removed again, repeated failures. Memory is bounded. Use NewCircles.
type Circles struct {
	edits       Edits
	files       map[uint64]*circledFile
	came        map[uint64]bool
	lines       map[uint64]int
	results     map[uint64]repeated // by the call and its result
	failures    map[uint64]int      // by the call
	waits       int32               // the number of times the agent waited
	whole       map[uint64][]uint64
	churnedMost int // the churned edits of CirclePath
}

// Call is a finished tool call that edits nothing.
type Call struct {
	// Key hashes the call with its arguments. Result hashes the answer; zero if unknown.
	Key, Result uint64
	Failed      bool
	Silent      bool          // it had no output
	Text        string        // the call as the agent wrote it
	Pause       time.Duration // since the previous call's end; zero if unknown
}

// repeated counts one call with one result.
type repeated struct {
	row    int32 // occurrences since the last edit
	checks int32 // repetitions after another edit
	failed int32 // failures
	edits  int32 // the number of edits at the last occurrence
	waits  int32 // the number of waits at the last occurrence
}

// circledFile counts one path's edits: all, those with known content, those since the last known state. It also
// counts the lines that edits wrote, and those that remain as a change.
type circledFile struct {
	edits, seen, unseen int
	churn, net          int
	nothing             int // the edits if they are churn; else 0
}

func NewCircles() *Circles {
	return &Circles{files: map[uint64]*circledFile{}, came: map[uint64]bool{}, lines: map[uint64]int{},
		results: map[uint64]repeated{}, failures: map[uint64]int{}, whole: map[uint64][]uint64{}}
}

// Edits returns the counts for Judge.
func (c *Circles) Edits() Edits { return c.edits }

// Call counts a call. A repeated call after a wait, with no edit since, is polling and does not count.
func (c *Circles) Call(call Call) {
	parsed := readCall(call.Text)
	if parsed.waits() {
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
		r.count(call, parsed, came && edited)
		c.most(call, r)
	}
	room(c.results, maxRemembered)[at] = r
}

// count adds a call. A call without output, such as a formatter, checks nothing.
func (r *repeated) count(call Call, parsed parsedCall, afterEdit bool) {
	r.row++
	if afterEdit {
		r.row = 1
	}
	checks := !call.Silent && !parsed.looks()
	if afterEdit && checks {
		r.checks++
	}
	if call.Failed {
		r.failed++
	}
}

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
		// Edits since the last known state are counted with this one.
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

// again remembers a nonzero key and reports whether it was known.
func (c *Circles) again(at, key uint64) bool {
	if key == 0 {
		return false
	}
	came := c.came[at]
	room(c.came, maxRemembered)[at] = true
	return came
}

// weigh compares the lines that edits wrote with the remaining change. A line added and removed again is not a change.
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

// LinesWithout returns the lines of a that are not in b, with multiplicity.
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

func room[V any](m map[uint64]V, most int) map[uint64]V {
	if len(m) >= most {
		clear(m)
	}
	return m
}

// Hash returns a text's 64-bit FNV-1a hash.
func Hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// Mix joins two keys in order (MurmurHash3's finaliser).
func Mix(a, b uint64) uint64 {
	h := a*31 ^ b*0x9e3779b97f4a7c15
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
