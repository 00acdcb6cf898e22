package web

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

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

// told is an event with the parts that an operator looks for. Prompts,
// descriptions, transcripts and configuration stay in the log.
func told(e solver.Event, now time.Time) eventLine {
	fields, err := chosen(e)
	if err != nil {
		fields = pairs("unreadable", err.Error())
	}
	return eventLine{Seq: e.Seq, When: logged(now, e.At), Kind: line(string(e.Kind), 40), Fields: fields}
}

// chosen picks the fields of one kind of event; an event of a newer version has
// none that are known.
func chosen(e solver.Event) ([]field, error) {
	switch e.Kind {
	case solver.KindFeedback, solver.KindIgnored:
		return decoded(e, func(f solver.Feedback) []field { return feedback(f) })
	case solver.KindControl:
		return decoded(e, func(c solver.Control) []field { return append(feedback(c.Feedback), pairs("backend", c.Backend)...) })
	case solver.KindQuestion:
		return decoded(e, func(q solver.Question) []field { return append(feedback(q.Feedback), pairs("word", q.Word)...) })
	case solver.KindThread:
		return decoded(e, func(c solver.Change) []field {
			return pairs("what", c.What, "by", c.By, "detail", c.Detail, "delivery", c.Delivery)
		})
	case solver.KindWithdrawn:
		return decoded(e, func(w solver.Withdrawn) []field { return pairs("events", fmt.Sprint(w.Seqs), "reason", w.Reason) })
	case solver.KindDecision:
		return decoded(e, func(d solver.Decided) []field { return decision(d.Decision) })
	case solver.KindAttemptStarted:
		return decoded(e, func(s solver.Started) []field {
			return append(pairs("attempt", fmt.Sprint(s.N), "run", fmt.Sprint(s.Run), "backend", s.Backend, "account", s.Account, "effort", s.Effort),
				decision(s.Decision)...)
		})
	case solver.KindAttemptEnded:
		return decoded(e, ended)
	case solver.KindActStarted, solver.KindActDone:
		return decoded(e, func(a solver.Act) []field { return pairs("act", a.Key, "url", a.URL, "note", a.Note) })
	}
	return nil, nil
}

func decoded[T any](e solver.Event, pick func(T) []field) ([]field, error) {
	var data T
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return nil, err
	}
	return pick(data), nil
}

func feedback(f solver.Feedback) []field {
	said := f.Raw
	if said == "" {
		said = f.Text
	}
	return pairs("source", string(f.Source), "by", f.By.Login, "command", f.Command, "reason", f.Reason, "text", said, "delivery", f.Delivery)
}

func decision(d policy.Decision) []field {
	return pairs("action", string(d.Action), "rule", d.Rule, "reasons", strings.Join(d.Reasons, "; "), "until", stamp(d.Until))
}

func ended(r solver.Ended) []field {
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
		if v := line(of[i+1], maxField); v != "" {
			out = append(out, field{of[i], v})
		}
	}
	return out
}
