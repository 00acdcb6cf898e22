package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// Limits of pages that follow an attempt: log lines, update interval, connection time, number of pages.
const (
	logLines    = 200
	liveEvery   = time.Second
	liveTime    = 10 * time.Minute
	livesAtOnce = 64
)

// live is one update of a page that follows an attempt. Its texts are cleaned, and the script inserts them as plain
// text.
type live struct {
	N       int               `json:"n"`
	Elapsed string            `json:"elapsed"`
	Used    string            `json:"used"`
	Call    string            `json:"call"`
	Lines   []attempt.LogLine `json:"lines"`
	At      int64             `json:"at"`              // position where the log continues
	Note    string            `json:"note,omitempty"`  // why there is no log
	Changed bool              `json:"changed"`         // the thread changed since the page was rendered
	Ended   bool              `json:"ended,omitempty"` // no attempt is running
}

// following is the connection of one page that follows an attempt.
type following struct {
	p      *pages
	thread thread.ID
	seen   int64 // last event on the page
	seq    int64 // last known event
	events []thread.Event
	last   live
	log    *attempt.Transcript
}

// live sends server-sent events (WHATWG HTML standard, 9.2) about a running attempt.
func (p *pages) live(w http.ResponseWriter, r *http.Request) {
	t, ok := p.readable(w, r)
	if !ok {
		return
	}
	select {
	case p.lives <- struct{}{}:
		defer func() { <-p.lives }()
	default:
		w.Header().Set("Retry-After", "30")
		plain(w, http.StatusServiceUnavailable, "Too many open pages follow an attempt. Close one, or reload later.")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), liveTime)
	defer cancel()
	f := p.follows(t, r)
	defer f.close()
	guard(w.Header())
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // keeps nginx from buffering events
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for f.tell(ctx, w, r) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-p.Stopping:
			return
		}
	}
}

// follows starts at the position of the page or reconnecting browser.
func (p *pages) follows(t thread.ID, r *http.Request) *following {
	f := &following{p: p, thread: t}
	f.seen, _ = strconv.ParseInt(r.URL.Query().Get("seq"), 10, 64)
	f.last.At, _ = strconv.ParseInt(r.URL.Query().Get("at"), 10, 64)
	if at, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		f.last.At = at
	}
	f.last.At = max(0, f.last.At)
	return f
}

func (f *following) close() {
	if f.log != nil {
		_ = f.log.Close() // opened for reading only
	}
}

// tell sends the next update. It returns false if the attempt ended, the user lost access, the client left or a read
// failed.
func (f *following) tell(ctx context.Context, w http.ResponseWriter, r *http.Request) bool {
	if !f.mayRead(ctx, r) {
		return false
	}
	if err := f.look(ctx, f.seen); err != nil {
		f.p.Log.Warn().Err(err).Str("thread", f.thread.String()).Msg("a page stopped following the attempt; its browser reconnects")
		return false
	}
	out := http.NewResponseController(w)
	data, _ := json.Marshal(f.last)                      // never fails
	_ = out.SetWriteDeadline(time.Now().Add(headerTime)) // replaces the deadline of a page
	_, _ = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", f.last.At, data)
	if err := out.Flush(); err != nil {
		return false
	}
	return !f.last.Ended
}

// mayRead checks access again: the user may have signed out.
func (f *following) mayRead(ctx context.Context, r *http.Request) bool {
	if _, in, err := f.p.session(r); !in || err != nil {
		return false
	}
	may, err := f.p.mayRead(ctx, who(r), f.thread.Repo())
	return may && err == nil
}

func (f *following) look(ctx context.Context, seen int64) error {
	more, err := f.p.Store.Events(ctx, f.thread, f.seq)
	if err != nil {
		return err
	}
	if n := len(more); n > 0 {
		f.seq, f.events = more[n-1].Seq, append(f.events, more...)
	}
	s, err := thread.Fold(f.events)
	if err != nil {
		return err
	}
	a, running := s.Running()
	f.last = live{N: a.N, At: f.last.At, Call: f.last.Call, Changed: f.seq > seen && f.news(seen), Ended: !running}
	if !running {
		f.last.Changed = true
		return nil
	}
	f.last.Elapsed, f.last.Used = render.Span(f.p.Now().Sub(a.At)), f.p.spentSoFar(ctx, f.thread, a.N)
	if f.log == nil {
		if f.log, err = f.p.Transcript(f.thread, a.Started); err != nil {
			f.log, f.last.Note = nil, noLog(err)
			return nil
		}
	}
	f.last.Lines, f.last.At, err = f.log.After(f.last.At)
	f.last.Call = lastCall(f.last.Lines, f.last.Call)
	return err
}

// lastCall returns the last tool call in part of a log, or else before.
func lastCall(lines []attempt.LogLine, before string) string {
	for _, l := range slices.Backward(lines) {
		if l.Kind == attempt.Calls {
			return l.Text
		}
	}
	return before
}

// news reports whether events after seen change the page. Pawl's own acts at GitHub do not.
func (f *following) news(seen int64) bool {
	for _, e := range f.events {
		switch e.Kind {
		case thread.KindActStarted, thread.KindActDone, thread.KindAuthored, thread.KindPublished, thread.KindIgnored:
		default:
			if e.Seq > seen {
				return true
			}
		}
	}
	return false
}

// spentSoFar describes what a running attempt has used. It is empty while nothing is known.
func (p *pages) spentSoFar(ctx context.Context, t thread.ID, n int) string {
	note, err := p.Store.Noted(ctx, t)
	var s policy.Spent
	if err != nil || len(note) == 0 || json.Unmarshal(note, &s) != nil || s.N != n {
		return ""
	}
	return render.Joined(", ", tokens(s.Tokens.Input+s.Tokens.Output), render.Cost(s.CostUSD))
}

func noLog(err error) string {
	if errors.Is(err, attempt.ErrNoTranscript) {
		return "There is no log here: " + attempt.ErrNoTranscript.Error() + "."
	}
	return "The log cannot be read; the server's log says why."
}

// tail is the end of a log, or the part before a position.
type tail struct {
	N          int
	Lines      []attempt.LogLine
	Call       string // last tool call
	From, To   int64
	Note       string
	Thread     string
	Back, Path string // addresses of the thread's page and the log
}

func (p *pages) tailOf(t thread.ID, a thread.Started, before int64) tail {
	l := tail{N: a.N, Thread: render.Line(t.String(), maxName), Back: href(t), Path: href(t) + "/attempts/" + strconv.Itoa(a.N)}
	log, err := p.Transcript(t, a)
	if err == nil {
		defer log.Close()
		if l.To, err = log.Size(); err == nil {
			if before > 0 {
				l.To = min(before, l.To)
			}
			l.Lines, l.From, err = log.Before(l.To, logLines)
		}
	}
	if err != nil {
		l.Note = noLog(err)
		if !errors.Is(err, attempt.ErrNoTranscript) {
			p.Log.Error().Err(err).Str("thread", t.String()).Int("attempt", a.N).Msg("read the log of an attempt")
		}
	}
	l.Call = lastCall(l.Lines, "")
	return l
}

// started finds the attempt in a log's address.
func (p *pages) started(w http.ResponseWriter, r *http.Request) (t thread.ID, a thread.Started, ok bool) {
	if t, ok = p.readable(w, r); !ok {
		return t, a, false
	}
	n, _ := strconv.Atoi(r.PathValue("attempt"))
	events, err := p.Store.Events(r.Context(), t, 0)
	if err != nil {
		p.unavailable(w, r, err)
		return t, a, false
	}
	for _, e := range events { // works even for logs that cannot be folded
		if e.Kind == thread.KindAttemptStarted && read(e, &a) && a.N == n {
			return t, a, true
		}
	}
	p.message(w, r, http.StatusNotFound, nothingHere, noThread)
	return t, a, false
}

// log serves an attempt's log as a page, or earlier lines as JSON.
func (p *pages) log(w http.ResponseWriter, r *http.Request) {
	t, a, ok := p.started(w, r)
	if !ok {
		return
	}
	before, _ := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	l := p.tailOf(t, a, before)
	if r.URL.Query().Has("lines") {
		guard(w.Header())
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"lines": l.Lines, "from": l.From})
		return
	}
	p.render(w, http.StatusOK, "log.html", struct {
		frame
		Log tail
	}{p.frame(r, fmt.Sprintf("Log of attempt %d · %s", a.N, l.Thread), strings.Repeat("../", 6)), l})
}

// rawLog serves the agent's output with secrets masked.
func (p *pages) rawLog(w http.ResponseWriter, r *http.Request) {
	t, a, ok := p.started(w, r)
	if !ok {
		return
	}
	log, err := p.Transcript(t, a)
	if err != nil {
		p.message(w, r, http.StatusNotFound, nothingHere, noLog(err))
		return
	}
	defer log.Close()
	guard(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if _, err := log.WriteTo(w); err != nil && r.Context().Err() == nil {
		p.Log.Warn().Err(err).Msg("send a log")
	}
}
