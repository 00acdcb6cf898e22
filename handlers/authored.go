package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// ownAfter is how long after an attempt's end a remark may still be the agent's:
// GitHub's own times and the machine's clock may differ.
const ownAfter = 2 * time.Minute

// authored reports whether an agent itself made the remark, through a person's token: the remark consists of
// what was written in attempts that ran at the time, on this thread or on others of the same repository. Of
// an edited description only what was added need be the agent's.
func (h *Handlers) authored(ctx context.Context, t thread.ID, r feedback.Remark, at time.Time) (bool, error) {
	near, err := h.Store.Near(ctx, t)
	if err != nil {
		return false, err
	}
	var agents []feedback.Authored
	for _, n := range append([]thread.ID{t}, near...) {
		events, err := h.Store.Events(ctx, n, 0)
		if err != nil {
			return false, err
		}
		wrote, err := writings(events, at)
		if err != nil && n != t {
			h.Log.Error().Err(err).Str("thread", n.String()).Msg("a log cannot be read; what its agent wrote is not known")
			continue
		}
		if err != nil {
			return false, fmt.Errorf("thread %s: %w", n, err)
		}
		agents = append(agents, wrote...)
	}
	return feedback.WroteAll(r.Parts(), agents...), nil
}

// writings are what the agents of those attempts wrote that ran at a time.
func writings(events []thread.Event, at time.Time) ([]feedback.Authored, error) {
	state, err := thread.Fold(events)
	if err != nil {
		return nil, err
	}
	ran := map[int]feedback.Authored{}
	for _, a := range state.Attempts {
		if !at.Before(a.At.Add(-ownAfter)) && (a.EndedAt.IsZero() || !at.After(a.EndedAt.Add(ownAfter))) {
			ran[a.N] = feedback.Authored{}
		}
	}
	for _, e := range events {
		var w thread.Authored
		if e.Kind != thread.KindAuthored || len(ran) == 0 {
			continue
		}
		if err := json.Unmarshal(e.Data, &w); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
		}
		if wrote, ok := ran[w.N]; ok {
			wrote.Read(w.Runs)
			ran[w.N] = wrote
		}
	}
	return slices.Collect(maps.Values(ran)), nil
}
