package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver"
)

const (
	// firstLook is how far back the first reconciliation looks. Missed deliveries
	// go back 70 h; this reaches over a server that was down for longer.
	firstLook = 7 * 24 * time.Hour
	// sameSeconds is how much of the last look is looked at again: GitHub's times
	// are whole seconds, and its lists lag behind by some.
	sameSeconds = time.Minute
	// maxReconciled bounds the threads, maxRepos the repositories, and maxDetails
	// the changed threads of one repository, that one look reads. A repository
	// without changes costs one request, a changed thread three or four.
	maxReconciled = 5000
	maxRepos      = 200
	maxDetails    = 50
)

// Reconcile compares Pawl's own threads with GitHub: comments, reviews,
// description, head and state that changed since the last look, at most 7 days
// ago. What the log does not hold becomes the event that its webhook would have
// become. It returns how many it found. An error means that some repositories
// are left for the next look.
func (c *CatchUp) Reconcile(ctx context.Context) (found int, err error) {
	rows, err := c.handlers.Store.Threads(ctx, maxReconciled)
	if err != nil {
		return 0, err
	}
	var names []string
	own := map[string][]solver.Thread{}
	for _, r := range rows {
		name := strings.ToLower(r.Thread.Repo())
		if _, met := own[name]; !met {
			names = append(names, name)
		}
		own[name] = append(own[name], r.Thread)
	}
	var errs []error
	for _, name := range names[:min(len(names), maxRepos)] {
		n, err := c.repository(ctx, name, own[name])
		found += n
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		// A repository that is gone or closed to the App has said so by its own
		// event, or will have nothing to say.
		if err != nil && !errors.Is(err, forge.ErrUninstalled) && !errors.Is(err, forge.ErrNotFound) && !errors.Is(err, forge.ErrGone) {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return found, errors.Join(errs...)
}

// repository reconciles the threads of one repository that changed, in the order
// in which they did, so that it can go on where it ended.
func (c *CatchUp) repository(ctx context.Context, name string, own []solver.Thread) (found int, err error) {
	repo, err := c.repoOf(ctx, own[0])
	if err != nil || repo.Installation == 0 {
		return 0, err
	}
	began := c.handlers.Now()
	since := began.Add(-firstLook)
	last, ok := c.seen[name]
	if ok {
		since = last.until.Add(-sameSeconds)
	}
	next := progress{until: last.until, final: map[int]time.Time{}}
	defer func() { c.seen[name] = next }()
	changed, _, err := c.handlers.Forge.ChangedSince(ctx, repo, since)
	if err != nil {
		return 0, err
	}
	details := 0
	for _, i := range changed {
		t, err := c.handlers.Store.Resolve(ctx, solver.Thread{Owner: own[0].Owner, Name: own[0].Name, Number: i.Number})
		if err != nil {
			return found, err
		}
		if slices.Contains(own, t) && !last.final[i.Number].Equal(i.Updated) {
			if details++; details > maxDetails {
				return found, nil
			}
			n, err := c.thread(ctx, repo, t, i, since)
			if found += n; err != nil {
				return found, fmt.Errorf("#%d: %w", i.Number, err)
			}
		}
		if i.Updated.After(next.until) {
			next.until = i.Updated
		}
		if began.Sub(i.Updated) > sameSeconds {
			next.final[i.Number] = i.Updated
		}
	}
	return found, nil
}

// repoOf is a thread's repository with its installation, which the log knows.
func (c *CatchUp) repoOf(ctx context.Context, t solver.Thread) (forge.Repo, error) {
	_, state, err := c.read(ctx, t)
	return forge.Repo{Owner: t.Owner, Name: t.Name, ID: state.Snapshot.RepoID, Installation: state.Snapshot.Installation}, err
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
