package handlers

import (
	"context"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
)

// Archive is where deliveries are stored, and can be asked for.
type Archive interface {
	Deliveries
	// Known tells which of the GUIDs were stored; the others are missing.
	Known(ctx context.Context, guids []string) (map[string]bool, error)
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
	// listed is when GitHub sent the newest delivery of the last list that was
	// taken in as a whole; zero before that.
	listed time.Time
	seen   map[string]progress // of the reconciliation, by repository
}

// progress is how far the reconciliation of a repository came.
type progress struct {
	until time.Time // when the last change that was looked at was made
	// final are the changes by number, as their times, that were looked at so
	// long after they were made that no other can have been made at that time.
	final map[int]time.Time
}

// NewCatchUp makes one that has not looked yet.
func NewCatchUp(h *Handlers, a Archive) *CatchUp {
	return &CatchUp{handlers: h, archive: a, seen: map[string]progress{}}
}

// Watch catches up at once and then at every interval, until ctx ends. What fails
// is logged and done at the next interval.
func (c *CatchUp) Watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		c.pass(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
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
	if n, err := c.Reconcile(ctx); err != nil && ctx.Err() == nil {
		log.Warn().Err(err).Int("found", n).Msg("threads not all reconciled with GitHub; that is tried again")
	} else if n > 0 {
		log.Info().Int("found", n).Msg("events found that no webhook brought")
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
