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

// logInterval is how often the agent's texts are logged, except immediately for a post and at the end.
const logInterval = 30 * time.Second

// maxAtOnce limits an attempt's immediate logs, since an agent that only prints posts would fill the thread's log.
// After that they wait for logInterval.
const maxAtOnce = 500

// executed reports whether an event ran the agent's text. An edit only stores it: imports from github.com would
// turn most Go files into posts.
func executed(e agent.Event) bool { return e.Ran && len(e.Edits) == 0 }

// authored adds a text of the agent. It goes into the thread's log while the agent runs, since any node may judge
// its remarks, on any thread of the repository.
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
	a.warnUnlessOver(ctx, err, "what the agent wrote was not logged; it is tried again")
}

// unlogged is an event with the texts that are not logged yet; none if all are.
func (a *Attempt) unlogged(now time.Time) []thread.NewEvent {
	if runs := a.wrote.Fresh(); len(runs) > 0 {
		return []thread.NewEvent{{Kind: thread.KindAuthored, At: now, Data: thread.Authored{N: a.N, Runs: runs}}}
	}
	return nil
}

// Bounds of a plain agent's output that is checked together, in bytes: lines, and what came before them, since a
// remark may span several.
const (
	maxPlainText = 64 << 10
	lastLines    = 256
)

// plainTexts passes a plain agent's output to authored, in pieces of many lines. Each line that posts counts as
// executed, at once.
type plainTexts struct {
	authored func(text string, ran bool)
	text     []byte // pending output, and the end of the part that was passed on
	begins   int    // the start of its last line
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

// readAuthored adds the patches in the CLI's session file: a remark may be posted from their files.
func (c *checkout) readAuthored(session string) {
	err := c.adapter.SessionEvents(c.Env.homeOf(c.Thread), session, func(e agent.Event) { c.wrote.Add(e.Authored, executed(e)) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Warn().Err(err).Msg("the agent's session file cannot be read")
	}
}

// ownRemarks are remarks during the attempt that turn out to be the agent's own, now that all its texts are known.
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
