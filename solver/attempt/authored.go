package attempt

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// logInterval is how often it is logged what the agent wrote, besides at once when it
// posts and when the attempt ends.
const logInterval = 30 * time.Second

// maxAtOnce bounds how often one attempt logs at once, since an agent that prints
// nothing but posts would fill the thread's log with events. It waits for logInterval
// after that.
const maxAtOnce = 500

// executed reports whether an event ran what the agent wrote. An edit only stores it:
// imports from github.com would make posts of most files of Go.
func executed(e agent.Event) bool { return e.Ran && len(e.Edits) == 0 }

// authored takes in a text of the agent. What it writes goes into the thread's log
// while it runs: a remark that it makes is judged by any node, on any thread of the
// repository.
func (a *Attempt) authored(ctx context.Context, text string, ran bool) {
	posts := a.wrote.Add(text, ran) && a.atOnce < maxAtOnce
	now := a.Now()
	if !posts && now.Sub(a.wroteAt) < logInterval {
		return
	}
	a.wroteAt = now
	events := a.unlogged(now)
	if len(events) == 0 {
		return
	}
	if posts {
		a.atOnce++
	}
	err := lease.Within(ctx, lease.RenewTime, func(ctx context.Context) error {
		return a.Store.AppendLeased(ctx, a.Lease.Current(), thread.Batch{Events: events})
	})
	switch {
	case err == nil:
		a.wrote.Logged()
	case ctx.Err() == nil && !errors.Is(err, thread.ErrLeaseLost):
		a.Log.Warn().Err(err).Msg("what the agent wrote was not logged; it is tried again")
	}
}

// unlogged is an event of what the log does not hold yet, nil where it holds all.
func (a *Attempt) unlogged(now time.Time) []thread.NewEvent {
	if runs := a.wrote.Fresh(); len(runs) > 0 {
		return []thread.NewEvent{{Kind: thread.KindAuthored, At: now, Data: thread.Authored{N: a.N, Runs: runs}}}
	}
	return nil
}

// Bounds of what is looked at together in the output of a plain agent, in bytes: a
// line, and what came before it, since a remark may go over several.
const (
	maxAuthoredLine = 64 << 10
	lastLines       = 256
)

// plainTexts gives the lines of a plain agent to authored; each counts as written and
// executed.
type plainTexts struct {
	authored   func(text string, ran bool)
	line, last []byte
}

// Write never fails.
func (w *plainTexts) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		w.line = append(w.line, part...)
		if !ended && len(w.line) <= maxAuthoredLine {
			break
		}
		if len(bytes.TrimSpace(w.line)) > 0 {
			w.last = append(append(w.last, '\n'), w.line...)
			w.authored(string(w.last), false)
			w.authored(string(w.line), true)
			w.last = append(w.last[:0], w.last[max(0, len(w.last)-lastLines):]...)
		}
		w.line = w.line[:0]
	}
	return len(p), nil
}

// end ends the last line.
func (w *plainTexts) end() { _, _ = w.Write([]byte{'\n'}) }

// readAuthored takes in what the CLI's session file holds beside the output: patches,
// from whose files a remark may be posted.
func (c *checkout) readAuthored(session string) {
	err := c.adapter.SessionEvents(c.homeOf(c.Thread), session, func(e agent.Event) { c.wrote.Add(e.Authored, executed(e)) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Warn().Err(err).Msg("what the agent wrote to its session is not known")
	}
}

// ownRemarks are the remarks that came during an attempt and turn out, now that all
// is known that the agent wrote, to be its own.
func (a *Attempt) ownRemarks(events []thread.Event) []int64 {
	var seqs []int64
	for _, f := range a.meanwhile(events).Feedback {
		parts := []string{f.Raw}
		if f.Source == policy.FromDescription {
			parts = feedback.Additions(f.Baseline, f.Description)
		}
		if feedback.WroteAll(parts, a.wrote) {
			seqs = append(seqs, f.Seq)
		}
	}
	return seqs
}
