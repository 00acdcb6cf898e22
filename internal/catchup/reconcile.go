package catchup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

const (
	// firstLook is how far back the first reconciliation looks. Missed deliveries
	// go back 70 h; this reaches over a server that was down for longer.
	firstLook   = 7 * 24 * time.Hour
	lookedTwice = time.Minute // how much is looked at again: GitHub's times are whole seconds, and its lists lag behind
	// maxReconciled bounds the threads that are known to one look, those touched last first.
	maxReconciled = 50_000
)

// Reconcile compares Pawl's own threads with GitHub: comments, reviews, description, head and state that
// changed since the last look, at most 7 days ago. What the log does not hold becomes its webhook's event,
// except for edits: who made one is not known, so it is logged and ignored. It returns how many it found; an
// error means that some are left for the next look.
func (c *Watcher) Reconcile(ctx context.Context) (found int, err error) {
	own, err := c.own(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, name := range c.byTurns(slices.Sorted(maps.Keys(own))) {
		if err := c.duty.Hold(ctx); err != nil {
			return found, err
		}
		c.turn++
		c.turns[name] = c.turn
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

// own are Pawl's own threads by repository, in small letters, newest first. Names share memory.
func (c *Watcher) own(ctx context.Context) (map[string][]thread.ID, error) {
	own := map[string][]thread.ID{}
	return own, c.archive.EachThread(ctx, maxReconciled, func(t thread.ID) {
		t.Owner, t.Name = unique.Make(t.Owner).Value(), unique.Make(t.Name).Value()
		name := strings.ToLower(t.Repo())
		own[name] = append(own[name], t)
	})
}

// byTurns are the repositories of this look: those that were looked at longest ago,
// so many of each owner, who has one installation of the App, and so many in all.
func (c *Watcher) byTurns(names []string) []string {
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(c.turns[a], c.turns[b]) })
	taken := map[string]int{}
	names = slices.DeleteFunc(names, func(name string) bool {
		owner, _, _ := strings.Cut(name, "/")
		taken[owner]++
		return taken[owner] > c.bounds.owned
	})
	return names[:min(len(names), c.bounds.repos)]
}

// gone: a repository is gone or closed to the App, of which its own event tells, or nothing.
func gone(err error) bool {
	return errors.Is(err, forge.ErrUninstalled) || errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrGone)
}

// repository reconciles the threads of one repository that changed, in their order, so that it can go on where
// it ended. One that fails holds up no other; the next looks try it again.
func (c *Watcher) repository(ctx context.Context, name string, own []thread.ID) (found int, err error) {
	repo, err := c.repoOf(ctx, own)
	if err != nil || repo.Installation == 0 {
		return 0, err
	}
	l := &look{Watcher: c, repo: repo, own: own, began: c.handlers.Now(), last: c.seen[name]}
	since := l.last.since(l.began)
	l.next = progress{until: since, from: since, final: map[int]time.Time{}}
	if l.last.more || l.last.failed {
		l.next.from = policy.Earlier(since, l.last.from)
	}
	if l.last.more {
		l.next.failed, l.next.final = l.last.failed, maps.Clone(l.last.final)
	}
	changed, more, err := c.handlers.Forge.Issues.ChangedSince(ctx, repo, since)
	if err != nil {
		return 0, err
	}
	whole, err := l.through(ctx, changed)
	switch {
	case err != nil:
		l.next.failed = true
	case whole && !more:
		l.next.until = policy.Later(l.next.until, l.last.until)
	default:
		l.next.more = true
		if l.next.until.Equal(since) { // more changes in one second than a list or a look holds
			l.next.until, l.next.failed = since.Add(time.Second), l.next.failed || !whole
		}
	}
	c.seen[name] = l.next
	return l.found, errors.Join(append(l.errs, err)...)
}

// maxLogs is how many logs are read for what they know of their repository.
const maxLogs = 20

// repoOf is the repository of threads with its installation, which the first readable of their logs knows.
func (c *Watcher) repoOf(ctx context.Context, own []thread.ID) (repo forge.Repo, err error) {
	for _, t := range own[:min(len(own), maxLogs)] {
		_, state, readErr := thread.Load(ctx, c.handlers.Store, t)
		if n := state.Snapshot; readErr == nil && n.Installation != 0 {
			return forge.Repo{Owner: t.Owner, Name: t.Name, ID: n.RepoID, Installation: n.Installation}, nil
		}
		err = errors.Join(err, readErr)
	}
	return repo, err
}

// thread reads one changed issue or pull request and takes in what its log does not hold.
func (c *Watcher) thread(ctx context.Context, repo forge.Repo, t thread.ID, i forge.Issue, since time.Time) (found int, err error) {
	h := c.handlers
	events, state, err := thread.Load(ctx, h.Store, t)
	if err != nil || !state.Tracked() {
		return 0, err
	}
	app, err := h.Forge.Apps.Get(ctx)
	if err != nil {
		return 0, fmt.Errorf("who this App is: %w", err)
	}
	log := readLog(events, state)
	if log.began.After(since) {
		since = log.began
	}
	now := there{Issue: i}
	if now.comments, err = h.Forge.Issues.CommentsSince(ctx, repo, i.Number, since); err != nil {
		return 0, err
	}
	if i.IsPull() {
		if now.pull, err = h.Forge.PullRequests.Get(ctx, repo, i.Number); err != nil {
			return 0, err
		}
		if now.reviews, err = h.Forge.PullRequests.Reviews(ctx, repo, i.Number); err != nil {
			return 0, err
		}
		if now.remarks, err = h.Forge.PullRequests.CommentsSince(ctx, repo, i.Number, since); err != nil {
			return 0, err
		}
	}
	for _, it := range unseen(now, log, state, app, t, repo) {
		note, err := h.Decide(ctx, it, handlers.Reconciled)
		if err != nil {
			return found, err
		}
		found++
		h.Log.Info().Str("thread", t.String()).Str("key", it.Key).Str("note", note).Msg("found by the reconciliation")
	}
	return found, nil
}

// progress is how far the reconciliation of a repository came.
type progress struct {
	until time.Time         // when the last change that was looked at was made
	final map[int]time.Time // the changes, as their times by number, after which no other at that time can have been made
	// more says that the last look was cut, so the next begins where it ended; failed, that a thread could not be
	// reconciled, so all but what is final is looked at again, for as long as a first look goes back.
	more, failed bool
	from         time.Time // since when what was said is read: where the first of these looks began
}

func (p progress) since(now time.Time) time.Time {
	oldest := now.Add(-firstLook)
	switch {
	case p.until.IsZero():
		return oldest
	case p.more:
		return p.until
	case p.failed:
		return policy.Later(policy.Earlier(p.from, p.until.Add(-lookedTwice)), oldest)
	}
	return p.until.Add(-lookedTwice)
}

type look struct {
	*Watcher
	repo        forge.Repo
	own         []thread.ID
	began       time.Time
	last, next  progress
	read, found int
	errs        []error
}

// through looks at what changed, until it is enough for one look; whole says that
// it came to the end. The error ends it; what concerns a single thread is in errs.
func (l *look) through(ctx context.Context, changed []forge.Issue) (whole bool, err error) {
	for _, i := range changed {
		t, err := l.handlers.Store.Resolve(ctx, thread.ID{Owner: l.own[0].Owner, Name: l.own[0].Name, Number: i.Number})
		if err != nil {
			return false, err
		}
		done := true
		if slices.Contains(l.own, t) && !l.last.final[i.Number].Equal(i.Updated) {
			if l.read++; l.read > l.bounds.threads {
				return false, nil
			}
			if done, err = l.thread(ctx, t, i); err != nil {
				return false, err
			}
		}
		l.next.until = policy.Later(l.next.until, i.Updated)
		if done && l.began.Sub(i.Updated) > lookedTwice {
			l.next.final[i.Number] = i.Updated
		}
	}
	return true, nil
}

// thread looks at one thread, and notes where it fails. The error is one that the others would meet as well.
func (l *look) thread(ctx context.Context, t thread.ID, i forge.Issue) (done bool, err error) {
	n, err := l.Watcher.thread(ctx, l.repo, t, i, l.next.from)
	l.found += n
	_, limited := errors.AsType[*forge.RateLimited](err)
	switch {
	case err == nil, gone(err) && !errors.Is(err, forge.ErrUninstalled):
		return true, nil
	case ctx.Err() != nil, limited, errors.Is(err, forge.ErrUninstalled):
		return false, fmt.Errorf("#%d: %w", i.Number, err)
	}
	l.next.failed = true
	l.errs = append(l.errs, fmt.Errorf("#%d: %w", i.Number, err))
	return false, nil
}
