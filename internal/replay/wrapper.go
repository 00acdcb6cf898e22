package replay

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/pawlbot/pawl/internal/render"
)

// wrapper reads the log of a program that starts an agent again and again: lines "[time] [LEVEL] text" with the
// agent's JSON among them, lines without such a head going on. Which wrapper it was does not matter as long as
// it says when it executes, when the command completed and what it took for feedback.
type wrapper struct {
	rec     *recording
	objects objects
	now     time.Time
	info    bool     // the level of the line, which lines without a head keep
	run     *wrapped // the run that is being read; nil between runs
	// bullets says that the lines of a list of feedback follow.
	bullets bool
	// busy says that a run, or the end of one, stands before.
	busy bool
}

type wrapped struct {
	backend        string
	started, ended time.Time
	// whole: its beginning is in the log; the end of an earlier run tells nothing of how it went.
	whole   bool
	session string
	events  int
	over    bool // its final event was there
	failure apiFailure
	text    render.End // what it printed that is no JSON
}

func readWrapper(r io.Reader, at time.Time, rec *recording) error {
	rec.remark(at, false, "the wrapper was started")
	w := &wrapper{rec: rec}
	err := eachLine(r, w.line)
	w.close()
	return err
}

func (w *wrapper) line(line []byte) {
	at, level, text, headed := lineHead(line)
	if headed {
		w.now, w.info = at, level == "INFO"
	}
	readable := headed || !w.objects.open()
	if readable && w.mark(text) {
		return
	}
	if !w.info {
		return
	}
	if bytes.HasPrefix(text, []byte(`{"type":`)) {
		w.cut() // the rest of an object that is open is missing from the log
	}
	if !w.objects.piece(text, w.event) && w.run != nil {
		fmt.Fprintf(&w.run.text, "%s\n", text)
	}
}

func (w *wrapper) close() {
	w.cut()
	if w.run.underWay() {
		w.rec.note("The log ends before its last run does.")
	}
	w.end()
}

// underWay reports whether a run has begun to print and not come to its end.
func (r *wrapped) underWay() bool {
	if r == nil {
		return false
	}
	return r.events > 0 && !r.over
}

// cut hands on an object that stops in the middle.
func (w *wrapper) cut() {
	if w.objects.open() {
		w.event(w.objects.drop())
	}
}

// mark acts on a line by which the wrapper tells what it does, and reports whether it is one.
func (w *wrapper) mark(line []byte) bool {
	said := spoken(line)
	if w.bullets {
		if item, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("•")); ok {
			w.rec.remark(w.now, true, string(bytes.TrimSpace(item)))
			return true
		}
		w.bullets = len(said) == 0
	}
	if m := executing.FindStringSubmatch(said); m != nil {
		w.cut()
		w.begin(render.Line(strings.ToLower(strings.TrimSpace(m[1])), maxBackend))
		return true
	}
	switch {
	case strings.HasPrefix(said, "Streaming output:"):
		w.cut()
		w.streams()
	case completed.MatchString(said):
		w.cut()
		w.end()
	case strings.HasPrefix(said, "FEEDBACK DETECTED"):
		w.bullets = true
	case strings.HasPrefix(said, "Raw command executed:"):
		if w.busy { // somebody, or something that the log does not show, started the wrapper
			w.end()
			w.rec.remark(w.now, false, "the wrapper was started again")
		}
	default:
		return false
	}
	return true
}

// maxBackend bounds the name of a backend, in characters.
const maxBackend = 40

var (
	executing = regexp.MustCompile(`^Executing ([^:]*):`)
	// completed matches "Codex command completed" and the like.
	completed = regexp.MustCompile(`^[^ ]* command (?:completed|failed)`)
)

func (w *wrapper) begin(backend string) {
	w.end()
	w.busy = true
	w.run = &wrapped{
		backend: backend,
		started: w.now,
		whole:   true,
		text:    lastWords(),
	}
}

// streams is told before the first output of a run, which may have been announced.
func (w *wrapper) streams() {
	announced := w.run != nil && w.run.whole
	if announced && w.run.events == 0 {
		w.run.text = lastWords() // what stands between the two is the wrapper's own
		return
	}
	w.begin("")
}

func (w *wrapper) event(object []byte) {
	id, first, last := boundary(object)
	switch {
	case first && !w.run.has(id):
		w.begin("")
	case w.run == nil:
		// The log begins in the middle of a run, or goes on after its end.
		w.run, w.busy = &wrapped{started: w.now, text: lastWords()}, true
	}
	r := w.run
	if first {
		r.session = id
	}
	if r.events == 0 {
		r.started = w.now
	}
	r.events++
	r.ended = w.now
	r.over = r.over || last
	if object = r.failure.asOpencode(object); object != nil {
		w.rec.line(object)
	}
}

// has reports whether a session that begins belongs to the run.
func (r *wrapped) has(session string) bool {
	if r == nil || !r.whole {
		return false
	}
	if r.session == "" {
		return true
	}
	return r.session == session && !r.over
}

func (w *wrapper) end() {
	r := w.run
	if r == nil {
		return
	}
	w.run = nil
	cli := ""
	if r.events == 0 {
		r.ended, cli = w.now, "plain"
		w.rec.line([]byte(r.text.String()))
	}
	report := w.rec.inspect(cli, r.ended)
	if !r.whole {
		w.rec.mentions += report.Mentions
		if w.rec.attempts == 0 {
			w.rec.note("The log begins in the middle of a run, which is left out.")
		}
		return
	}
	w.rec.note(estimated)
	w.rec.attempt(r.backend, r.started, r.ended, report)
}

// head begins a line of the log: its time and level, behind a line number that grep may have put there.
var head = regexp.MustCompile(`^(?:\d{1,11}:)?\[([^\]]{1,62})\] \[([A-Z]+)\] ?`)

func lineHead(line []byte) (at time.Time, level string, text []byte, ok bool) {
	m := head.FindSubmatch(line)
	if m == nil {
		return at, "", line, false
	}
	at, err := time.Parse(time.RFC3339, string(m[1]))
	if err != nil {
		return at, "", line, false
	}
	return at.UTC(), string(m[2]), line[len(m[0]):], true
}

// maxMark bounds what is looked at for a mark: the lines are short.
const maxMark = 200

// spoken is the text of a line without the symbols before it.
func spoken(text []byte) string {
	if len(text) > maxMark {
		text = text[:maxMark]
	}
	return string(bytes.TrimLeftFunc(text, isSymbol))
}

func isSymbol(r rune) bool {
	switch r {
	case '{', '"':
		return false
	}
	return !unicode.IsLetter(r)
}

// lastWords keeps the end of what a program printed; its last words fit.
func lastWords() render.End { return render.End{Max: 32 << 10} }
