package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

type recording struct {
	entries []entry
	// mentions counts usage-limit texts quoted outside attempts.
	mentions int
	notes    []string
	severity policy.SeverityLimits // thresholds of an edit loop, as in the solver
	attempts int
	seq      int64
	at       time.Time // the last event's time; without times, a counter of seconds from year 1
	trail    bool      // a trail was read, which cannot be mixed with other input
	err      error     // first error
	// run buffers a run's output until its end time is known, which gives a reset at nine o'clock its day.
	run bytes.Buffer
}

// add appends an event. Times never decrease; zero is unknown.
func (r *recording) add(kind thread.Kind, at time.Time, echo bool, data any) {
	b, err := json.Marshal(data)
	r.err = cmp.Or(r.err, err)
	untimed := at.IsZero()
	switch {
	case untimed:
		r.at = r.at.Add(time.Second)
	case at.After(r.at):
		r.at = at
	case at.Before(r.at.Add(-time.Second)) && r.at.Year() > 1:
		r.note("The files are not in order of time; an older file counts as the time of the file before it.")
	}
	r.seq++
	r.entries = append(r.entries, entry{Event: thread.Event{Seq: r.seq, Kind: kind, At: r.at, Data: b}, Echo: echo, Untimed: untimed})
}

const maxRemark = 500

func (r *recording) remark(at time.Time, echo bool, text string) {
	r.add(thread.KindFeedback, at, echo, thread.Feedback{
		Source: policy.FromComment, By: feedback.Actor{Login: "the recording"}, Reason: render.Line(text, maxRemark), Text: render.Line(text, maxRemark),
	})
}

// attempt records one run of an agent. backend is the name in the recording; empty means the CLI's name.
func (r *recording) attempt(backend string, started, ended time.Time, p agent.Report) {
	r.attempts++
	backend = cmp.Or(backend, p.CLI)
	r.add(thread.KindAttemptStarted, started, false, thread.Started{N: r.attempts, Run: 1, Seen: r.seq, Backend: backend, Account: backend, Kind: p.CLI})
	r.add(thread.KindAttemptEnded, ended, false, r.receipt(p, ended))
}

// receipt returns the receipt that the solver would have logged, with reported file changes instead of trees.
func (r *recording) receipt(p agent.Report, ended time.Time) policy.Receipt {
	before := fmt.Sprintf("before attempt %d", r.attempts)
	e := policy.Receipt{
		N: r.attempts, Ending: p.Ending, Reasons: p.Reasons,
		Detail: render.Line(p.Failure, maxRemark), StartTree: before, EndTree: before,
		Edits: p.Edits, Session: p.SessionID, ToolCalls: p.ToolCalls, Mentions: p.Mentions,
		Declined: render.Line(policy.Declining(p.FinalMessage), maxRemark),
	}
	e.SetEvidence(p.Evidence())
	if p.Edits.Operations > 0 {
		e.EndTree = fmt.Sprintf("after attempt %d", r.attempts)
	}
	if p.Limit != nil {
		limit := *p.Limit
		limit.Message = render.Line(limit.Message, maxRemark)
		if ended.IsZero() && limit.Source != policy.SourceStructured {
			// A time of day is ambiguous without a date.
			limit.ResetsAt = time.Time{}
		}
		e.Limit = &limit
	}
	e.Outcome = e.Came(policy.ToChange, r.severity)
	return e
}

func (r *recording) note(n string) {
	if !slices.Contains(r.notes, n) {
		r.notes = append(r.notes, n)
	}
}

const estimated = "Progress is an estimate: it says whether the agent reported file changes; what its shell commands changed is unknown."

// runHead limits the output used to detect the CLI, in bytes.
const runHead = 64 << 10

func (r *recording) line(b []byte) {
	r.run.Write(b)
	r.run.WriteByte('\n')
}

// inspect reads the buffered output as one transcript and empties the buffer. If cli is empty, inspect detects it.
func (r *recording) inspect(cli string, now time.Time) agent.Report {
	if cli == "" {
		cli = clis.Detect(r.run.Bytes()[:min(r.run.Len(), runHead)])
	}
	a, err := clis.ForStream(cli)
	if err != nil {
		r.err = cmp.Or(r.err, err)
		return agent.Report{}
	}
	p, err := agent.Inspect(&r.run, a, agent.InspectOptions{Now: now})
	p.CLI, r.err = cli, cmp.Or(r.err, err)
	return p
}

// stamp returns the time in a stream's line, RFC 3339 or unix milliseconds; zero for none. Quoted text cannot match:
// its quotes are escaped.
func stamp(line []byte) time.Time {
	_, rest, ok := bytes.Cut(line, []byte(`"timestamp":`))
	if !ok {
		return time.Time{}
	}
	switch v := gjson.ParseBytes(rest[:min(len(rest), 64)]); v.Type {
	case gjson.String:
		if t, err := time.Parse(time.RFC3339, v.Str); err == nil {
			return t.UTC()
		}
	default: // a number; anything else counts as 0
		// Milliseconds between 2001 and 5138.
		if ms := v.Int(); ms >= 1e12 && ms < 1e14 {
			return time.UnixMilli(ms).UTC()
		}
	}
	return time.Time{}
}
