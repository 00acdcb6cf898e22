package solver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/policy"
)

// wroteAfter is how long after an attempt's end a remark may still be the
// agent's: GitHub's own times and the machine's clock may differ.
const wroteAfter = 2 * time.Minute

// nearThreads bounds how many other threads are looked at.
const nearThreads = 50

// AgentWrote reports whether an agent itself made a remark, through a person's
// token: the remark's text stands in what the agent wrote in an attempt that
// ran at the time, on this thread or on another of the same repository.
func (s *Solver) AgentWrote(ctx context.Context, t Thread, text string, at time.Time) (bool, error) {
	if strings.TrimSpace(text) == "" {
		return false, nil
	}
	rows, err := s.Store.Threads(ctx, nearThreads)
	if err != nil {
		return false, err
	}
	for _, near := range append(rows, ThreadRow{Thread: t}) {
		if near.Thread.Repo() != t.Repo() {
			continue
		}
		events, err := s.Store.Events(ctx, near.Thread, 0)
		if err != nil {
			return false, err
		}
		state, err := Fold(events)
		if err != nil && near.Thread != t {
			s.Log.Error().Err(err).Str("thread", near.Thread.String()).Msg("a log cannot be read; what its agent wrote is not known")
			continue
		}
		if err != nil {
			return false, fmt.Errorf("thread %s: %w", near.Thread, err)
		}
		for _, a := range state.Attempts {
			if at.Before(a.At.Add(-wroteAfter)) || !a.EndedAt.IsZero() && at.After(a.EndedAt.Add(wroteAfter)) {
				continue
			}
			if wrote, err := s.inTranscript(near.Thread, a, text); wrote || err != nil {
				return wrote, err
			}
		}
	}
	return false, nil
}

// inTranscript looks through one attempt's transcript; one that is not there
// proves nothing.
func (s *Solver) inTranscript(t Thread, a Attempt, text string) (bool, error) {
	b := backendNamed(s.Config.Backends, a.Backend)
	adapter, err := agent.For(a.Kind, b.Stream)
	if err != nil {
		return false, nil
	}
	f, err := os.Open(filepath.Join(s.attemptDir(t, a.N), transcriptFile))
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
	return adapter.AuthoredInSession(s.homeOf(t), a.Receipt.Session, text)
}

// agentWroteMeanwhile are the remarks that came during an attempt and turn out,
// now that its transcript is complete, to be the agent's own.
func (s *step) agentWroteMeanwhile(a Started, r Ended, events []Event) []int64 {
	meanwhile := State{Acts: map[string]ActState{}}
	for _, e := range events {
		if err := meanwhile.apply(e); err != nil {
			s.log.Error().Err(err).Int64("seq", e.Seq).Msg("event cannot be read")
		}
	}
	var seqs []int64
	for _, f := range meanwhile.Feedback {
		if s.whollyInTranscript(Attempt{Started: a, Receipt: r}, f) {
			seqs = append(seqs, f.Seq)
		}
	}
	return seqs
}

// whollyInTranscript reports whether a remark stands in the transcript; of an
// edited description only what was added.
func (s *step) whollyInTranscript(a Attempt, f Remark) bool {
	parts := []string{f.Raw}
	if f.Source == policy.FromDescription {
		parts = policy.Additions(f.Baseline, f.Description)
	}
	for _, part := range parts {
		wrote, err := s.inTranscript(s.thread, a, part)
		if err != nil {
			s.log.Error().Err(err).Int64("seq", f.Seq).Msg("transcript cannot be searched")
		}
		if !wrote {
			return false
		}
	}
	return len(parts) > 0
}
