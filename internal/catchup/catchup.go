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
	// Known tells which of the GUIDs are stored; the others are missing.
	Known(ctx context.Context, guids []string) (map[string]bool, error)
	// Untried counts the deliveries without a try.
	Untried(ctx context.Context) (int, error)
	// Oldest is when the oldest known delivery was stored; zero for none.
	Oldest(ctx context.Context) (time.Time, error)
	// EachThread calls f with the decided threads, newest first, at most limit.
	EachThread(ctx context.Context, limit int, f func(thread.ID)) error
	handlers.Shared
}

// Duty lets one of several nodes look; see store.Duty.
type Duty interface {
	Begin(ctx context.Context) (mine bool, err error)
	Hold(ctx context.Context) error
	End(ctx context.Context) error
}

// Watcher finds what webhooks did not bring: failed deliveries, from GitHub's list, and missing events, from
// GitHub's state of Pawl's own threads. Its progress is in memory, so a new one looks as far back as it can: a
// delivery right after the start must not hide the gap before it. Its methods must not be called concurrently; of
// several nodes the duty lets one look.
type Watcher struct {
	// Listed is called after each of GitHub's lists of deliveries.
	Listed   func()
	handlers *handlers.Handlers
	archive  Archive
	duty     Duty
	bounds   bounds
	// listed is when GitHub sent the newest delivery of the last list; zero before the first. left has listed
	// deliveries that Pawl does not have, by GUID.
	listed time.Time
	left   map[string]missing
	seen   map[string]progress // of the reconciliation, by repository
	turns  map[string]int      // of the repositories: each one's last turn
	turn   int                 // the last one
	putOff bool                // the last reconciliation was postponed
}

// bounds limit one look; the rest follows with the next looks.
type bounds struct {
	failures int // failed payloads before the look ends: GitHub is down then, or has lost some
	// repos limits the reconciled repositories, by turns, owned one owner's; threads limits each one's changed
	// threads. A repository without changes costs one request and at most one for a token, 48 in an hour of looks, a
	// changed thread three or four.
	repos, owned, threads int
	quiet                 time.Duration // how long waiting deliveries come first: a thousand are handled in less
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

// askDuty is how often a node asks whether it is its turn.
const askDuty = 15 * time.Second

// Watch catches up whenever it is this node's duty, until ctx ends. Failures are logged and repeated at the next
// turn. After its first time, the longest, it calls first.
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
	c.warn(ctx, err, "whose turn it is to look for missed deliveries is not known; that is tried again")
	return mine
}

// warn logs an error, unless there is none or the server stops.
func (c *Watcher) warn(ctx context.Context, err error, what string) {
	if err != nil && ctx.Err() == nil {
		c.handlers.Log.Warn().Err(err).Msg(what)
	}
}

// PollEvery is how often a server without a public URL asks GitHub for deliveries, a hundred per answer: 1,200 of
// the 5,000 requests that GitHub gives an App in an hour.
const PollEvery = 3 * time.Second

// longestPoll is the longest wait while GitHub does not answer.
const longestPoll = time.Minute

// Poll stores deliveries from GitHub's list whenever that is this node's duty, until ctx ends. GitHub lists
// deliveries that it could send to nobody; one that a webhook also brings is stored once.
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
		c.warn(ctx, err, "deliveries not all taken in; GitHub keeps them for 3 days and is asked again")
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
		log.Warn().Err(err).Int("taken", m.Taken).Int("gone", m.Gone).Msg("missed deliveries not all taken in; GitHub keeps them for 3 days and they are looked for again")
	}
	if m.Taken > 0 || m.Gone > 0 {
		log.Info().Int("taken", m.Taken).Int("gone", m.Gone).Msg("missed deliveries taken in")
	}
}

func (c *Watcher) lookThreads(ctx context.Context) {
	log := c.handlers.Log
	n, err := c.Reconcile(ctx)
	if err != nil && ctx.Err() == nil {
		log.Warn().Err(err).Int("found", n).Msg("threads not all reconciled with GitHub; that is tried again")
	}
	if n > 0 {
		log.Info().Int("found", n).Msg("events found that no webhook brought")
	}
}

// lookQuiet is how often it checks for waiting deliveries.
const lookQuiet = 500 * time.Millisecond

// busy reports whether deliveries still wait after some time for them: they say more than the reconciliation can
// find, such as an edit's author. It does not postpone twice in a row: a queue that is never empty must not end the
// reconciliation.
func (c *Watcher) busy(ctx context.Context) bool {
	n, err := c.awaitQuiet(ctx)
	if err != nil {
		c.warn(ctx, err, "threads not reconciled with GitHub; that is tried again")
		return true
	}
	c.putOff = n > 0 && !c.putOff
	if c.putOff {
		c.handlers.Log.Debug().Int("deliveries", n).Msg("threads are reconciled with GitHub when the deliveries are handled")
	}
	return c.putOff
}

// awaitQuiet waits until no deliveries wait, within the bounds, and returns how many do.
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

// Counts counts the results of one look at GitHub's list.
type Counts struct {
	Listed int // listed deliveries, each try counted
	// Taken were stored now; Gone have no payload at GitHub any more, or one that Pawl does not accept.
	Taken, Gone int
}

// firstStartKey is the shared key of Pawl's first start.
const firstStartKey = "first-start"

// startSlack is how far GitHub's clock may be behind this one.
const startSlack = time.Minute

// Begin notes Pawl's first start on this database. Call it before webhooks are answered: otherwise deliveries to a
// first server that is killed before its first look would be lost.
func (c *Watcher) Begin(ctx context.Context) error {
	if _, err := c.firstStart(ctx); err != nil {
		return fmt.Errorf("note when Pawl began to listen: %w", err)
	}
	return nil
}

// firstStart is Pawl's first start on this database: the first call, or the oldest stored delivery. Earlier
// deliveries do not count: a new database must not carry out the commands of the last three days. A future time,
// from a clock that was ahead, counts as now.
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
