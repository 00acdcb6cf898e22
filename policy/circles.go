package policy

import (
	"hash/fnv"
	"time"
)

// Edit is one edit operation, as far as the stream, the session file or the tree shows it. Zero keys and nil lines
// are unknown.
type Edit struct {
	Path string
	// Key hashes the replaced and the new text, State the whole file afterwards. Equal texts have equal keys.
	Key, State uint64
	// Added and Removed hash the changed lines; with Whole, Added hashes all lines of the file.
	Added, Removed []uint64
	Whole          bool
}

// When edits and calls count as going in circles (docs/verdicts.md has the measurements).
const (
	// circledShare: 1/circledShare of an attempt's edits must repeat earlier content. In healthy sessions with at
	// least 8 edits the share is at most an eighth; in a cycle of up to 26 states it is a third of 40.
	circledShare = 3
	// churnTimes is how many times its remaining lines a file's edits must have written to count as churn.
	// 1/churnedShare of the attempt's edits must be in such files.
	churnTimes   = 6
	churnedShare = 2
	// manyFailures is how often the same call must fail with the same output. Healthy sessions had at most 2.
	manyFailures = 8
	// manyFailed is how often the same call must fail, whatever its output.
	manyFailed = 40
	// manyChecks is how often a call must have the same result after another edit. The largest count in 708 healthy
	// sessions was 6.
	manyChecks = 12
	// Pawl reports a call that had the same result ManyCalls times without an edit in between, and ends the attempt
	// after MaxCalls. The largest count in 708 healthy sessions was 5.
	ManyCalls = 8
	MaxCalls  = 20
)

// Bounds of a detector's memory. A full map starts empty again.
const (
	maxRemembered = 1 << 16
	maxCircleFile = 20_000
	maxWholeFiles = 256
	maxCallText   = 200
)

// Circles counts the signs that one attempt's edits and calls lead nowhere: repeated edits, files that return to an
// earlier state, lines that are added and removed again, repeated failures. An observation takes time in proportion
// to its lines, and memory is bounded. Use NewCircles.
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

// Call is a finished call that edited nothing.
type Call struct {
	// Key hashes the call with its arguments, Result its answer, zero if unknown.
	Key, Result uint64
	Failed      bool
	Silent      bool          // it had no output
	Text        string        // what the agent wrote to make the call
	Pause       time.Duration // between the end of the previous call and the start of this one; zero if unknown
}

// repeated counts one call with one result.
type repeated struct {
	row    int32 // occurrences since the last edit
	checks int32 // repetitions after another edit
	failed int32 // failures
	edits  int32 // the number of edits at the last occurrence
	waits  int32 // the number of waits at the last occurrence
}

// circledFile is the history of one path: its edits, those with known content, those since the last known state,
// the lines added and removed, and how many of them remain as a change.
type circledFile struct {
	edits, seen, unseen int
	churn, net          int
	nothing             int // its edits if they came to nothing
}

func NewCircles() *Circles {
	return &Circles{files: map[uint64]*circledFile{}, came: map[uint64]bool{}, lines: map[uint64]int{},
		results: map[uint64]repeated{}, failures: map[uint64]int{}, whole: map[uint64][]uint64{}}
}

// Edits returns the counts so far, the input of Judge.
func (c *Circles) Edits() Edits { return c.edits }

// Call counts a call. A repeated call after a wait, with no edit in between, polls and does not count.
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

// count adds an occurrence of the call. A call without output, such as a formatter, checks nothing.
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

// most updates the largest counts.
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
		// The edits since the last look at the file cannot be distinguished. They led where this one led.
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

// again remembers a key, unless it is zero, and reports whether it was known.
func (c *Circles) again(at, key uint64) bool {
	if key == 0 {
		return false
	}
	came := c.came[at]
	room(c.came, maxRemembered)[at] = true
	return came
}

// weigh compares the lines that edits wrote with the file's remaining change: a line that is added and removed
// again is no change.
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

// LinesWithout returns the lines of a that b does not have, counted as often as they occur.
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

// room empties a full map.
func room[V any](m map[uint64]V, most int) map[uint64]V {
	if len(m) >= most {
		clear(m)
	}
	return m
}

// Hash is the key of a text, 64-bit FNV-1a. The key of the empty text is not zero.
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
