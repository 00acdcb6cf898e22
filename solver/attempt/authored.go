package attempt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// ownAfter is how long after an attempt's end a remark may still be the
// agent's: GitHub's own times and the machine's clock may differ.
const ownAfter = 2 * time.Minute

// nearThreads bounds how many other threads are looked at.
const nearThreads = 50

// Authored reports whether an agent itself made a remark, through a person's
// token: the remark's text stands in what the agent wrote in an attempt that
// ran at the time, on this thread or on another of the same repository.
func (e *Env) Authored(ctx context.Context, t thread.ID, text string, at time.Time) (bool, error) {
	if strings.TrimSpace(text) == "" {
		return false, nil
	}
	rows, err := e.Store.Threads(ctx, nearThreads)
	if err != nil {
		return false, err
	}
	for _, near := range append(rows, thread.ThreadRow{Thread: t}) {
		if near.Thread.Repo() != t.Repo() {
			continue
		}
		events, err := e.Store.Events(ctx, near.Thread, 0)
		if err != nil {
			return false, err
		}
		state, err := thread.Fold(events)
		if err != nil && near.Thread != t {
			e.Log.Error().Err(err).Str("thread", near.Thread.String()).Msg("a log cannot be read; what its agent wrote is not known")
			continue
		}
		if err != nil {
			return false, fmt.Errorf("thread %s: %w", near.Thread, err)
		}
		for _, a := range state.Attempts {
			if at.Before(a.At.Add(-ownAfter)) || !a.EndedAt.IsZero() && at.After(a.EndedAt.Add(ownAfter)) {
				continue
			}
			if wrote, err := e.inTranscript(near.Thread, a, text); wrote || err != nil {
				return wrote, err
			}
		}
	}
	return false, nil
}

// inTranscript looks through one attempt's transcript; one that is not there
// proves nothing.
func (e *Env) inTranscript(t thread.ID, a thread.Attempt, text string) (bool, error) {
	adapter, err := clis.For(a.Kind, BackendNamed(e.Config.Backends, a.Backend).Stream)
	if err != nil {
		return false, nil
	}
	f, err := os.Open(filepath.Join(e.attemptDir(t, a.N), transcriptFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if wrote, err := adapter.Authored(f, text); wrote || err != nil {
		return wrote, err
	}
	if a.Receipt.Session == "" {
		return false, nil
	}
	return adapter.AuthoredInSession(e.homeOf(t), a.Receipt.Session, text)
}

// ownRemarks are the remarks that came during an attempt and turn out, now that
// its transcript is complete, to be the agent's own.
func (a *Attempt) ownRemarks(events []thread.Event) []int64 {
	var seqs []int64
	for _, f := range a.meanwhile(events).Feedback {
		if a.whollyAuthored(f) {
			seqs = append(seqs, f.Seq)
		}
	}
	return seqs
}

// whollyAuthored reports whether a remark stands in the transcript; of an edited
// description only what was added.
func (a *Attempt) whollyAuthored(f thread.Request) bool {
	parts := []string{f.Raw}
	if f.Source == policy.FromDescription {
		parts = feedback.Additions(f.Baseline, f.Description)
	}
	for _, part := range parts {
		wrote, err := a.inTranscript(a.Thread, thread.Attempt{Started: a.Started, Receipt: a.Receipt}, part)
		if err != nil {
			a.Log.Error().Err(err).Int64("seq", f.Seq).Msg("transcript cannot be searched")
		}
		if !wrote {
			return false
		}
	}
	return len(parts) > 0
}
