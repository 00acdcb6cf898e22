package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// descends says in which generation of Pawl's own work a thread stands that something
// else than a person's comment asks to work on, and what it comes from. A thread that
// Pawl works on already stays in its own; zero is the work of people.
func (h *Handlers) descends(ctx context.Context, t thread.ID, s thread.State, it Activity) (generation int, cause string, err error) {
	text := it.Snapshot.Title + "\n" + it.Snapshot.Body
	typed := feedback.Typed(it.Remark.Actor, it.Remark.Source, it.Target.Kind)
	if typed && (s.Tracked() || it.MadeAt.Sub(it.created) > atOnce || !references.MatchString(text)) { // which begins a new chain
		return 0, "", nil
	}
	if s.Tracked() {
		return s.Generation, s.Cause, nil
	}
	near, err := h.Store.Near(ctx, t)
	if err != nil {
		return 0, "", err
	}
	app, err := h.Forge.Apps.Get(ctx)
	if err != nil {
		return 0, "", fmt.Errorf("who this App is: %w", err)
	}
	author, own := it.Snapshot.Author, strings.EqualFold(it.Snapshot.Author, app.Slug+"[bot]")
	type piece struct {
		of         thread.ID
		generation int
	}
	var beside []piece // where only the time tells
	derived := 0
	for _, n := range near {
		events, of, err := thread.Load(ctx, h.Store, n)
		if err != nil {
			h.Log.Error().Err(err).Str("thread", n.String()).Msg("a log cannot be read; what comes of its work is not known")
			continue
		}
		if refers(text, n, of) {
			return of.Generation + 1, "it refers to Pawl's own work on " + n.String(), nil
		}
		if of.Generation > 0 {
			derived++
		}
		if typed || !ranAt(of, it.created) {
			continue
		}
		agents, err := writings(events, of, it.created)
		if err != nil {
			return 0, "", fmt.Errorf("thread %s: %w", n, err)
		}
		if feedback.WroteAll([]string{cmp.Or(it.Snapshot.Body, it.Snapshot.Title)}, agents...) {
			return of.Generation + 1, "the agent wrote it while it worked on " + n.String(), nil
		}
		if own || asked(of, author) {
			beside = append(beside, piece{n, of.Generation})
		}
	}
	switch {
	case typed:
		return 0, "", nil
	case len(beside) == 0 && own:
		return 1, "it was opened by " + author, nil
	case len(beside) == 0:
		return 0, "", nil
	}
	// The nearest to people counts: somebody who opens issues while agents work is no chain
	// of agents. But whoever opens one after the other may be, so of many it is the farthest.
	slices.SortStableFunc(beside, func(a, b piece) int { return a.generation - b.generation })
	from := beside[0]
	if derived >= maxBeside {
		from = beside[len(beside)-1]
	}
	return from.generation + 1, "it was opened by " + author + " while or shortly after Pawl worked on " + from.of.String(), nil
}

// atOnce is within which time of its opening an order under an issue is the program's that opened it.
const atOnce = 10 * time.Second

// maxBeside is how many threads near may come of Pawl's own work before it is no longer
// taken for chance when somebody opens one.
const maxBeside = 5

// asked reports whether somebody asked for work on a thread.
func asked(s thread.State, login string) bool {
	return slices.ContainsFunc(s.Feedback, func(r thread.Request) bool { return strings.EqualFold(r.By.Login, login) })
}

// ranAt reports whether an attempt of a thread ran at a time, or shortly before.
func ranAt(s thread.State, at time.Time) bool {
	return !at.IsZero() && slices.ContainsFunc(s.Attempts, func(a thread.Attempt) bool {
		// GitHub's times are whole seconds.
		return !at.Before(a.At.Truncate(time.Second)) && (a.EndedAt.IsZero() || !at.After(a.EndedAt.Add(ownAfter)))
	})
}

// references are the ways in which a text names an issue or a pull request of its
// repository, and Pawl's branches.
var references = regexp.MustCompile(`(?:#|/pull/|/issues/|` + regexp.QuoteMeta(thread.BranchPrefix) + `)(\d+)\b`)

// refers reports whether a text names what Pawl made of a thread: its branch or its
// pull request. The number of the issue itself is people's.
func refers(text string, t thread.ID, s thread.State) bool {
	for _, m := range references.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		switch {
		case err != nil:
		case strings.HasPrefix(m[0], thread.BranchPrefix):
			if n == t.Number {
				return true
			}
		case n != 0 && n != t.Number && slices.ContainsFunc(s.Attempts, func(a thread.Attempt) bool { return a.Pull == n }):
			return true
		}
	}
	return false
}

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
		events, state, err := thread.Load(ctx, h.Store, n)
		if err != nil && events == nil { // the store does not answer
			return false, err
		}
		var wrote []feedback.Authored
		if err == nil {
			wrote, err = writings(events, state, at)
		}
		if err != nil && n != t {
			h.Log.Error().Err(err).Str("thread", n.String()).Msg("a log cannot be read; what its agent wrote is not known")
			continue
		}
		if err != nil {
			return false, err
		}
		agents = append(agents, wrote...)
	}
	return feedback.WroteAll(r.Parts(), agents...), nil
}

// writings are what the agents of those attempts wrote that ran at a time.
func writings(events []thread.Event, state thread.State, at time.Time) ([]feedback.Authored, error) {
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
