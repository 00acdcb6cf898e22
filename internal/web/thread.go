package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Limits of a thread's page, which shows the newest first.
const (
	maxItems   = 300
	maxEvents  = 200
	maxReasons = 30
)

type threadData struct {
	frame
	summary
	Path          string
	Wake          time.Time
	View          checkrun.View // zero if the thread cannot be shown
	Verdicts      []verdict
	Runs          []run
	EarlierItems  int
	Live          *tail       // end of the running attempt's log, or nil
	Steer         *steerField // nil without a running attempt
	Elapsed, Used string
	Seq           int64 // last event
	Buttons       []button
	Events        []thread.Event
	EarlierEvents int

	repoURL string
}

type verdict struct {
	Name, Text, Class string
	Reasons           []string
}

// noThread answers for missing and unreadable threads alike.
const noThread = "There is nothing here that you may see."

func threadOf(r *http.Request) (thread.ID, error) {
	return thread.Parse(r.PathValue("owner") + "/" + r.PathValue("repo") + "#" + r.PathValue("n"))
}

// readable returns a request's thread if the user may see it; otherwise, it has answered the request.
func (p *pages) readable(w http.ResponseWriter, r *http.Request) (t thread.ID, ok bool) {
	t, err := threadOf(r)
	if err == nil {
		if ok, err = p.mayRead(r.Context(), who(r), t.Repo()); err != nil {
			p.unavailable(w, r, err)
			return t, false
		}
	}
	if !ok {
		p.message(w, r, http.StatusNotFound, nothingHere, noThread)
	}
	return t, ok
}

func (p *pages) thread(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTime)
	defer cancel()
	t, ok := p.readable(w, r)
	if !ok {
		return
	}
	real, err := p.Store.Resolve(ctx, t)
	if err != nil {
		p.unavailable(w, r, err)
		return
	}
	if real != t && real.Repo() == t.Repo() {
		// Relative to /threads/{owner}/{repo}/, so that a proxy may add a prefix.
		redirect(w, http.StatusFound, "../../../"+href(real))
		return
	}
	data, err := p.readThread(ctx, r, t)
	switch {
	case errors.Is(err, thread.ErrNotFound):
		p.message(w, r, http.StatusNotFound, nothingHere, noThread)
	case err != nil:
		p.unavailable(w, r, err)
	default:
		p.render(w, http.StatusOK, "thread.html", data)
	}
}

func (p *pages) readThread(ctx context.Context, r *http.Request, t thread.ID) (threadData, error) {
	row, err := p.Store.Thread(ctx, t)
	if err != nil {
		return threadData{}, err
	}
	events, err := p.Store.Events(ctx, t, 0)
	if err != nil {
		return threadData{}, err
	}
	d := threadData{
		frame:   p.frame(r, render.Line(t.String(), maxName), "../../../"),
		Path:    href(t),
		Wake:    row.WakeAt,
		repoURL: p.WebURL + "/" + t.Repo(),
	}
	d.Events, d.EarlierEvents = newest(events, maxEvents)
	if n := len(events); n > 0 {
		d.Seq = events[n-1].Seq
	}
	f, err := p.View(ctx, t)
	if ctx.Err() != nil {
		return d, err
	}
	d.summary = summarise(row, f, err, d.Now, maxReasons)
	state, unread := thread.Fold(events)
	if err != nil || unread != nil { // the log is readable and names the damaged event
		return d, nil
	}
	d.View, d.Verdicts = f, verdicts(f)
	d.Runs, d.EarlierItems = timeline(events, state, f)
	cannot := p.barred(ctx, who(r), t)
	if a, running := state.Running(); running {
		if !a.NoAgent {
			d.Steer = steerFieldOf(a, cannot)
		}
		live := p.tailOf(t, a.Started, 0)
		d.Live, d.Elapsed, d.Used = &live, render.Span(d.Now.Sub(a.At)), p.spentSoFar(ctx, t, a.N)
	}
	d.Buttons, err = p.buttonsOf(ctx, t, state, cannot)
	return d, err
}

func verdicts(f checkrun.View) []verdict {
	reasons := map[string][]string{checkrun.NameSeverity: f.Severity.Reasons, checkrun.NameStagnation: f.Stagnation.Reasons}
	classes := map[string]string{
		checkrun.Success:        "done",
		checkrun.Neutral:        "waiting",
		checkrun.Failure:        "failed",
		checkrun.ActionRequired: "failed",
	}
	var out []verdict
	for _, c := range checkrun.Checks(f)[1:] {
		v := verdict{
			Name:  strings.TrimPrefix(c.Name, checkrun.NameRun+"/"),
			Text:  render.Line(c.Title, 200),
			Class: classes[c.Conclusion],
		}
		if c.Status != checkrun.Completed {
			v.Class = "other"
		}
		v.Reasons = shortened(reasons[c.Name], maxReasons)
		out = append(out, v)
	}
	return out
}

// shown lists each event kind's fields for operators: the name and, if different, JSON paths; the first match wins.
// Prompts, descriptions, transcripts and configuration are left out. Kinds from newer versions show no fields.
var shown = map[thread.Kind]string{
	thread.KindFeedback:     remark,
	thread.KindIgnored:      remark,
	thread.KindControl:      remark + " backend",
	thread.KindQuestion:     remark + " word",
	thread.KindThread:       "what by detail delivery",
	thread.KindWithdrawn:    "events:seqs reason",
	thread.KindDecision:     "action rule reasons until purpose",
	thread.KindAuthored:     "attempt:n",
	thread.KindPublished:    "attempt:n",
	thread.KindAttemptEnded: "attempt:n ending outcome detail reasons pushed:[@this].#(pushed==true).commit exit limit:limit.message resets:limit.resets_at",
	thread.KindChecked:      "commit:sha checks:checks.#.name classes:checks.#.class reasons:checks.#.reason",
	thread.KindSteered:      "attempt:n events:seqs",
	thread.KindWatched:      "rounds refused commit:sha round lacks",
	thread.KindUnfinished:   "attempt:n orderly backend commit session times",
	thread.KindActStarted:   "act:key url note",
	thread.KindActDone:      "act:key url note",
	thread.KindOperated:     "what subject by where",
	thread.KindAttemptStarted: "attempt:n run backend account effort " +
		"action:decision.action rule:decision.rule reasons:decision.reasons until:decision.until purpose:decision.purpose",
}

const remark = "source by:by.login command reason text:raw,text delivery"

type field struct{ Name, Value string }

// maxField limits fields in characters.
const maxField = 160

func fields(e thread.Event) (all []field) {
	data := gjson.ParseBytes(e.Data)
	if !data.IsObject() {
		return []field{{"unreadable", render.Line(data.Raw, maxField)}}
	}
	for f := range strings.FieldsSeq(shown[e.Kind]) {
		name, paths, _ := strings.Cut(f, ":")
		var v gjson.Result
		for path := range strings.SplitSeq(cmp.Or(paths, name), ",") {
			if v = data.Get(path); v.Exists() {
				break
			}
		}
		if value := render.Line(written(v), maxField); value != "" {
			all = append(all, field{name, value})
		}
	}
	return all
}

// written formats a log value, or nothing for the zero time.
func written(v gjson.Result) string {
	var reasons policy.Reasons
	if v.IsArray() && json.Unmarshal([]byte(v.Raw), &reasons) == nil {
		return reasons.String()
	}
	if at, err := time.Parse(time.RFC3339, v.Str); err == nil {
		return at.UTC().Format(time.RFC3339)
	}
	return v.String()
}
