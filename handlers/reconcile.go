package handlers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver"
)

const (
	// firstLook is how far back the first reconciliation looks. Missed deliveries
	// go back 70 h; this reaches over a server that was down for longer.
	firstLook = 7 * 24 * time.Hour
	// lookedTwice is how much of the last look is looked at again: GitHub's times
	// are whole seconds, and its lists lag behind by some.
	lookedTwice = time.Minute
	// maxReconciled bounds the threads that are known to one look; those touched
	// last go first.
	maxReconciled = 50_000
	// maxRepos bounds the repositories of one look, which go by turns, maxDetails
	// the changed threads of each, and maxAgain those of them that failed before.
	// A repository without changes costs one request, a changed thread three or
	// four.
	maxRepos   = 200
	maxDetails = 50
	maxAgain   = 10
)

// Reconcile compares Pawl's own threads with GitHub: comments, reviews,
// description, head and state that changed since the last look, at most 7 days
// ago. What the log does not hold becomes the event that its webhook would have
// become, except for edits: who made one is not known here, so it is logged and
// ignored. It returns how many it found. An error means that some repositories or
// threads are left for the next look.
func (c *CatchUp) Reconcile(ctx context.Context) (found int, err error) {
	own, err := c.own(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, name := range c.inTurn(slices.Sorted(maps.Keys(own))) {
		c.turn = name
		n, err := c.repository(ctx, name, own[name])
		delete(own, name)
		found += n
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		if err != nil && !gone(err) {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return found, errors.Join(errs...)
}

// own are Pawl's own threads by repository, in small letters, newest first. Their
// names share memory.
func (c *CatchUp) own(ctx context.Context) (map[string][]solver.Thread, error) {
	own := map[string][]solver.Thread{}
	return own, c.archive.EachThread(ctx, maxReconciled, func(t solver.Thread) {
		t.Owner, t.Name = unique.Make(t.Owner).Value(), unique.Make(t.Name).Value()
		name := strings.ToLower(t.Repo())
		own[name] = append(own[name], t)
	})
}

// inTurn are the repositories of this look: those after the one that was last.
func (c *CatchUp) inTurn(names []string) []string {
	if len(names) <= c.bounds.repos {
		return names
	}
	i, met := slices.BinarySearch(names, c.turn)
	if met {
		i++
	}
	return slices.Concat(names[i:], names[:i])[:c.bounds.repos]
}

// gone says that a repository is gone or closed to the App. It has said so by its
// own event, or will have nothing to say.
func gone(err error) bool {
	return errors.Is(err, forge.ErrUninstalled) || errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrGone)
}

// repository reconciles the threads of one repository that changed, in the order
// in which they did, so that it can go on where it ended. A thread that fails
// holds up no other; it is tried again by the next looks.
func (c *CatchUp) repository(ctx context.Context, name string, own []solver.Thread) (found int, err error) {
	repo, err := c.repoOf(ctx, own)
	if err != nil || repo.Installation == 0 {
		return 0, err
	}
	l := &look{CatchUp: c, repo: repo, own: own, began: c.handlers.Now(), last: c.seen[name]}
	l.since = l.last.since(l.began)
	l.next = progress{until: l.last.until, final: map[int]time.Time{}, failed: maps.Clone(l.last.failed)}
	changed, more, err := c.handlers.Forge.ChangedSince(ctx, repo, l.since)
	if err != nil {
		return 0, err
	}
	whole, err := l.through(ctx, changed)
	if err == nil {
		err = l.again(ctx)
	}
	if l.next.more = more && whole; l.next.more && l.next.until.Equal(l.last.until) {
		// More changes in one second than a list holds.
		l.next.until = l.next.until.Add(time.Second)
	}
	c.seen[name] = l.next
	return l.found, errors.Join(append(l.errs, err)...)
}

// maxLogs is how many logs are read for what they know of their repository.
const maxLogs = 20

// repoOf is the repository of threads with its installation, which the first of
// their logs that can be read and tells it knows.
func (c *CatchUp) repoOf(ctx context.Context, own []solver.Thread) (repo forge.Repo, err error) {
	for _, t := range own[:min(len(own), maxLogs)] {
		_, state, readErr := c.read(ctx, t)
		if n := state.Snapshot; readErr == nil && n.Installation != 0 {
			return forge.Repo{Owner: t.Owner, Name: t.Name, ID: n.RepoID, Installation: n.Installation}, nil
		}
		err = errors.Join(err, readErr)
	}
	return repo, err
}

func (c *CatchUp) read(ctx context.Context, t solver.Thread) ([]solver.Event, solver.State, error) {
	events, err := c.handlers.Store.Events(ctx, t, 0)
	if err != nil {
		return nil, solver.State{}, err
	}
	state, err := solver.Fold(events)
	if err != nil {
		return nil, state, fmt.Errorf("thread %s: %w", t, err)
	}
	return events, state, nil
}

// thread reads one changed issue or pull request and takes in what the log of
// its thread does not hold.
func (c *CatchUp) thread(ctx context.Context, repo forge.Repo, t solver.Thread, i forge.Changed, since time.Time) (found int, err error) {
	h := c.handlers
	events, state, err := c.read(ctx, t)
	if err != nil || !state.Tracked() {
		return 0, err
	}
	app, err := h.Forge.App(ctx)
	if err != nil {
		return 0, fmt.Errorf("who this App is: %w", err)
	}
	log := readLog(events)
	if log.began.After(since) {
		since = log.began
	}
	now := there{Changed: i}
	if now.comments, err = h.Forge.CommentsSince(ctx, repo, i.Number, since); err != nil {
		return 0, err
	}
	if i.IsPull {
		if now.pull, err = h.Forge.Pull(ctx, repo, i.Number); err != nil {
			return 0, err
		}
		if now.reviews, err = h.Forge.Reviews(ctx, repo, i.Number); err != nil {
			return 0, err
		}
		if now.remarks, err = h.Forge.ReviewCommentsSince(ctx, repo, i.Number, since); err != nil {
			return 0, err
		}
	}
	for _, hp := range unseen(now, log, state, app, t, repo) {
		note, err := h.take(ctx, hp, Reconciled)
		if err != nil {
			return found, err
		}
		found++
		h.Log.Info().Str("thread", t.String()).Str("key", hp.once).Str("note", note).Msg("found by the reconciliation")
	}
	return found, nil
}
