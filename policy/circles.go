package policy

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

// What counts as going in circles. Measured on the edits of 138 healthy
// sessions (1,954 edits with known content; docs/verdicts.md has the table).
const (
	// nearEdits is how many edits of the same file may lie between an edit and
	// its repetition. A cycle of five states with an unrelated edit after each
	// needs 10; the one healthy session that made a whole batch of edits again,
	// after a person had taken them back, has 14.
	nearEdits = 12
	// minCircled is how many edits of one file must lead back. On healthy files
	// with at least 8 edits it was at most 1; eight edits in a cycle of five
	// states have 3.
	minCircled = 3
	// circledShare is the reciprocal of the share of a file's or an attempt's
	// edits that must lead back: healthy files with at least 8 edits reach a
	// tenth, cycles of up to five states at least 3 of 8.
	circledShare = 3
	// minRounds is how often the same must have come for the share of all edits
	// to count: twice may be one batch made again.
	minRounds = 3
	// manyRounds is twice the 3 times that the same edit came at most in 279
	// healthy sessions. From there on no share is asked for.
	manyRounds = 6
	// manyFailures is how often the same call must fail with the same output.
	// In healthy sessions it was at most 2.
	manyFailures = 8
)

// Bounds of what a detector remembers, so that 100,000 edits take no more
// memory than 30,000.
const (
	maxRemembered = 1 << 15
	maxCircleFile = 20_000
	maxWholeFiles = 256
)

// Circles watches the edits and calls of one attempt and counts what shows that
// they lead nowhere: the same edit again, a file that comes back to an earlier
// state, lines that are put back, the same failure again. Each observation costs
// time in proportion to its own lines, and memory is bounded. Make it with
// NewCircles.
type Circles struct {
	edits    Edits
	files    map[uint64]*circledFile
	made     remembered[trace]
	states   remembered[trace]
	lines    remembered[lineTrace]
	failures remembered[int]
	whole    map[uint64][]uint64
}

// circledFile is what is known of one path: its edits, those with known
// content, those that led back, and those since the last known state.
type circledFile struct {
	edits, seen, circled, unseen int
}

// trace is how often something came and at which edit of its file it came last.
type trace struct{ times, at int }

// lineTrace is whether a line was removed last, and at which edit of its file.
type lineTrace struct {
	removed bool
	at      int
}

// NewCircles returns a detector that has seen nothing.
func NewCircles() *Circles {
	return &Circles{files: map[uint64]*circledFile{}, whole: map[uint64][]uint64{}}
}

// Edits returns the counts so far. They are all that Judge needs.
func (c *Circles) Edits() Edits { return c.edits }

// Call takes the end of a call that edited nothing. Keys are those of the call
// with its arguments and of what it answered.
func (c *Circles) Call(key, result uint64, failed bool) {
	if !failed || key == 0 {
		return
	}
	n := c.failures.get(Mix(key, result)) + 1
	c.failures.put(Mix(key, result), n)
	c.edits.SameFailures = max(c.edits.SameFailures, n)
}

// Edit takes one edit operation.
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
	c.rank(f, e.Path)
}

// observe decides whether an edit led back to something that was there before.
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
	again := e.Key != 0 && c.came(&c.made, Mix(path, e.Key), f.edits)
	returned := e.State != 0 && c.came(&c.states, Mix(path, e.State), f.edits)
	if c.putBack(path, f.edits, e) {
		returned = true
	}
	switch {
	case again:
		c.edits.Again += n
	case returned:
		c.edits.Returned += n
	default:
		return
	}
	f.circled += n
}

// came remembers that something came at an edit of a file and reports whether
// it came a short while before as well.
func (c *Circles) came(m *remembered[trace], key uint64, at int) bool {
	t := m.get(key)
	near := t.times > 0 && at-t.at <= nearEdits
	t.times, t.at = t.times+1, at
	m.put(key, t)
	c.edits.Rounds = max(c.edits.Rounds, t.times)
	return near
}

// putBack reports whether at least half of the lines that an edit adds were
// removed from the same file a short while ago.
func (c *Circles) putBack(path uint64, at int, e Edit) bool {
	added, removed := e.Added, e.Removed
	if e.Whole {
		before, known := c.whole[path]
		if len(c.whole) >= maxWholeFiles {
			clear(c.whole)
		}
		c.whole[path] = e.Added
		if !known {
			return false
		}
		added, removed = LinesWithout(e.Added, before), LinesWithout(before, e.Added)
	}
	back := 0
	for _, l := range added {
		if t := c.lines.get(Mix(path, l)); t.removed && at-t.at <= nearEdits {
			back++
		}
	}
	for _, l := range removed {
		c.lines.put(Mix(path, l), lineTrace{removed: true, at: at})
	}
	for _, l := range added {
		c.lines.put(Mix(path, l), lineTrace{at: at})
	}
	return back > 0 && 2*back >= len(added)
}

// rank keeps the file that goes in circles most. One that has left its circle
// makes room for the next one that is edited.
func (c *Circles) rank(f *circledFile, path string) {
	e := &c.edits
	circling := f.circled >= minCircled && circledShare*f.circled >= f.edits
	switch {
	case circling && (path == e.CirclePath || f.circled > e.CircleEdits):
		e.CirclePath, e.CircleEdits, e.CircleOf = path, f.circled, f.edits
	case !circling && path == e.CirclePath:
		e.CirclePath, e.CircleEdits, e.CircleOf = "", 0, 0
	}
}

// LinesWithout returns the lines of a that are not among those of b, counted as often
// as they occur.
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

// remembered is a map that forgets what was not used for long: when the newer
// half is full it becomes the older one.
type remembered[V any] struct{ newer, older map[uint64]V }

func (m *remembered[V]) get(key uint64) V {
	if v, ok := m.newer[key]; ok {
		return v
	}
	return m.older[key]
}

func (m *remembered[V]) put(key uint64, v V) {
	if m.newer == nil || len(m.newer) >= maxRemembered {
		m.older, m.newer = m.newer, map[uint64]V{}
	}
	m.newer[key] = v
}

// Hash is the key of a text: 64-bit FNV-1a, here without the interface of hash/fnv.
// That of the empty text is not zero.
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// Mix joins two keys into one; their order matters (the finaliser of MurmurHash3).
func Mix(a, b uint64) uint64 {
	h := a*31 ^ b*0x9e3779b97f4a7c15
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
