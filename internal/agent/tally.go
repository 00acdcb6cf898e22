package agent

import (
	"maps"
	"path"
	"slices"
	"strings"
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
	dir  string
	open map[string][]string // calls that started and have not ended: their paths
	// done holds the calls that ended; both maps are emptied with each session,
	// because ids are unique within one.
	done     map[string]bool
	quoted   map[string]bool
	files    map[string]int
	messages int
	working  bool  // the last turn has begun and not ended
	notice   Event // the last error that was not final
	failed   *Event
	garbage  int
}

func newTally(cli, dir string) *tally {
	t := &tally{dir: dir, files: map[string]int{}}
	t.rep.CLI = cli
	t.forget()
	return t
}

func (t *tally) forget() {
	t.open, t.done, t.quoted = map[string][]string{}, map[string]bool{}, map[string]bool{}
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
	if e.Cost != nil {
		t.rep.CostUSD = e.Cost
	}
	if e.Tokens != nil {
		t.rep.Tokens = *e.Tokens
	}
	switch e.Kind {
	case SessionStarted:
		t.settle()
		t.forget()
		t.rep.SessionID = e.ID
	case TurnStarted:
		t.rep.Turns++
		t.working, t.rep.final, t.failed, t.notice = true, false, nil, Event{}
	case Message:
		t.messages++
		t.rep.FinalMessage = shorten(e.Text, maxText)
		t.notice = Event{}
	case ToolCall:
		t.call(e)
		t.notice = Event{}
	case Notice:
		if e.Text != "" {
			t.notice = e
		}
	case Finished:
		t.working, t.rep.final, t.failed = false, true, nil
	case Failed:
		e.Text = shorten(e.Text, maxText)
		t.working, t.rep.final, t.failed = false, true, &e
	}
}

// call counts a tool call once, and its edits when it ended with an effect.
func (t *tally) call(e Event) {
	if t.done[e.ID] && e.ID != "" {
		return
	}
	_, started := t.open[e.ID]
	if !started || e.ID == "" {
		t.rep.ToolCalls++
	}
	if !e.Done {
		if len(t.open) < maxCalls {
			t.open[e.ID] = e.Paths
		}
		return
	}
	delete(t.open, e.ID)
	if e.ID != "" && len(t.done) < maxCalls {
		t.done[e.ID] = true
	}
	if !e.Rejected {
		t.edit(e.Paths)
	}
}

func (t *tally) edit(paths []string) {
	for _, p := range paths {
		t.rep.Edits.Operations++
		p = relative(t.dir, p)
		n, known := t.files[p]
		if !known && len(t.files) >= maxFiles {
			continue
		}
		t.files[p] = n + 1
		if n+1 > t.rep.Edits.MaxRepeat {
			t.rep.Edits.MaxRepeat, t.rep.Edits.MaxRepeatPath = n+1, p
		}
	}
}

// settle counts the edits of calls that were still under way when the stream
// ended: they may well have been made.
func (t *tally) settle() {
	for _, id := range slices.Sorted(maps.Keys(t.open)) {
		t.edit(t.open[id])
	}
	clear(t.open)
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
