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

// wrapper reads the log of a program that restarts an agent: lines "[time] [LEVEL] text" with the agent's JSON between
// them. Lines without such a head continue the previous line. The wrapper must log the start and the end of each
// command, and the feedback that it detects.
type wrapper struct {
	rec     *recording
	objects objects
	now     time.Time
	info    bool     // the line's level; lines without a head keep it
	run     *wrapped // nil between runs
	// bullets means that lines of a feedback list follow.
	bullets bool
	// busy means that a run began earlier in the log.
	busy bool
}

type wrapped struct {
	backend        string
	started, ended time.Time
	// whole means that the log has the run's beginning.
	whole   bool
	session string
	events  int
	over    bool // the run had its final event
	failure apiFailure
	text    render.End // output that is not JSON
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
		w.cut() // the rest of an open object is missing
	}
	if !w.objects.piece(text, w.event) && w.run != nil {
		fmt.Fprintf(&w.run.text, "%s\n", text)
	}
}

func (w *wrapper) close() {
	w.cut()
	if w.run.underWay() {
		w.rec.note("The log ends during its last run.")
	}
	w.end()
}

// underWay reports whether a run has output but no end.
func (r *wrapped) underWay() bool {
	if r == nil {
		return false
	}
	return r.events > 0 && !r.over
}

func (w *wrapper) cut() {
	if w.objects.open() {
		w.event(w.objects.drop())
	}
}

// mark handles a line about the wrapper's own actions. It returns false for other lines.
func (w *wrapper) mark(line []byte) bool {
	text := withoutSymbols(line)
	if w.bullets {
		if item, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("•")); ok {
			w.rec.remark(w.now, true, string(bytes.TrimSpace(item)))
			return true
		}
		w.bullets = len(text) == 0
	}
	if m := executing.FindStringSubmatch(text); m != nil {
		w.cut()
		w.begin(render.Line(strings.ToLower(strings.TrimSpace(m[1])), maxBackend))
		return true
	}
	switch {
	case strings.HasPrefix(text, "Streaming output:"):
		w.cut()
		w.streams()
	case completed.MatchString(text):
		w.cut()
		w.end()
	case strings.HasPrefix(text, "FEEDBACK DETECTED"):
		w.bullets = true
	case strings.HasPrefix(text, "Raw command executed:"):
		if w.busy { // a user, or something outside the log, restarted the wrapper
			w.end()
			w.rec.remark(w.now, false, "the wrapper was started again")
		}
	default:
		return false
	}
	return true
}

const maxBackend = 40

var (
	executing = regexp.MustCompile(`^Executing ([^:]*):`)
	// completed matches "Codex command completed" and similar lines.
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

// streams handles the first output of a run, which the log may have announced.
func (w *wrapper) streams() {
	announced := w.run != nil && w.run.whole
	if announced && w.run.events == 0 {
		w.run.text = lastWords() // the text since the announcement is the wrapper's
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
		// The log begins in the middle of a run, or continues after its end.
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

// has reports whether a new session belongs to the run.
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
			w.rec.note("The log begins in the middle of a run, which is ignored.")
		}
		return
	}
	w.rec.note(estimated)
	w.rec.attempt(r.backend, r.started, r.ended, report)
}

// head matches a log line's time and level, after an optional line number from grep.
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

const maxMark = 200

// withoutSymbols returns a line's text without leading symbols.
func withoutSymbols(text []byte) string {
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

func lastWords() render.End { return render.End{Max: 32 << 10} }
