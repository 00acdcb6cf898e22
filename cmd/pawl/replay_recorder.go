package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// recording is everything that was read.
type recording struct {
	entries []entry
	// mentions counts quoted limit texts outside of attempts.
	mentions int
	notes    []string
}

// recorder writes a recording from what logs and transcripts tell.
type recorder struct {
	recording
	// severity are the numbers of an edit loop, as the solver judges them.
	severity policy.SeverityLimits
	attempts int
	seq      int64
	// at is the time of the last event. Without any it counts seconds from year
	// 1, which only orders.
	at time.Time
	// trails counts the trails, which cannot be mixed with anything else.
	trails int
}

// add appends an event. Times never go back; the zero time is unknown.
func (r *recorder) add(kind solver.Kind, at time.Time, echo bool, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	untimed := at.IsZero()
	switch {
	case untimed:
		r.at = r.at.Add(time.Second)
	case at.After(r.at):
		r.at = at
	case at.Before(r.at.Add(-time.Second)) && r.at.Year() > 1:
		r.note("The files are not in the order of their times; what is older than the file before it counts as of the same time.")
	}
	r.seq++
	r.entries = append(r.entries, entry{Event: solver.Event{Seq: r.seq, Kind: kind, At: r.at, Data: b}, Echo: echo, Untimed: untimed})
	return nil
}

// maxRemark bounds what is kept of a remark: it is only shown.
const maxRemark = 500

// remark is something that asked for work, as far as the recording tells.
func (r *recorder) remark(at time.Time, echo bool, text string) error {
	return r.add(solver.KindFeedback, at, echo, solver.Feedback{
		Source: policy.FromComment, By: policy.Actor{Login: "the recording"}, Reason: oneRow(text, maxRemark), Text: oneRow(text, maxRemark),
	})
}

// execution is one run of an agent in a log, or one transcript.
type execution struct {
	backend        string // what the recording calls the agent; empty means the CLI's name
	started, ended time.Time
	report         agent.Report
	edits          policy.Edits
}

// attempt records a run.
func (r *recorder) attempt(v execution) error {
	r.attempts++
	backend := v.backend
	if backend == "" {
		backend = v.report.CLI
	}
	a := solver.Started{N: r.attempts, Run: 1, Seen: r.seq, Backend: backend, Account: backend, Kind: v.report.CLI}
	if err := r.add(solver.KindAttemptStarted, v.started, false, a); err != nil {
		return err
	}
	return r.add(solver.KindAttemptEnded, v.ended, false, r.receipt(v))
}

// receipt is what the solver would have logged, without the tree: reported file
// changes stand in its place.
func (r *recorder) receipt(v execution) solver.Ended {
	p := v.report
	changed := v.edits.Operations > 0
	before := fmt.Sprintf("before attempt %d", r.attempts)
	e := solver.Ended{
		N: r.attempts, Ending: policy.Ending(p.Ending), Reasons: p.Reasons,
		Detail: oneRow(p.Failure, maxRemark), StartTree: before, EndTree: before,
		Edits:    v.edits,
		Evidence: policy.Fingerprint(p.Evidence()), Session: p.SessionID, ToolCalls: p.ToolCalls, Mentions: p.Mentions,
	}
	if changed {
		e.EndTree = fmt.Sprintf("after attempt %d", r.attempts)
	}
	if p.Limit != nil {
		e.Limit = &solver.Limit{Kind: string(p.Limit.Kind), Message: oneRow(p.Limit.Message, maxRemark), Source: p.Limit.Source}
		if p.Limit.ResetsAt != nil && (!v.ended.IsZero() || p.Limit.Source == agent.SourceStructured) {
			// A clock time says nothing where the day is unknown.
			e.Limit.ResetsAt = *p.Limit.ResetsAt
		}
	}
	switch {
	case r.severity.Judge(e.Edits).Class != policy.None:
		e.Outcome = policy.EditLoop
	case e.Ending != policy.Completed:
		e.Outcome = policy.Outcome(e.Ending)
	case changed:
		e.Outcome = policy.Edited
	default:
		e.Outcome = policy.NoChange
	}
	return e
}

// note says something of the recording as a whole, once.
func (r *recorder) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	for _, told := range r.notes {
		if told == n {
			return
		}
	}
	r.notes = append(r.notes, n)
}

// estimated says that no tree stands behind the progress of a log's attempts.
const estimated = "Progress is an estimate: it says whether the agent reported file changes; what its shell commands changed is unknown."

// backendName is a backend's name as a log gives it.
func backendName(s string) string {
	return oneRow(strings.ToLower(strings.TrimSpace(s)), 40)
}
