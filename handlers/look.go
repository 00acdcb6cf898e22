package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver"
)

// progress is how far the reconciliation of a repository came.
type progress struct {
	until time.Time // when the last change that was looked at was made
	// final are the changes by number, as their times, that were looked at so
	// long after they were made that no other can have been made at that time.
	final map[int]time.Time
	// more says that the last list was cut, so the next begins where it ended.
	more bool
	// failed are the threads, by number, that could not be reconciled.
	failed map[int]failedThread
}

// failedThread is a change that could not be looked at. As long as no list names
// its thread again, GitHub shows the thread as it was then.
type failedThread struct {
	forge.Changed
	since time.Time // of the look that failed first
	tries int
}

// since is where the next look of a repository begins.
func (p progress) since(now time.Time) time.Time {
	switch {
	case p.until.IsZero():
		return now.Add(-firstLook)
	case p.more:
		return p.until
	}
	return p.until.Add(-lookedTwice)
}

// look is one reconciliation of one repository.
type look struct {
	*CatchUp
	repo        forge.Repo
	own         []solver.Thread
	began       time.Time
	since       time.Time
	last, next  progress
	read, found int
	errs        []error
}

// through looks at what changed, until it is enough for one look; whole says that
// it came to the end. The error ends it; what concerns a single thread is in errs.
func (l *look) through(ctx context.Context, changed []forge.Changed) (whole bool, err error) {
	for _, i := range changed {
		t, err := l.handlers.Store.Resolve(ctx, solver.Thread{Owner: l.own[0].Owner, Name: l.own[0].Name, Number: i.Number})
		if err != nil {
			return false, err
		}
		if slices.Contains(l.own, t) && !l.last.final[i.Number].Equal(i.Updated) {
			if l.read++; l.read > l.bounds.threads {
				return false, nil
			}
			f := l.next.failed[i.Number]
			f.Changed = i
			if f.since.IsZero() {
				f.since = l.since
			}
			if err := l.thread(ctx, t, f); err != nil {
				return false, err
			}
		}
		if i.Updated.After(l.next.until) {
			l.next.until = i.Updated
		}
		if l.began.Sub(i.Updated) > lookedTwice {
			l.next.final[i.Number] = i.Updated
		}
	}
	return true, nil
}

// again looks at threads that failed in an earlier look and did not change since,
// those first that were tried least. After 7 days a thread is given up.
func (l *look) again(ctx context.Context) error {
	old := slices.DeleteFunc(slices.Collect(maps.Values(l.next.failed)), func(f failedThread) bool {
		before, ok := l.last.failed[f.Number]
		return !ok || f.tries != before.tries // it was looked at just now
	})
	slices.SortFunc(old, func(a, b failedThread) int {
		return cmp.Or(cmp.Compare(a.tries, b.tries), cmp.Compare(a.Number, b.Number))
	})
	for _, f := range old[:min(len(old), l.bounds.again)] {
		if l.began.Sub(f.Updated) > firstLook {
			delete(l.next.failed, f.Number)
			continue
		}
		t, err := l.handlers.Store.Resolve(ctx, solver.Thread{Owner: l.own[0].Owner, Name: l.own[0].Name, Number: f.Number})
		if err != nil {
			return err
		}
		if err := l.thread(ctx, t, f); err != nil {
			return err
		}
	}
	return nil
}

// thread looks at one thread and notes when that fails. The error is one that the
// other threads of the repository would meet as well.
func (l *look) thread(ctx context.Context, t solver.Thread, f failedThread) error {
	n, err := l.CatchUp.thread(ctx, l.repo, t, f.Changed, f.since)
	l.found += n
	var limited *forge.RateLimited
	switch {
	case err == nil, gone(err) && !errors.Is(err, forge.ErrUninstalled):
		delete(l.next.failed, f.Number)
		return nil
	case ctx.Err() != nil, errors.As(err, &limited), errors.Is(err, forge.ErrUninstalled):
		return fmt.Errorf("#%d: %w", f.Number, err)
	}
	if l.next.failed == nil {
		l.next.failed = map[int]failedThread{}
	}
	f.tries++
	l.next.failed[f.Number] = f
	l.errs = append(l.errs, fmt.Errorf("#%d: %w", f.Number, err))
	return nil
}
