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

// logInterval is the least time between two logs of the agent's text. Text that posts to GitHub is logged at once.
const logInterval = 30 * time.Second

// maxAtOnce limits an attempt's immediate logs, so that an agent that only posts cannot fill the thread's log.
const maxAtOnce = 500

// executed reports whether an event ran the agent's text. Edits do not count, because an import from github.com looks
// like a post.
func executed(e agent.Event) bool { return e.Ran && len(e.Edits) == 0 }

// authored records text that the agent wrote. It logs during the attempt, because another node may have to recognise
// the agent's remarks.
func (a *Attempt) authored(ctx context.Context, text string, ran bool) {
	posts := a.wrote.Add(text, ran) && a.atOnce < maxAtOnce
	now := a.Env.Now()
	due := now.Sub(a.wroteAt) >= logInterval
	if !posts && !due {
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
		return a.Env.Store.AppendLeased(ctx, a.Lease.Current(), thread.Batch{Events: events})
	})
	if err == nil {
		a.wrote.Logged()
		return
	}
	a.warnUnlessOver(ctx, err, "the agent's text was not logged; it will be logged later")
}

// unlogged returns an event with the unlogged texts, or nothing.
func (a *Attempt) unlogged(now time.Time) []thread.NewEvent {
	if runs := a.wrote.Fresh(); len(runs) > 0 {
		return []thread.NewEvent{{Kind: thread.KindAuthored, At: now, Data: thread.Authored{N: a.N, Runs: runs}}}
	}
	return nil
}

// Limits in bytes for checking plain output: one batch of lines, and the preceding output that is checked again.
const (
	maxPlainText = 64 << 10
	lastLines    = 256
)

// plainTexts passes batches of plain output to authored. Lines that post count as executed and pass immediately.
type plainTexts struct {
	authored func(text string, ran bool)
	text     []byte // pending output, after up to lastLines bytes that were passed on
	begins   int    // start of the last line
}

func (w *plainTexts) Write(p []byte) (int, error) {
	for rest, ended := p, true; ended && len(rest) > 0; {
		var part []byte
		part, rest, ended = bytes.Cut(rest, []byte{'\n'})
		w.text = append(w.text, part...)
		if ended {
			w.line()
		}
		if len(w.text) > maxPlainText {
			w.give()
		}
	}
	return len(p), nil
}

func (w *plainTexts) line() {
	line := w.text[w.begins:]
	if len(bytes.TrimSpace(line)) == 0 {
		w.text = w.text[:w.begins]
		return
	}
	w.text = append(w.text, '\n')
	if posted := string(line); feedback.Posts(posted) {
		w.give()
		w.authored(posted, true)
	}
	w.begins = len(w.text)
}

func (w *plainTexts) give() {
	if len(bytes.TrimSpace(w.text)) > 0 {
		w.authored(string(w.text), false)
	}
	w.text = append(w.text[:0], w.text[max(0, len(w.text)-lastLines):]...)
	w.begins = len(w.text)
}

func (w *plainTexts) end() {
	w.line()
	w.give()
}

// readAuthored reads patches from the CLI's session file. The agent may have posted the patched files.
func (c *checkout) readAuthored(session string) {
	err := c.adapter.SessionEvents(c.Env.homeOf(c.Thread), session, func(e agent.Event) { c.wrote.Add(e.Authored, executed(e)) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Warn().Err(err).Msg("the agent's session file cannot be read")
	}
}

// ownRemarks returns the events of remarks that the agent itself posted during the attempt.
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
