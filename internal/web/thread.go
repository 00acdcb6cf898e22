package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
)

// threadData is the page of one thread.
type threadData struct {
	frame
	summary
	Wake            time.Time
	Facts           checkrun.Facts // zero where the thread cannot be shown
	Verdicts        []verdict
	Attempts        []checkrun.Attempt
	EarlierAttempts int
	Remarks         []thread.Request
	Events          []thread.Event
	EarlierEvents   int

	repoURL string
}

// verdict is one of Pawl's judgements of the run.
type verdict struct {
	Name, Text, Class string
	Reasons           []string
}

// thread answers GET /threads/{owner}/{repo}/{n}.
func (p *pages) thread(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTime)
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
	d := threadData{frame: p.frame(text.Line(t.String(), maxName)+" · Pawl", "../../../", now), Wake: row.WakeAt, repoURL: p.WebURL + "/" + t.Repo()}
	d.Events, d.EarlierEvents = newest(events, maxEvents)
	f, err := p.View(ctx, t)
	if ctx.Err() != nil {
		return d, err
	}
	d.summary = summarise(row, f, err, now, maxReasons)
	if err == nil { // otherwise the log itself can be read, and says which event is at fault
		d.Facts, d.Verdicts = f, verdicts(f)
		d.Attempts, d.EarlierAttempts = newest(f.Attempts, maxAttempts)
		d.Remarks, _ = newest(f.Feedback, len(f.Feedback))
	}
	return d, nil
}

// verdicts are the two judgements, as their check runs state them.
func verdicts(f checkrun.Facts) []verdict {
	reasons := map[string][]string{checkrun.NameSeverity: f.Severity.Reasons, checkrun.NameStagnation: f.Stagnation.Reasons}
	classes := map[string]string{checkrun.Success: "done", checkrun.Neutral: "waiting", checkrun.Failure: "failed", checkrun.ActionRequired: "failed"}
	var out []verdict
	for _, c := range checkrun.Checks(f)[1:] {
		v := verdict{Name: strings.TrimPrefix(c.Name, checkrun.NameRun+"/"), Text: text.Line(c.Title, 200), Class: classes[c.Conclusion]}
		if c.Status != checkrun.Completed {
			v.Class = "other"
		}
		v.Reasons = shortened(reasons[c.Name], maxReasons)
		out = append(out, v)
	}
	return out
}

// field is one chosen part of an event.
type field struct{ Name, Value string }

// maxField is how much of a field is shown, in characters.
const maxField = 160

// fields are the parts of an event that an operator looks for. Prompts,
// descriptions, transcripts and configuration stay in the log.
func fields(e thread.Event) []field {
	fields, err := chosen(e)
	if err != nil {
		return pairs("unreadable", err.Error())
	}
	return fields
}

// chosen picks the fields of one kind of event; those of a newer version are not known.
func chosen(e thread.Event) ([]field, error) {
	switch e.Kind {
	case thread.KindFeedback, thread.KindIgnored:
		return decoded(e, feedback)
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
	case thread.KindAuthored, thread.KindPublished:
		return decoded(e, func(w thread.Authored) []field {
			return pairs("attempt", fmt.Sprint(w.N), "runs of words", fmt.Sprint(len(w.Runs)/4))
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
	return pairs("source", string(f.Source), "by", f.By.Login, "command", f.Command, "reason", f.Reason, "text", cmp.Or(f.Raw, f.Text), "delivery", f.Delivery)
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
