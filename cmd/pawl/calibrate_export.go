package main

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/calibrate"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// exportedThreads is how many threads are looked at, those touched last first.
const exportedThreads = 10_000

// exportRetries writes the retries of a server's threads as labelled pairs, one a line. What failed labels them, never their
// texts, so that the texts can be tried against it.
func exportRetries(ctx context.Context, db *store.Store, w io.Writer) error {
	rows, err := db.Threads(ctx, exportedThreads)
	if err != nil {
		return err
	}
	out := json.NewEncoder(w)
	for _, row := range rows {
		events, err := db.Events(ctx, row.Thread, 0)
		if err != nil {
			return err
		}
		state, err := thread.Fold(events)
		if err != nil {
			return err
		}
		for _, pair := range retries(row.Thread.String(), state) {
			if err := out.Encode(map[string]string{"view": pair.View, "label": pair.Label, "group": pair.Group, "a": pair.A, "b": pair.B}); err != nil {
				return err
			}
		}
	}
	return nil
}

// retries are the pairs of consecutive attempts of a run whose label is known: the same where the same named tests failed or the
// tree is the same, different where other tests failed or the later one passed.
func retries(group string, s thread.State) (pairs []calibrate.Pair) {
	for i := 1; i < len(s.Attempts); i++ {
		a, b := s.Attempts[i-1], s.Attempts[i]
		if a.Run != b.Run || a.EndedAt.IsZero() || b.EndedAt.IsZero() || !a.Receipt.Failing() {
			continue
		}
		_, passed := b.Receipt.Verified()
		same := a.Receipt.EndTree != "" && a.Receipt.EndTree == b.Receipt.EndTree
		label := ""
		switch failed := len(a.Receipt.Tests) > 0 && len(b.Receipt.Tests) > 0 && b.Receipt.Failing(); {
		case same, failed && slices.Equal(a.Receipt.Tests, b.Receipt.Tests):
			label = "same"
		case failed, passed:
			label = "different"
		default:
			continue
		}
		add := func(view, x, y string) {
			if strings.TrimSpace(x) != "" && strings.TrimSpace(y) != "" {
				pairs = append(pairs, calibrate.Pair{View: view, Label: label, Group: group, A: x, B: y})
			}
		}
		add("revision", a.Receipt.Final, b.Receipt.Final)
		add("failure", printed(a.Receipt), printed(b.Receipt))
	}
	return pairs
}

// printed is what the verify commands printed that failed.
func printed(r policy.Receipt) string {
	var all []string
	for _, v := range r.Verify {
		if !v.Passed {
			all = append(all, v.Output)
		}
	}
	return strings.Join(all, "\n")
}
