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
	// firstLook limits how far back the first reconciliation looks. It covers outages longer than lookBack (70 h).
	firstLook   = 7 * 24 * time.Hour
	lookedTwice = time.Minute // overlap: GitHub's times are whole seconds, and its lists lag
	// maxReconciled limits one look to the most recently changed threads.
	maxReconciled = 50_000
)

// Reconcile compares Pawl's threads with GitHub: comments, reviews, description, head and state changed since the
// last look, at most 7 days ago. It adds missing events. Edits are logged and ignored, since their authors are
// unknown. It returns the number found; an error means that some are left for the next look.
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

// own returns Pawl's threads by lower-case repository, newest first. It interns the names to save memory.
func (c *Watcher) own(ctx context.Context) (map[string][]thread.ID, error) {
	own := map[string][]thread.ID{}
	return own, c.archive.EachThread(ctx, maxReconciled, func(t thread.ID) {
		t.Owner, t.Name = unique.Make(t.Owner).Value(), unique.Make(t.Name).Value()
		name := strings.ToLower(t.Repo())
		own[name] = append(own[name], t)
	})
}

// byTurns returns this look's repositories: the least recently checked ones, within the limits per owner and in all.
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

// gone reports whether the App lost access to a repository or an issue. Another webhook may report the loss.
func gone(err error) bool {
	for _, kind := range []error{forge.ErrUninstalled, forge.ErrNotFound, forge.ErrGone} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// repository reconciles one repository's changed threads in order, so that a later look can continue. A failing thread
// does not block others.
func (c *Watcher) repository(ctx context.Context, name string, own []thread.ID) (found int, err error) {
	repo, err := c.repoOf(ctx, own)
	if err != nil {
		return 0, err
	}
	if repo.Installation == 0 {
		return 0, nil
	}
	l := &look{Watcher: c, repo: repo, own: own, began: c.handlers.Now(), last: c.seen[name]}
	since := l.last.since(l.began)
	l.next = l.last.following(since)
	changed, more, err := c.handlers.Forge.Issues.ChangedSince(ctx, repo, since)
	if err != nil {
		return 0, err
	}
	whole, err := l.through(ctx, changed)
	complete := whole && !more
	switch {
	case err != nil:
		l.next.failed = true
	case complete:
		l.next.until = policy.Later(l.next.until, l.last.until)
	default:
		l.next.cutOff(since, whole)
	}
	c.seen[name] = l.next
	return l.found, errors.Join(append(l.errs, err)...)
}

const maxLogs = 20

// repoOf returns the threads' repository with its installation, from the first readable log.
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

// thread reads one changed issue or pull request and adds missing events.
func (c *Watcher) thread(ctx context.Context, repo forge.Repo, t thread.ID, i forge.Issue, since time.Time) (found int, err error) {
	h := c.handlers
	events, state, err := thread.Load(ctx, h.Store, t)
	if err != nil || !state.Worked() {
		return 0, err
	}
	app, err := h.Forge.Apps.Get(ctx)
	if err != nil {
		return 0, fmt.Errorf("look up the App: %w", err)
	}
	log := readLog(events, state)
	if log.began.After(since) {
		since = log.began
	}
	now, err := c.remote(ctx, repo, i, since)
	if err != nil {
		return 0, err
	}
	differences := comparison{
		thread: t,
		state:  state,
		remote: now,
		local:  log,
		app:    app,
		about:  handlers.About(repo, i, i.IsPull(), now.pull.Head, now.pull.Base),
	}
	for _, it := range differences.unseen() {
		note, err := h.Decide(ctx, it, handlers.Reconciled)
		if err != nil {
			return found, err
		}
		found++
		h.Log.Info().Str("thread", t.String()).Str("key", it.Key).Str("note", note).Msg("found by the reconciliation")
	}
	return found, nil
}

// remote reads an issue or pull request with its texts since a time.
func (c *Watcher) remote(ctx context.Context, repo forge.Repo, i forge.Issue, since time.Time) (now remote, err error) {
	now.Issue = i
	issues, pulls := c.handlers.Forge.Issues, c.handlers.Forge.PullRequests
	if now.comments, err = issues.CommentsSince(ctx, repo, i.Number, since); err != nil {
		return now, err
	}
	if !i.IsPull() {
		return now, nil
	}
	if now.pull, err = pulls.Get(ctx, repo, i.Number); err != nil {
		return now, err
	}
	if now.reviews, err = pulls.Reviews(ctx, repo, i.Number); err != nil {
		return now, err
	}
	now.remarks, err = pulls.CommentsSince(ctx, repo, i.Number, since)
	return now, err
}

type progress struct {
	until time.Time         // the last checked change's time
	final map[int]time.Time // update times of issues that need no second look, by number
	// more means that the last look was cut off, so the next one begins where it ended. failed means that a thread
	// failed, so everything except final is checked again, within firstLook.
	more, failed bool
	from         time.Time // where a series of incomplete looks began; texts are read since then
}

func (p progress) following(since time.Time) progress {
	next := progress{until: since, from: since, final: map[int]time.Time{}}
	switch {
	case p.more:
		next.from = policy.Earlier(since, p.from)
		next.failed = p.failed
		next.final = maps.Clone(p.final)
	case p.failed:
		next.from = policy.Earlier(since, p.from)
	}
	return next
}

// cutOff records that a look left changes for the next one. since is the time from which it looked; whole means that it
// covered GitHub's whole list.
func (p *progress) cutOff(since time.Time, whole bool) {
	p.more = true
	if !p.until.Equal(since) {
		return
	}
	// A single second has more changes than a list or a look can take.
	p.until = since.Add(time.Second)
	if !whole {
		p.failed = true
	}
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

// through checks changes up to one look's limit; whole means that it checked all of them. An error stops it. A single
// thread's error goes to errs and does not.
func (l *look) through(ctx context.Context, changed []forge.Issue) (whole bool, err error) {
	for _, i := range changed {
		t, err := l.handlers.Store.Resolve(ctx, thread.ID{Owner: l.own[0].Owner, Name: l.own[0].Name, Number: i.Number})
		if err != nil {
			return false, err
		}
		done := true
		if l.isNews(t, i) {
			l.read++
			if l.read > l.bounds.threads {
				return false, nil
			}
			done, err = l.thread(ctx, t, i)
			if err != nil {
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

// isNews reports whether an issue or pull request belongs to Pawl and has not been read since its last change.
func (l *look) isNews(t thread.ID, i forge.Issue) bool {
	return slices.Contains(l.own, t) && !l.last.final[i.Number].Equal(i.Updated)
}

// thread checks one thread and records its failure. It returns only errors that affect the other threads.
func (l *look) thread(ctx context.Context, t thread.ID, i forge.Issue) (done bool, err error) {
	n, err := l.Watcher.thread(ctx, l.repo, t, i, l.next.from)
	l.found += n
	_, limited := errors.AsType[*forge.RateLimited](err)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, forge.ErrUninstalled):
		return false, fmt.Errorf("#%d: %w", i.Number, err)
	case gone(err):
		return true, nil
	case ctx.Err() != nil, limited:
		return false, fmt.Errorf("#%d: %w", i.Number, err)
	}
	l.next.failed = true
	l.errs = append(l.errs, fmt.Errorf("#%d: %w", i.Number, err))
	return false, nil
}
