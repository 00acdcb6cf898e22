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

// descends returns a thread's generation and its cause. A command that a user typed begins generation 0. Otherwise a
// tracked thread keeps its generation.
func (h *Handlers) descends(ctx context.Context, t thread.ID, s thread.State, it Activity, r *feedback.Remark) (generation int, cause string, err error) {
	o := origin{
		text:    it.Snapshot.Title + "\n" + it.Snapshot.Body,
		body:    cmp.Or(it.Snapshot.Body, it.Snapshot.Title),
		author:  it.Snapshot.Author,
		created: it.created,
		typed:   feedback.Typed(r.Actor, r.Source, it.Target.Kind),
	}
	if o.typed && (s.Tracked() || !o.byProgram(it.MadeAt)) { // begins a new chain
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
		return 0, "", fmt.Errorf("look up the App: %w", err)
	}
	o.own = strings.EqualFold(o.author, app.Slug+"[bot]")
	for _, n := range near {
		events, of, err := thread.Load(ctx, h.Store, n)
		if err != nil {
			h.Log.Error().Err(err).Str("thread", n.String()).Msg("a log cannot be read; threads that follow from its work are not recognised")
			continue
		}
		cause, err := o.from(n, events, of)
		if err != nil {
			return 0, "", fmt.Errorf("thread %s: %w", n, err)
		}
		if cause != "" {
			return of.Generation + 1, cause, nil
		}
	}
	generation, cause = o.byTime()
	return generation, cause, nil
}

// origin describes a new thread and the threads near it.
type origin struct {
	text, body, author string
	created            time.Time
	typed              bool // a user asks in a comment or by a button
	own                bool // Pawl itself opened the thread

	derived        int            // nearby threads that follow from Pawl's own work
	contemporaries []contemporary // threads connected only by time
}

// contemporary is a thread whose agent was working when another thread was opened.
type contemporary struct {
	thread     thread.ID
	generation int
}

// byProgram reports whether the program that opened an issue may have written a command: it came at once, and the
// issue refers to other threads.
func (o *origin) byProgram(commanded time.Time) bool {
	return commanded.Sub(o.created) <= atOnce && references.MatchString(o.text)
}

// from returns why the thread follows from Pawl's work on thread n, or empty. If only the time matches, it notes n.
func (o *origin) from(n thread.ID, events []thread.Event, of thread.State) (cause string, err error) {
	if refers(o.text, n, of) {
		return "it refers to Pawl's own work on " + n.String(), nil
	}
	if of.Generation > 0 {
		o.derived++
	}
	if o.typed || !ranAt(of, o.created) {
		return "", nil
	}
	agents, err := writings(events, of, o.created)
	if err != nil {
		return "", err
	}
	if feedback.WroteAll([]string{o.body}, agents...) {
		return "the agent wrote it while it worked on " + n.String(), nil
	}
	if o.own || requested(of, o.author) {
		o.contemporaries = append(o.contemporaries, contemporary{n, of.Generation})
	}
	return "", nil
}

// byTime returns the generation of a thread opened while an agent ran or shortly after.
func (o *origin) byTime() (generation int, cause string) {
	if o.typed {
		return 0, ""
	}
	if len(o.contemporaries) == 0 {
		if o.own {
			return 1, "it was opened by " + o.author
		}
		return 0, ""
	}
	// Usually the lowest generation counts: a user may open issues while agents work. With many derived threads the
	// highest counts: the writer may be a chain of agents.
	slices.SortStableFunc(o.contemporaries, func(a, b contemporary) int { return a.generation - b.generation })
	from := o.contemporaries[0]
	if o.derived >= maxDerived {
		from = o.contemporaries[len(o.contemporaries)-1]
	}
	return from.generation + 1, "it was opened by " + o.author + " while or shortly after Pawl worked on " + from.thread.String()
}

// atOnce is how soon after an issue's opening a command counts as written by the program that opened it.
const atOnce = 10 * time.Second

// maxDerived is the smallest number of nearby derived threads that does not count as coincidence.
const maxDerived = 5

func requested(s thread.State, login string) bool {
	return slices.ContainsFunc(s.Feedback, func(r thread.Request) bool { return strings.EqualFold(r.By.Login, login) })
}

func ranAt(s thread.State, at time.Time) bool {
	if at.IsZero() {
		return false
	}
	return slices.ContainsFunc(s.Attempts, func(a thread.Attempt) bool {
		return ran(a, a.At.Truncate(time.Second), at) // GitHub's times are whole seconds
	})
}

// ran reports whether an attempt was running at a time, or had ended shortly before. began replaces the attempt's
// start.
func ran(a thread.Attempt, began, at time.Time) bool {
	if at.Before(began) {
		return false
	}
	return a.EndedAt.IsZero() || !at.After(a.EndedAt.Add(ownAfter))
}

// references matches a text's references to an issue, a pull request or Pawl's branch.
var references = regexp.MustCompile(`(?:#|/pull/|/issues/|` + regexp.QuoteMeta(thread.BranchPrefix) + `)(\d+)\b`)

// refers reports whether a text names a thread's branch or pull request. The issue's own number does not count.
func refers(text string, t thread.ID, s thread.State) bool {
	for _, m := range references.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			continue
		}
		branch := strings.HasPrefix(m[0], thread.BranchPrefix)
		if branch && n == t.Number {
			return true
		}
		if !branch && n != t.Number && opened(s, n) {
			return true
		}
	}
	return false
}

func opened(s thread.State, pull int) bool {
	return pull != 0 && slices.ContainsFunc(s.Attempts, func(a thread.Attempt) bool { return a.Pull == pull })
}

// ownAfter allows for clock differences: a remark up to this long after an attempt's end may be the agent's.
const ownAfter = 2 * time.Minute

// authored reports whether an agent wrote the remark through a user's token. The agent's attempt may have run on this
// or another thread of the repository. Only the additions to an edited description count.
func (h *Handlers) authored(ctx context.Context, t thread.ID, r feedback.Remark, at time.Time) (bool, error) {
	near, err := h.Store.Near(ctx, t)
	if err != nil {
		return false, err
	}
	var agents []feedback.Authored
	for _, n := range append([]thread.ID{t}, near...) {
		events, state, err := thread.Load(ctx, h.Store, n)
		if err != nil && events == nil { // the store failed
			return false, err
		}
		var wrote []feedback.Authored
		if err == nil {
			wrote, err = writings(events, state, at)
		}
		if err != nil && n != t {
			h.Log.Error().Err(err).Str("thread", n.String()).Msg("a log cannot be read; its agent's texts are unknown")
			continue
		}
		if err != nil {
			return false, err
		}
		agents = append(agents, wrote...)
	}
	return feedback.WroteAll(r.Parts(), agents...), nil
}

func writings(events []thread.Event, state thread.State, at time.Time) ([]feedback.Authored, error) {
	wrote := map[int]feedback.Authored{}
	for _, a := range state.Attempts {
		if ran(a, a.At.Add(-ownAfter), at) {
			wrote[a.N] = feedback.Authored{}
		}
	}
	for _, e := range events {
		var w thread.Authored
		if e.Kind != thread.KindAuthored || len(wrote) == 0 {
			continue
		}
		if err := json.Unmarshal(e.Data, &w); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
		}
		if one, ok := wrote[w.N]; ok {
			one.Read(w.Runs)
			wrote[w.N] = one
		}
	}
	return slices.Collect(maps.Values(wrote)), nil
}
