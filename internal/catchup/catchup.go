package catchup

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

type Archive interface {
	handlers.Deliveries
	// Known returns which GUIDs are stored.
	Known(ctx context.Context, guids []string) (map[string]bool, error)
	// Untried counts the deliveries that no node has tried to handle.
	Untried(ctx context.Context) (int, error)
	// Oldest returns when the oldest delivery was stored; zero for none.
	Oldest(ctx context.Context) (time.Time, error)
	// EachThread calls f with up to limit active threads, the most recently changed first.
	EachThread(ctx context.Context, limit int, f func(thread.ID)) error
	handlers.Shared
}

// Duty lets one node at a time catch up; see cluster.Duty.
type Duty interface {
	Begin(ctx context.Context) (mine bool, err error)
	Hold(ctx context.Context) error
	End(ctx context.Context) error
}

// Watcher finds failed deliveries in GitHub's list, and missing events in GitHub's state of Pawl's threads. Its
// progress is in memory: a new Watcher looks back as far as it can, so a delivery right after the start does not hide
// an earlier gap. Do not call its methods concurrently.
type Watcher struct {
	// Listed is called each time GitHub's deliveries have been listed.
	Listed   func()
	handlers *handlers.Handlers
	archive  Archive
	duty     Duty
	bounds   bounds
	// listed is when GitHub sent the newest listed delivery; zero before the first list. left holds listed deliveries
	// that are not stored, by GUID.
	listed time.Time
	left   map[string]missing
	seen   map[string]progress // progress of the reconciliation by repository
	turns  map[string]int      // the turn in which each repository was last checked
	turn   int                 // the last turn
	putOff bool                // the last reconciliation was postponed
}

// bounds limit one look. Later looks do the rest.
type bounds struct {
	failures int // failed payload requests that end the look: GitHub is down, or has lost payloads
	// repos limits the repositories, owned the repositories per owner, and threads the changed threads per repository.
	// A repository without changes costs one request, and at most one more for a token, 12 times an hour. A changed
	// thread costs three or four requests.
	repos, owned, threads int
	quiet                 time.Duration // how long a look waits for deliveries to be handled: enough for a thousand
}

func New(h *handlers.Handlers, a Archive, d Duty) *Watcher {
	return &Watcher{
		Listed:   func() {},
		handlers: h,
		archive:  a,
		duty:     d,
		bounds:   bounds{failures: 30, repos: 200, owned: 2, threads: 50, quiet: time.Minute},
		left:     map[string]missing{},
		seen:     map[string]progress{},
		turns:    map[string]int{},
	}
}

const askDuty = 15 * time.Second

// Watch catches up whenever it is this node's duty, until ctx ends. Failures are logged and retried at the next turn.
// After the first turn it calls first.
func (c *Watcher) Watch(ctx context.Context, first func()) {
	for {
		if c.onDuty(ctx) {
			first()
			first = func() {}
		}
		if wait.For(ctx, askDuty) != nil {
			return
		}
	}
}

func (c *Watcher) onDuty(ctx context.Context) bool {
	mine, err := c.duty.Begin(ctx)
	if mine {
		c.look(ctx)
		err = c.duty.End(ctx)
	}
	c.warn(ctx, err, "look up whose turn it is to fetch missed deliveries; retrying")
	return mine
}

func (c *Watcher) warn(ctx context.Context, err error, what string) {
	if err != nil && ctx.Err() == nil {
		c.handlers.Log.Warn().Err(err).Msg(what)
	}
}

// PollEvery is the interval at which a server without a public URL asks GitHub for deliveries: 1,200 of an App's
// 5,000 requests per hour.
const PollEvery = 3 * time.Second

const longestPoll = time.Minute

// Poll stores deliveries from GitHub's list while it is this node's duty, until ctx ends. GitHub also lists
// deliveries that it could not send. A delivery that a webhook also brings is stored once.
func (c *Watcher) Poll(ctx context.Context) {
	for failed, pause := 0, time.Duration(0); wait.For(ctx, pause) == nil; {
		mine, err := c.duty.Begin(ctx)
		if mine {
			_, err = c.Missed(ctx)
			if ended := c.duty.End(ctx); err == nil {
				err = ended
			}
		}
		failed++
		if err == nil {
			failed = 0
		}
		c.warn(ctx, err, "some deliveries were not stored; retrying, since GitHub keeps them for 3 days")
		pause = policy.Retry(failed, PollEvery, longestPoll, 1)
	}
}

func (c *Watcher) look(ctx context.Context) {
	c.lookMissed(ctx)
	if !c.busy(ctx) {
		c.lookThreads(ctx)
	}
}

func (c *Watcher) lookMissed(ctx context.Context) {
	log := c.handlers.Log
	m, err := c.Missed(ctx)
	if err != nil && ctx.Err() == nil {
		log.Warn().Err(err).Int("taken", m.Taken).Int("gone", m.Gone).Msg("some missed deliveries were not stored; retrying, since GitHub keeps them for 3 days")
	}
	if m.Taken > 0 || m.Gone > 0 {
		log.Info().Int("taken", m.Taken).Int("gone", m.Gone).Msg("stored missed deliveries")
	}
}

func (c *Watcher) lookThreads(ctx context.Context) {
	log := c.handlers.Log
	n, err := c.Reconcile(ctx)
	if err != nil && ctx.Err() == nil {
		log.Warn().Err(err).Int("found", n).Msg("some threads were not reconciled with GitHub; retrying")
	}
	if n > 0 {
		log.Info().Int("found", n).Msg("found events that no webhook delivered")
	}
}

const lookQuiet = 500 * time.Millisecond

// busy reports whether to postpone the reconciliation. Waiting deliveries have data that it lacks, such as an edit's
// author. They postpone it only once in a row, so that a busy queue does not stop it.
func (c *Watcher) busy(ctx context.Context) bool {
	n, err := c.awaitQuiet(ctx)
	if err != nil {
		c.warn(ctx, err, "threads were not reconciled with GitHub; retrying")
		return true
	}
	c.putOff = n > 0 && !c.putOff
	if c.putOff {
		c.handlers.Log.Debug().Int("deliveries", n).Msg("threads are reconciled with GitHub when the deliveries are handled")
	}
	return c.putOff
}

// awaitQuiet waits up to bounds.quiet until every delivery has been tried, and returns the number of untried ones.
func (c *Watcher) awaitQuiet(ctx context.Context) (untried int, err error) {
	began := time.Now()
	for {
		untried, err = c.archive.Untried(ctx)
		if err != nil || untried == 0 {
			return untried, err
		}
		if time.Since(began) >= c.bounds.quiet {
			return untried, nil
		}
		if err := wait.For(ctx, lookQuiet); err != nil {
			return untried, err
		}
	}
}

// Counts are the results of one list.
type Counts struct {
	Listed int // listed deliveries, counting each try
	// Taken counts stored deliveries. Gone counts those whose payload GitHub lacks or Pawl rejects.
	Taken, Gone int
}

const firstStartKey = "first-start"

// startSlack allows for GitHub's clock being behind.
const startSlack = time.Minute

// Begin stores Pawl's first start on this database. Call it before answering webhooks: otherwise a first server that
// is killed early loses deliveries.
func (c *Watcher) Begin(ctx context.Context) error {
	if _, err := c.firstStart(ctx); err != nil {
		return fmt.Errorf("note when Pawl began to listen: %w", err)
	}
	return nil
}

// firstStart returns when Pawl first started on this database, minus startSlack: the first call, or the oldest stored
// delivery if that is older. Earlier deliveries do not count, because a new database must not run the commands of the
// last three days. A stored time in the future counts as now.
func (c *Watcher) firstStart(ctx context.Context) (time.Time, error) {
	now := c.handlers.Now().UTC()
	oldest, err := c.archive.Oldest(ctx)
	if err != nil {
		return time.Time{}, err
	}
	var first time.Time
	err = c.archive.UpdateShared(ctx, firstStartKey, func(_ time.Time, old []byte) []byte {
		first = now
		if !oldest.IsZero() {
			first = policy.Earlier(now, oldest)
		}
		noted, err := time.Parse(time.RFC3339, string(old))
		if err != nil || noted.After(first) {
			return []byte(first.Format(time.RFC3339))
		}
		first = noted
		return nil
	})
	return first.Add(-startSlack), err
}
