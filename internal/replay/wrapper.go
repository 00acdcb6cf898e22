package replay

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawlbot/pawl/internal/text"
)

// wrapper reads the log of a program that starts an agent again and again: lines "[time] [LEVEL] text" with the
// agent's JSON among them, lines without such a head going on. Which wrapper it was does not matter as long as
// it says when it executes, when the command completed and what it took for feedback.
type wrapper struct {
	rec     *recorder
	objects objects
	now     time.Time
	info    bool     // the level of the line, which lines without a head keep
	run     *wrapped // the run that is being read; nil between runs
	// bullets says that the lines of a list of feedback follow.
	bullets bool
	spool   *spool
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
	text    text.End // what it printed that is no JSON
}

func readWrapper(r io.Reader, at time.Time, rec *recorder, s *spool) error {
	if err := rec.remark(at, false, "the wrapper was started"); err != nil {
		return err
	}
	w := &wrapper{rec: rec, spool: s}
	if err := eachLine(r, w.line); err != nil {
		return err
	}
	return w.close()
}

func (w *wrapper) line(line []byte) error {
	at, level, text, headed := lineHead(line)
	if headed {
		w.now, w.info = at, level == "INFO"
	}
	if !w.objects.open() || headed {
		marked, err := w.mark(text)
		if marked || err != nil {
			return err
		}
	}
	if !w.info {
		return nil
	}
	if bytes.HasPrefix(text, []byte(`{"type":`)) {
		// The rest of an object that is open is missing from the log.
		if err := w.cut(); err != nil {
			return err
		}
	}
	took, err := w.objects.piece(text, w.event)
	if !took && w.run != nil {
		fmt.Fprintf(&w.run.text, "%s\n", text)
	}
	return err
}

func (w *wrapper) close() error {
	if err := w.cut(); err != nil {
		return err
	}
	if w.run != nil && w.run.events > 0 && !w.run.over {
		w.rec.note("The log ends before its last run does.")
	}
	return w.end()
}

// cut hands on an object that stops in the middle.
func (w *wrapper) cut() error {
	if !w.objects.open() {
		return nil
	}
	return w.event(w.objects.drop())
}

// mark acts on a line by which the wrapper tells what it does.
func (w *wrapper) mark(text []byte) (bool, error) {
	said := spoken(text)
	if w.bullets {
		if item, ok := bullet(text); ok {
			return true, w.rec.remark(w.now, true, item)
		}
		w.bullets = len(said) == 0
	}
	agent, _, executing := strings.Cut(strings.TrimPrefix(said, "Executing "), ":")
	executing = executing && strings.HasPrefix(said, "Executing ")
	streaming := strings.HasPrefix(said, "Streaming output:")
	if executing || streaming || completed(said) {
		if err := w.cut(); err != nil {
			return true, err
		}
	}
	switch {
	case executing:
		return true, w.begin(backendName(agent))
	case streaming:
		if w.run != nil && w.run.whole && w.run.events == 0 {
			// What stands between the two is the wrapper's own.
			w.run.text = lastWords()
			return true, nil
		}
		return true, w.begin("")
	case completed(said):
		return true, w.end()
	case strings.HasPrefix(said, "FEEDBACK DETECTED"):
		w.bullets = true
		return true, nil
	case strings.HasPrefix(said, "Raw command executed:"):
		// Somebody, or something that the log does not show, started the wrapper.
		if !w.busy {
			return true, nil
		}
		if err := w.end(); err != nil {
			return true, err
		}
		return true, w.rec.remark(w.now, false, "the wrapper was started again")
	}
	return false, nil
}

// completed matches "Codex command completed" and the like.
func completed(said string) bool {
	_, rest, ok := strings.Cut(said, " ")
	return ok && (strings.HasPrefix(rest, "command completed") || strings.HasPrefix(rest, "command failed"))
}

func (w *wrapper) begin(backend string) error {
	if err := w.end(); err != nil {
		return err
	}
	w.run, w.busy = &wrapped{backend: backend, started: w.now, whole: true, text: lastWords()}, true
	return nil
}

func (w *wrapper) event(object []byte) error {
	id, first, last := boundary(object)
	r := w.run
	switch {
	case first && (r == nil || !r.whole || r.session != "" && (r.session != id || r.over)):
		if err := w.begin(""); err != nil {
			return err
		}
	case r == nil:
		// The log begins in the middle of a run, or goes on after its end.
		w.run, w.busy = &wrapped{started: w.now, text: lastWords()}, true
	}
	r = w.run
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
		w.spool.line(object)
	}
	return nil
}

func (w *wrapper) end() error {
	r := w.run
	if r == nil {
		return nil
	}
	w.run = nil
	cli := ""
	if r.events == 0 {
		r.ended, cli = w.now, "plain"
		w.spool.line([]byte(r.text.String()))
	}
	report, err := w.spool.inspect(cli, r.ended)
	if err != nil {
		return err
	}
	if !r.whole {
		w.rec.mentions += report.Mentions
		if w.rec.attempts == 0 {
			w.rec.note("The log begins in the middle of a run, which is left out.")
		}
		return nil
	}
	w.rec.note(estimated)
	return w.rec.attempt(r.backend, r.started, r.ended, report)
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
	return string(bytes.TrimLeftFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '{' && r != '"' }))
}

func bullet(text []byte) (string, bool) {
	text = bytes.TrimSpace(text)
	r, n := utf8.DecodeRune(text)
	if r != '•' {
		return "", false
	}
	return string(bytes.TrimSpace(text[n:])), true
}

// lastWords keeps the end of what a program printed; its last words fit.
func lastWords() text.End { return text.End{Max: 32 << 10} }
