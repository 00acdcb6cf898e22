package agent

import (
	"hash/maphash"
	"maps"
	"path"
	"slices"
	"strings"
	"unsafe"
)

// begun is a call that started: its edits, what was written for it, and its
// place in the order of the calls.
type begun struct {
	edits []Edit
	call  uint64
	wrote string
	place int
	size  int // about the bytes that it holds
}

// maxOpen bounds the bytes that all calls under way hold together. Agents run
// some ten calls at once, of some kilobytes each; the largest call that fits a
// line holds some 3 MB.
const maxOpen = 8 << 20

// openCost is about what a call under way costs in the map, without its content.
const openCost = 2 * (int(unsafe.Sizeof(begun{})) + 8)

// measure sets the size of a call by its content.
func (b *begun) measure() {
	b.size = openCost + len(b.wrote) + cap(b.edits)*int(unsafe.Sizeof(Edit{}))
	for _, e := range b.edits {
		b.size += len(e.Path) + 8*(cap(e.Added)+cap(e.Removed))
	}
}

// hash stands for a call's id or a path. It is seeded for each stream, so that
// no stream can be made in which two of them have the same.
func (t *tally) hash(s string) uint64 { return maphash.String(t.seed, s) }

// call counts a tool call once, and its edits when it ended with an effect.
func (t *tally) call(e Event) {
	id := t.hash(e.ID)
	if e.ID != "" && t.done.has(id) {
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
	if call := hashOf(e.Wrote); e.Wrote != "" && (call != b.call || b.wrote == "") { // most streams tell it twice
		head := e.Wrote[:min(len(e.Wrote), maxDeedText)]
		b.call, b.wrote = call, strings.Clone(shorten(head, maxDeedText))
	}
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
		t.done.add(id)
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
	for _, edit := range b.edits {
		t.edit(edit.Path)
	}
	if t.onDeed != nil {
		t.onDeed(Deed{Edits: b.edits, Call: b.call, Result: e.Result, Failed: e.Failed, Wrote: b.wrote})
	}
}

// maxFiles is for how many paths the edits are counted apart. Edits of further
// paths count as operations only.
const maxFiles = 20_000

func (t *tally) edit(p string) {
	t.rep.Edits.Operations++
	id := t.hash(p)
	n, known := t.files[id]
	if !known && len(t.files) >= maxFiles {
		return
	}
	t.files[id] = n + 1
	if n+1 > t.rep.Edits.MaxRepeat {
		t.rep.Edits.MaxRepeat, t.rep.Edits.MaxRepeatPath = n+1, p
	}
}

// settle counts the edits of calls that were still under way when the stream
// ended: they may well have been made.
func (t *tally) settle() {
	t.settleTo(0)
	t.rep.Edits.Files = len(t.files)
}

// settleTo takes calls under way for ended, in the order in which they began,
// until the others hold no more than size bytes. An end of theirs that comes
// later does not count.
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
			t.done.add(id)
		}
		t.ended(b, Event{})
	}
}

// maxPath is how many bytes of a path are kept, a quarter of Linux's PATH_MAX.
const maxPath = 1 << 10

// relative names a path within the checkout the way git does. The result holds
// no larger text in memory.
func relative(dir, p string) string {
	if len(p) > maxPath {
		p = p[:maxPath]
	}
	p = path.Clean(strings.ToValidUTF8(p, "\uFFFD"))
	if dir != "" {
		if rest, ok := strings.CutPrefix(p, path.Clean(dir)+"/"); ok {
			p = rest
		}
	}
	return strings.Clone(p)
}
