package catchup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

const (
	// lookBack limits a missed delivery's age. GitHub keeps deliveries for 3 days; the other 2 hours are for storing
	// them.
	lookBack     = 70 * time.Hour
	keptAtGitHub = 72 * time.Hour // docs.github.com, "Redelivering webhooks"
	// overlap repeats the end of the last list: GitHub lists a delivery only after the response, which may take 30 s.
	overlap = 10 * time.Minute
	// maxLists limits one look, in pages of 100 deliveries.
	maxLists = 1000
)

// missing is a listed delivery that is not stored.
type missing struct {
	forge.Delivery
	failed int // failed requests for its payload
}

// Missed lists the App's deliveries since the last look (at most 70 h, not before Pawl's first start) and stores the
// missing ones, whatever Pawl answered: outages, full disks, wrong secrets and proxies lose deliveries. A payload
// from the API needs no signature but must pass a webhook's other checks. Failed payloads are requested again by
// later looks, until GitHub drops them. An error means that some are left.
func (c *Watcher) Missed(ctx context.Context) (Counts, error) {
	var m Counts
	since, err := c.since(ctx)
	if err != nil {
		return m, fmt.Errorf("when to begin: %w", err)
	}
	most := c.bounds.failures
	listErr := c.list(ctx, since, &m)
	if listErr != nil {
		// Store the deliveries listed so far.
		listErr, most = fmt.Errorf("list deliveries: %w", listErr), 1
	}
	todo, err := c.todo(ctx, &m)
	if err != nil {
		return m, errors.Join(listErr, err)
	}
	return m, errors.Join(listErr, c.storeMissing(ctx, todo, most, &m))
}

func (c *Watcher) storeMissing(ctx context.Context, todo []missing, most int, m *Counts) error {
	var failures []error
	for _, d := range todo {
		err := c.fetch(ctx, d.Delivery, m)
		if err == nil {
			delete(c.left, d.GUID)
			continue
		}
		failures = append(failures, err)
		if len(failures) == most || ctx.Err() != nil {
			break
		}
		if _, limited := errors.AsType[*forge.RateLimited](err); limited {
			break
		}
		d.failed++
		c.left[d.GUID] = d
	}
	return errors.Join(failures...)
}

func (c *Watcher) since(ctx context.Context) (time.Time, error) {
	since := c.handlers.Now().Add(-lookBack)
	if from := c.listed.Add(-overlap); from.After(since) {
		return from, nil
	}
	first, err := c.firstStart(ctx)
	if first.After(since) {
		since = first
	}
	return since, err
}

// list collects the missing deliveries since a time. If it fails, the next look starts at the same time.
func (c *Watcher) list(ctx context.Context, since time.Time, m *Counts) error {
	asked := map[string]bool{}
	newest := c.listed
	cursor := ""
	for page := 0; ; page++ {
		if page == maxLists {
			c.handlers.Log.Warn().Int("listed", m.Listed).Msg("GitHub lists more deliveries than are looked through; older missed ones stay missed")
			break
		}
		if err := c.duty.Hold(ctx); err != nil {
			return err
		}
		list, next, err := c.handlers.Forge.Apps.Deliveries(ctx, cursor)
		if err != nil {
			return err
		}
		reached := next == "" || next == cursor // the last page
		for _, d := range list {
			newest = policy.Later(newest, d.At)
			if d.At.Before(since) {
				reached = true
				continue
			}
			m.Listed++
			// The newest try of each delivery comes first and suffices.
			if c.usable(d) && !asked[d.GUID] {
				asked[d.GUID] = true
				c.left[d.GUID] = missing{Delivery: d, failed: c.left[d.GUID].failed}
			}
		}
		if reached {
			break
		}
		cursor = next
	}
	c.listed = newest
	c.Listed()
	return nil
}

// usable reports whether Pawl would have stored and read a delivery.
func (c *Watcher) usable(d forge.Delivery) bool {
	return c.handlers.Reads(d.Event, d.Action) && handlers.ValidGUID(d.GUID)
}

// todo returns the missing deliveries, the most often failed ones last. It drops deliveries that GitHub no longer
// keeps.
func (c *Watcher) todo(ctx context.Context, m *Counts) ([]missing, error) {
	known, err := c.archive.Known(ctx, slices.Collect(maps.Keys(c.left)))
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(c.left, func(guid string, _ missing) bool { return known[guid] })
	oldest := c.handlers.Now().Add(-keptAtGitHub)
	var todo []missing
	for guid, d := range c.left {
		if d.At.Before(oldest) {
			c.handlers.Log.Warn().Str("delivery", guid).Str("event", d.Event).Int("failed", d.failed).Msg("missed delivery lost: GitHub did not return its payload within 3 days")
			m.Gone++
			delete(c.left, guid)
			continue
		}
		todo = append(todo, d)
	}
	slices.SortFunc(todo, func(a, b missing) int {
		return cmp.Or(cmp.Compare(a.failed, b.failed), a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	return todo, nil
}

func (c *Watcher) fetch(ctx context.Context, d forge.Delivery, m *Counts) error {
	if err := c.duty.Hold(ctx); err != nil {
		return err
	}
	log := c.handlers.Log.With().Str("delivery", d.GUID).Str("event", d.Event).Int("answered", d.StatusCode).Time("sent", d.At).Logger()
	payload, err := c.handlers.Forge.Apps.Payload(ctx, d.ID)
	switch {
	case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrGone):
		log.Warn().Err(err).Msg("missed delivery lost: GitHub no longer keeps it")
		m.Gone++
		return nil
	case err != nil:
		return fmt.Errorf("delivery %s: %w", d.GUID, err)
	case len(payload) == 0 || len(payload) > handlers.MaxPayload:
		log.Warn().Int("bytes", len(payload)).Msg("missed delivery lost: its payload is empty or larger than 25 MiB")
		m.Gone++
		return nil
	}
	fresh, err := c.archive.Receive(ctx, thread.Delivery{
		GUID: d.GUID, Event: d.Event, Payload: payload, ReceivedAt: c.handlers.Now(), State: thread.Received,
	})
	if err != nil {
		return err
	}
	if fresh {
		m.Taken++
		log.Info().Msg("stored a delivery from GitHub's list")
	}
	return nil
}
