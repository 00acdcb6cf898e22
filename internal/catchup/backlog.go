package catchup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// Backlog asks for work on the open issues with a label that nobody asked Pawl to work on yet, the oldest first, one
// each so often and so many a day. Whoever put the label on must be one who may ask for work. Of several nodes one
// looks: when the last look was, and what was begun, is shared.
type Backlog struct {
	Handlers *handlers.Handlers
	Shared   forge.Shared
	// Label is that of the issues, Repositories are those that are looked at, as owner/name; after Every the next issue
	// is begun, and in any 24 hours PerDay of them at most.
	Label        string
	Repositories []string
	Every        time.Duration
	PerDay       int
	// passed are the issues, as owner/name#n, that are not worked on as they were at that time; in memory, to spare
	// requests.
	passed map[string]time.Time
}

// maxTried bounds the issues of one look that cost requests of their own, two each.
const maxTried = 10

// maxListed bounds what is read of one repository's list, in pages of 100.
const maxListed = 10

// begunKey names, among what the nodes share, what was begun.
const begunKey = "backlog"

// begun is when was looked last, and the issues that were begun in the 24 hours before that, oldest first.
type begun struct {
	Looked time.Time   `json:"looked"`
	At     []time.Time `json:"at"`
}

// Watch looks whenever it is time, until ctx ends. What fails is logged and done at the next turn.
func (b *Backlog) Watch(ctx context.Context) {
	for b.passed = map[string]time.Time{}; ; {
		if err := b.turn(ctx); err != nil && ctx.Err() == nil {
			b.Handlers.Log.Warn().Err(err).Str("label", b.Label).Msg("the backlog was not looked at whole; that is done again in its time")
		}
		if wait.For(ctx, askDuty) != nil {
			return
		}
	}
}

// turn takes one of the day's places, and gives it back where certainly nothing was begun.
func (b *Backlog) turn(ctx context.Context) error {
	var mine time.Time
	err := b.update(ctx, func(now time.Time, n *begun) bool {
		mine = time.Time{} // this may be called more than once
		n.At = slices.DeleteFunc(n.At, func(at time.Time) bool { return now.Sub(at).Abs() >= 24*time.Hour })
		if now.Sub(n.Looked).Abs() < b.Every || len(n.At) >= b.PerDay {
			return false
		}
		mine, n.Looked, n.At = now, now, append(n.At, now)
		return true
	})
	if err != nil || mine.IsZero() {
		return err
	}
	started, err := b.next(ctx)
	if started {
		return err
	}
	return errors.Join(err, b.update(ctx, func(_ time.Time, n *begun) bool {
		n.At = slices.DeleteFunc(n.At, mine.Equal)
		return true
	}))
}

func (b *Backlog) update(ctx context.Context, f func(now time.Time, n *begun) bool) error {
	return b.Shared.UpdateShared(ctx, begunKey, func(now time.Time, old []byte) []byte {
		var n begun
		if json.Unmarshal(old, &n) != nil {
			n = begun{Looked: now} // what was begun is not known, so nothing is for a while
		}
		if len(old) == 0 {
			n = begun{}
		}
		if !f(now, &n) {
			return nil
		}
		next, _ := json.Marshal(n) // times, which can always be written
		return next
	})
}

// waiting is an issue of the backlog.
type waiting struct {
	forge.Issue
	repo forge.Repo
}

func (w waiting) name() string {
	return strings.ToLower(fmt.Sprintf("%s#%d", w.repo.FullName(), w.Number))
}

// next begins the oldest issue that may be begun. With an error, one may have been.
func (b *Backlog) next(ctx context.Context) (started bool, err error) {
	var all []waiting
	var errs []error
	for _, name := range b.Repositories {
		found, err := b.waits(ctx, name)
		all = append(all, found...)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	slices.SortStableFunc(all, func(x, y waiting) int { return x.Created.Compare(y.Created) })
	for _, w := range all[:min(len(all), maxTried)] {
		if started, err := b.begin(ctx, w); started || err != nil {
			return started, errors.Join(append(errs, err)...)
		}
		b.passed[w.name()] = w.Updated
	}
	return false, errors.Join(errs...)
}

// waits are the oldest issues of one repository that nobody asked Pawl to work on, of the first page that has any.
func (b *Backlog) waits(ctx context.Context, name string) (list []waiting, err error) {
	owner, short, _ := strings.Cut(name, "/")
	repo := forge.Repo{Owner: owner, Name: short}
	if repo.Installation, err = b.Handlers.Forge.Apps.Installation(ctx, repo); err != nil {
		return nil, err
	}
	for page := 1; page != 0 && page <= maxListed && len(list) == 0; {
		var issues []forge.Issue
		if issues, page, err = b.Handlers.Forge.Issues.Labelled(ctx, repo, b.Label, page); err != nil {
			return nil, err
		}
		for _, i := range issues {
			w := waiting{Issue: i, repo: repo}
			if i.IsPull() || b.passed[w.name()].Equal(i.Updated) {
				continue
			}
			known, err := b.Handlers.Tracked(ctx, thread.ID{Owner: owner, Name: short, Number: i.Number})
			if err != nil {
				return nil, err
			}
			if !known {
				list = append(list, w)
			}
		}
	}
	return list, nil
}

// begin gives an issue to the handlers as if its label had just been put on. What changed since it was put on was not
// seen by whoever did, so it must be put on again.
func (b *Backlog) begin(ctx context.Context, w waiting) (started bool, err error) {
	h, label := b.Handlers, b.Label
	marks, err := h.Forge.Issues.Events(ctx, w.repo, w.Number)
	if err != nil {
		return false, fmt.Errorf("#%d: %w", w.Number, err)
	}
	var put forge.IssueEvent
	changed := ""
	for _, e := range marks {
		switch {
		case e.Event == "labeled" && strings.EqualFold(e.Label.Name, label):
			put, changed = e, ""
		case e.Event == "renamed":
			changed = "the title was changed"
		}
	}
	if put.ID == 0 {
		h.Log.Info().Str("thread", w.name()).Str("label", label).Msg("GitHub does not tell who put the backlog's label on; it is to be put on again")
		return false, nil
	}
	said, err := h.Forge.Discussions.Read(ctx, w.repo, w.Number, 0)
	if err != nil {
		return false, fmt.Errorf("#%d: %w", w.Number, err)
	}
	if !said.Edited.IsZero() && !said.Edited.Before(put.At) {
		changed = "the description was edited"
	}
	info, err := h.Forge.Repositories.Get(ctx, w.repo)
	if err != nil {
		return false, fmt.Errorf("#%d: %w", w.Number, err)
	}
	w.repo.ID = info.ID
	it := handlers.About(w.repo, w.Issue, false, forge.Branch{}, forge.Branch{})
	it.Snapshot.DefaultBranch, it.MadeAt = info.DefaultBranch, w.Updated
	it.Snapshot.Title, it.Snapshot.Body = said.Title, said.Body // as they were when it was looked whether they changed
	it.Target, it.Key = thread.Target{Kind: "issue", ID: int64(w.Number)}, fmt.Sprintf("backlog:%d:%s", put.ID, changed)
	it.Remark = &feedback.Remark{Source: policy.FromBacklog, Actor: put.Actor, Author: put.Actor, App: put.App.ID, Name: label, State: changed}
	note, err := h.Decide(ctx, it, "backlog "+w.name()) // in place of a GUID
	h.Log.Info().Str("thread", w.name()).Str("note", note).Msg("looked at an issue of the backlog")
	return err != nil || strings.HasPrefix(note, string(thread.KindFeedback)+":"), err
}
