package solver

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/pawlbot/pawl/internal/checkrun"
)

// newest is a check run as the log tells it now, for a write that waited for its
// place at GitHub while the thread went on: what happened meanwhile is shown with
// it and needs no write of its own. A conclusion is shown before what follows it,
// and what cannot be read now is left to the next publish, so c is the answer then.
func (s *step) newest(ctx context.Context, sha string, c checkrun.Check) checkrun.Check {
	told, err := s.Store.Events(ctx, s.thread, s.state.Seq)
	if err != nil || !slices.ContainsFunc(told, func(e Event) bool { return e.Kind != KindActStarted && e.Kind != KindActDone }) {
		return c
	}
	events, err := s.Store.Events(ctx, s.thread, 0)
	if err != nil {
		return c
	}
	state, err := Fold(events)
	if err != nil || state.checksOn() != sha {
		return c
	}
	v, err := s.Solver.view(ctx, s.thread, state)
	if err != nil {
		return c
	}
	v.Now = state.At
	for _, n := range checkrun.Checks(v) {
		if n.Name == c.Name && (c.Status != checkrun.Completed || n.Status == checkrun.Completed) {
			return n
		}
	}
	return c
}

// checksOn is the commit that check runs are put on; empty for none.
func (s State) checksOn() string {
	if d := s.Decision; d != nil && len(d.Problems) > 0 && !s.Open() && d.Problems[0].SHA != "" {
		// Errors in a file are shown on the commit that holds the file.
		return d.Problems[0].SHA
	}
	return s.shownOn()
}

// sumOf names what a check run says on a commit, so that the same is not sent
// again.
func (s *step) sumOf(c checkrun.Check, sha string) (string, error) {
	content, err := json.Marshal(wire(c, sha, s.threadURL()))
	return hash(string(content)), err
}
