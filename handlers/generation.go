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
func (h *Handlers) descends(ctx context.Context, t thread.ID, s thread.State, it Activity, r *feedback.Remark) (generation int, cause string, err error) {
	o := origin{
		text:    it.Snapshot.Title + "\n" + it.Snapshot.Body,
		body:    cmp.Or(it.Snapshot.Body, it.Snapshot.Title),
		author:  it.Snapshot.Author,
		created: it.created,
		typed:   feedback.Typed(r.Actor, r.Source, it.Target.Kind),
	}
	if o.typed && (s.Tracked() || !o.byProgram(it.MadeAt)) { // which begins a new chain
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
	o.own = strings.EqualFold(o.author, app.Slug+"[bot]")
	for _, n := range near {
		events, of, err := thread.Load(ctx, h.Store, n)
		if err != nil {
			h.Log.Error().Err(err).Str("thread", n.String()).Msg("a log cannot be read; what comes of its work is not known")
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

// origin is how a thread that Pawl did not work on came to be, and what was found near it.
type origin struct {
	text, body, author string
	created            time.Time
	typed              bool // a person asks for work in a comment or by a button
	own                bool // Pawl itself opened the thread

	derived int            // threads near that come of Pawl's own work
	beside  []contemporary // threads that only the time connects it with
}

// contemporary is a thread on which an agent worked when another one was opened.
type contemporary struct {
	thread     thread.ID
	generation int
}

// byProgram reports whether a command under an issue may be the program's that opened it: it came at once, and the issue
// names others.
func (o *origin) byProgram(commanded time.Time) bool {
	return commanded.Sub(o.created) <= atOnce && references.MatchString(o.text)
}

// from says why the thread follows from Pawl's work on another thread, n. It is empty if it does not, or if only the time
// suggests it.
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
	if o.own || asked(of, o.author) {
		o.beside = append(o.beside, contemporary{n, of.Generation})
	}
	return "", nil
}

// byTime is the generation of a thread that shares only its time with Pawl's work: it was opened while or shortly after
// an agent ran.
func (o *origin) byTime() (generation int, cause string) {
	if o.typed {
		return 0, ""
	}
	if len(o.beside) == 0 {
		if o.own {
			return 1, "it was opened by " + o.author
		}
		return 0, ""
	}
	// The nearest to people counts: somebody who opens issues while agents work is no chain
	// of agents. But whoever opens one after the other may be, so of many it is the farthest.
	slices.SortStableFunc(o.beside, func(a, b contemporary) int { return a.generation - b.generation })
	from := o.beside[0]
	if o.derived >= maxBeside {
		from = o.beside[len(o.beside)-1]
	}
	return from.generation + 1, "it was opened by " + o.author + " while or shortly after Pawl worked on " + from.thread.String()
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
	if at.IsZero() {
		return false
	}
	return slices.ContainsFunc(s.Attempts, func(a thread.Attempt) bool {
		return ran(a, a.At.Truncate(time.Second), at) // GitHub's times are whole seconds
	})
}

// ran reports whether an attempt that began at a time ran at another, or ended shortly before that.
func ran(a thread.Attempt, began, at time.Time) bool {
	if at.Before(began) {
		return false
	}
	return a.EndedAt.IsZero() || !at.After(a.EndedAt.Add(ownAfter))
}

// references are the ways in which a text names an issue or a pull request of its
// repository, and Pawl's branches.
var references = regexp.MustCompile(`(?:#|/pull/|/issues/|` + regexp.QuoteMeta(thread.BranchPrefix) + `)(\d+)\b`)

// refers reports whether a text names what Pawl made of a thread: its branch or its
// pull request. The number of the issue itself is people's.
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

// opened reports whether a thread's work opened a pull request.
func opened(s thread.State, pull int) bool {
	return pull != 0 && slices.ContainsFunc(s.Attempts, func(a thread.Attempt) bool { return a.Pull == pull })
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
