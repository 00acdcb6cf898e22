package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// How much of a thread its page shows: the newest of each.
const (
	maxAttempts = 100
	maxEvents   = 200
	maxReasons  = 30
	// maxTexts is how many attempts are shown with their texts.
	maxTexts = 5
)

// Lengths of quoted texts, in characters.
const (
	maxRequest = 2_000
	maxFinal   = 2_000
	maxOutput  = 4_000
	maxExcerpt = 400
)

// threadData is the page of one thread.
type threadData struct {
	frame
	summary
	Wake                 moment
	Hint                 string
	RequestedBy, Request string
	Branch, Issue, Pull  string
	Limit                string
	Problems             []string
	Verdicts             []verdict
	Run                  int
	Attempts             []attemptLine
	EarlierAttempts      int
	Remarks              []remark
	Events               []eventLine
	EarlierEvents        int
}

// verdict is one of Pawl's judgements of the run.
type verdict struct {
	Name, Text, Class string
	Reasons           []string
}

// remark is something that somebody said or did, and what was decided about it.
type remark struct {
	When                        moment
	By, Source, Reason, Excerpt string
	Accepted                    bool
}

// thread answers GET /threads/{owner}/{repo}/{n}.
func (p *pages) thread(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := within(r)
	defer cancel()
	t, err := thread.Parse(r.PathValue("owner") + "/" + r.PathValue("repo") + "#" + r.PathValue("n"))
	if err != nil {
		plain(w, http.StatusNotFound, "No such thread.")
		return
	}
	real, err := p.Store.Resolve(ctx, t)
	if err != nil {
		p.unavailable(w, r, err)
		return
	}
	if real != t {
		// Seen from /threads/{owner}/{repo}/, wherever a proxy put that.
		guard(w.Header())
		w.Header().Set("Location", "../../../"+href(real))
		w.WriteHeader(http.StatusFound)
		return
	}
	data, err := p.threadData(ctx, t)
	switch {
	case errors.Is(err, thread.ErrNotFound):
		plain(w, http.StatusNotFound, "No such thread: nothing happened on it since Pawl is here.")
	case err != nil:
		p.unavailable(w, r, err)
	default:
		p.render(w, p.threadPage, data)
	}
}

func (p *pages) threadData(ctx context.Context, t thread.ID) (threadData, error) {
	row, err := p.Store.Thread(ctx, t)
	if err != nil {
		return threadData{}, err
	}
	events, err := p.Store.Events(ctx, t, 0)
	if err != nil {
		return threadData{}, err
	}
	now := p.Now()
	d := threadData{frame: p.frame(text.Line(t.String(), maxName)+" · Pawl", "../../../", now), Wake: until(now, row.WakeAt)}
	d.EarlierEvents = max(0, len(events)-maxEvents)
	for _, e := range slices.Backward(events[d.EarlierEvents:]) {
		d.Events = append(d.Events, eventRow(e, now))
	}
	f, err := p.View(ctx, t)
	if ctx.Err() != nil {
		return d, err
	}
	d.summary = summarise(row, f, err, now, maxReasons)
	if err == nil { // otherwise the log itself can be read, and says which event is at fault
		p.show(&d, t, f, now)
	}
	return d, nil
}

// show fills in what the fold says.
func (p *pages) show(d *threadData, t thread.ID, f checkrun.Facts, now time.Time) {
	d.Hint = text.Line(f.Hint, maxReason)
	d.RequestedBy, d.Request = text.Line(f.RequestedBy, maxName), text.Block(f.Request, maxRequest)
	d.Branch, d.Issue, d.Pull = text.Line(f.Branch, maxName), text.URL(f.IssueURL), text.URL(f.PullURL)
	d.Limit = limit(f, now)
	d.Run = f.Run
	for _, x := range f.Problems {
		d.Problems = append(d.Problems, text.Line(problem(x), maxReason))
	}
	d.Verdicts = verdicts(f)
	d.EarlierAttempts = max(0, len(f.Attempts)-maxAttempts)
	for i, a := range slices.Backward(f.Attempts) {
		if i < d.EarlierAttempts {
			break
		}
		d.Attempts = append(d.Attempts, p.attempt(t, f, i, a))
	}
	for _, r := range slices.Backward(f.Feedback) {
		d.Remarks = append(d.Remarks, remark{When: ago(now, r.At), By: text.Line(r.By.Login, maxName), Source: text.Spaced(text.Line(string(r.Source), maxName)),
			Reason: text.Line(cmp.Or(r.Withdrawn, r.Reason), maxReason), Excerpt: text.Block(r.Raw, maxExcerpt), Accepted: r.Withdrawn == ""})
	}
}

// eventLine is one row of a thread's log.
type eventLine struct {
	Seq    int64
	When   moment
	Kind   string
	Fields []field
}

// field is one chosen part of an event.
type field struct{ Name, Value string }

// maxField is how much of a field is shown, in characters.
const maxField = 160

// eventRow is an event with the parts that an operator looks for. Prompts,
// descriptions, transcripts and configuration stay in the log.
func eventRow(e thread.Event, now time.Time) eventLine {
	fields, err := chosen(e)
	if err != nil {
		fields = pairs("unreadable", err.Error())
	}
	return eventLine{Seq: e.Seq, When: logged(now, e.At), Kind: text.Line(string(e.Kind), 40), Fields: fields}
}

// chosen picks the fields of one kind of event; an event of a newer version has
// none that are known.
func chosen(e thread.Event) ([]field, error) {
	switch e.Kind {
	case thread.KindFeedback, thread.KindIgnored:
		return decoded(e, func(f thread.Feedback) []field { return feedback(f) })
	case thread.KindControl:
		return decoded(e, func(c thread.Control) []field { return append(feedback(c.Feedback), pairs("backend", c.Backend)...) })
	case thread.KindQuestion:
		return decoded(e, func(q thread.Question) []field { return append(feedback(q.Feedback), pairs("word", q.Word)...) })
	case thread.KindThread:
		return decoded(e, func(c thread.Change) []field {
			return pairs("what", c.What, "by", c.By, "detail", c.Detail, "delivery", c.Delivery)
		})
	case thread.KindWithdrawn:
		return decoded(e, func(w thread.Withdrawn) []field { return pairs("events", fmt.Sprint(w.Seqs), "reason", w.Reason) })
	case thread.KindDecision:
		return decoded(e, func(d thread.Decided) []field { return decision(d.Decision) })
	case thread.KindAttemptStarted:
		return decoded(e, func(s thread.Started) []field {
			return append(pairs("attempt", fmt.Sprint(s.N), "run", fmt.Sprint(s.Run), "backend", s.Backend, "account", s.Account, "effort", s.Effort),
				decision(s.Decision)...)
		})
	case thread.KindAttemptEnded:
		return decoded(e, ended)
	case thread.KindActStarted, thread.KindActDone:
		return decoded(e, func(a thread.Act) []field { return pairs("act", a.Key, "url", a.URL, "note", a.Note) })
	}
	return nil, nil
}

func decoded[T any](e thread.Event, pick func(T) []field) ([]field, error) {
	var data T
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return nil, err
	}
	return pick(data), nil
}

func feedback(f thread.Feedback) []field {
	said := f.Raw
	if said == "" {
		said = f.Text
	}
	return pairs("source", string(f.Source), "by", f.By.Login, "command", f.Command, "reason", f.Reason, "text", said, "delivery", f.Delivery)
}

func decision(d policy.Decision) []field {
	return pairs("action", string(d.Action), "rule", string(d.Rule), "reasons", d.Reasons.String(), "until", stamp(d.Until))
}

func ended(r policy.Receipt) []field {
	pushed := ""
	if r.Pushed {
		pushed = r.Commit
	}
	fields := pairs("attempt", fmt.Sprint(r.N), "ending", string(r.Ending), "outcome", string(r.Outcome), "detail", r.Detail,
		"reasons", strings.Join(r.Reasons, "; "), "pushed", pushed, "exit", fmt.Sprint(r.Exit))
	if r.Limit != nil {
		fields = append(fields, pairs("limit", r.Limit.Message, "resets", stamp(r.Limit.ResetsAt))...)
	}
	return fields
}

// stamp is a time as the log has it, empty for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// pairs are names and values in turn, without those that have no value.
func pairs(of ...string) []field {
	var out []field
	for i := 0; i+1 < len(of); i += 2 {
		if v := text.Line(of[i+1], maxField); v != "" {
			out = append(out, field{of[i], v})
		}
	}
	return out
}
