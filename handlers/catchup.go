package handlers

import (
	"context"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver"
)

// Archive is where deliveries are stored, and can be asked for.
type Archive interface {
	Deliveries
	// Known tells which of the GUIDs were stored; the others are missing.
	Known(ctx context.Context, guids []string) (map[string]bool, error)
	// Unhandled counts the deliveries that nobody has tried to handle yet.
	Unhandled(ctx context.Context) (int, error)
	// Oldest is when the oldest delivery that is known was stored; zero when none
	// is.
	Oldest(ctx context.Context) (time.Time, error)
	// EachThread calls f with the threads about which something was decided, newest
	// first, at most limit.
	EachThread(ctx context.Context, limit int, f func(solver.Thread)) error
	// UpdateShared replaces a small value that all nodes share; see forge.Shared.
	UpdateShared(ctx context.Context, key string, f func(old []byte) (next []byte)) error
}

// CatchUp finds what webhooks did not bring: deliveries that failed, from
// GitHub's list of them, and events that never fired, from what GitHub says of
// Pawl's own threads. What it knows of its progress it keeps in memory, so a new
// one looks as far back as it can: a delivery that came a moment after the start
// must not hide the gap before it. Its methods must not be called at the same
// time; several nodes may each have one.
type CatchUp struct {
	handlers *Handlers
	archive  Archive
	bounds   bounds
	// listed is when GitHub sent the newest delivery of the last list; zero before
	// the first. What that list named and Pawl does not have is in left, by GUID.
	listed time.Time
	left   map[string]missing
	seen   map[string]progress // of the reconciliation, by repository
	turn   string              // the repository that was reconciled last
	putOff int                 // how often in a row the reconciliation was
}

// bounds are the most that one look does; the rest comes with the next ones.
type bounds struct {
	failures int // payloads that GitHub does not give
	repos    int // repositories to reconcile
	threads  int // changed threads of one repository
	again    int // of those, threads that failed before
	// quiet is how long the reconciliation waits for the deliveries.
	quiet time.Duration
}

// NewCatchUp makes one that has not looked yet.
func NewCatchUp(h *Handlers, a Archive) *CatchUp {
	return &CatchUp{
		handlers: h, archive: a, bounds: bounds{failures: maxFailures, repos: maxRepos, threads: maxDetails, again: maxAgain, quiet: maxQuiet},
		left: map[string]missing{}, seen: map[string]progress{},
	}
}

// Watch catches up at once and then at every interval, until ctx ends. What fails
// is logged and done at the next interval. After the first time, which has the most
// to look at, it calls first.
func (c *CatchUp) Watch(ctx context.Context, every time.Duration, first func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	c.pass(ctx)
	first()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.pass(ctx)
		}
	}
}

func (c *CatchUp) pass(ctx context.Context) {
	log := c.handlers.Log
	if m, err := c.Missed(ctx); err != nil && ctx.Err() == nil {
		log.Warn().Err(err).Int("taken", m.Taken).Msg("missed deliveries not all taken in; GitHub keeps them for 3 days and they are looked for again")
	} else if m.Taken+m.Gone > 0 {
		log.Info().Int("taken", m.Taken).Int("gone", m.Gone).Msg("missed deliveries taken in")
	}
	if c.busy(ctx) {
		return
	}
	if n, err := c.Reconcile(ctx); err != nil && ctx.Err() == nil {
		log.Warn().Err(err).Int("found", n).Msg("threads not all reconciled with GitHub; that is tried again")
	} else if n > 0 {
		log.Info().Int("found", n).Msg("events found that no webhook brought")
	}
}

const (
	// maxQuiet is how long the reconciliation waits for the deliveries that wait to
	// be handled: a thousand are handled in less.
	maxQuiet = time.Minute
	// lookQuiet is how often it looks meanwhile.
	lookQuiet = 500 * time.Millisecond
	// maxPutOff is how often in a row it is put off because they did not come to
	// their end. A queue that is never empty must not end it.
	maxPutOff = 1
)

// busy reports whether deliveries wait to be handled, after some time for them.
// They say more than the reconciliation can find, such as who made an edit, so
// they come first.
func (c *CatchUp) busy(ctx context.Context) bool {
	n, err := c.unhandled(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.handlers.Log.Warn().Err(err).Msg("threads not reconciled with GitHub; that is tried again")
		}
		return true
	}
	if n == 0 || c.putOff >= maxPutOff {
		c.putOff = 0
		return false
	}
	c.putOff++
	c.handlers.Log.Debug().Int("deliveries", n).Msg("threads are reconciled with GitHub when the deliveries are handled")
	return true
}

// unhandled waits until no delivery waits to be handled, but not for long, and
// returns how many do.
func (c *CatchUp) unhandled(ctx context.Context) (n int, err error) {
	began := time.Now()
	tick := time.NewTicker(lookQuiet)
	defer tick.Stop()
	for {
		n, err := c.archive.Unhandled(ctx)
		if n == 0 || err != nil || time.Since(began) >= c.bounds.quiet {
			return n, err
		}
		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case <-tick.C:
		}
	}
}

// ofUse reports whether a delivery can mean anything to Pawl; others are not
// worth the request for their payload.
func ofUse(d forge.Delivery) bool {
	switch d.Event {
	case "issue_comment", "issues", "pull_request", "pull_request_review", "pull_request_review_comment", "push",
		"delete", "installation", "installation_repositories", "repository":
		return true
	case "check_run":
		return d.Action != "created" // most of them, and no results yet
	}
	return false
}

// MissedDeliveries counts what one look at GitHub's list came to.
type MissedDeliveries struct {
	// Listed are the deliveries that GitHub named, each attempt counted.
	Listed int
	// Taken are those that were stored now, Gone those whose payload GitHub does
	// not give any more or that are no deliveries Pawl could have accepted.
	Taken, Gone int
}
