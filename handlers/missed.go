package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver"
)

const (
	// lookBack is how old a missed delivery can be. GitHub keeps them for 3 days;
	// the rest is for the time that taking them in needs.
	lookBack = 70 * time.Hour
	// overlap is how much of the last list is looked at again: GitHub lists a
	// delivery only after its answer, for which it waits up to 30 s.
	overlap = 10 * time.Minute
	// maxLists bounds one look, in pages of 100 deliveries.
	maxLists = 1000
	// maxRefusals is how many payloads in a row may fail before the look ends: a
	// single one that GitHub cannot give must not hold up the others.
	maxRefusals = 10
)

// Missed lists the App's deliveries at GitHub back to those that the last look
// saw, at most 70 h, and stores those that Pawl never stored, whatever it
// answered: an outage, a full disk, a wrong webhook secret and a proxy that
// refuses large bodies all lose deliveries. A payload from the API needs no
// signature, for it was asked for over TLS with the App's key; beyond that it
// must pass what a webhook must. An error means that some are left for the next
// look.
func (c *CatchUp) Missed(ctx context.Context) (MissedDeliveries, error) {
	var m MissedDeliveries
	since := c.handlers.Now().Add(-lookBack)
	if from := c.listed.Add(-overlap); from.After(since) {
		since = from
	}
	missing, newest, err := c.missing(ctx, since, &m)
	if err != nil {
		return m, fmt.Errorf("list deliveries: %w", err)
	}
	// In the order in which they happened.
	slices.Reverse(missing)
	var failures []error
	refusals := 0
	for _, d := range missing {
		err := c.fetch(ctx, d, &m)
		var limited *forge.RateLimited
		if err == nil {
			refusals = 0
			continue
		}
		failures = append(failures, err)
		refusals++
		if ctx.Err() != nil || errors.As(err, &limited) || refusals == maxRefusals {
			break
		}
	}
	if len(failures) > 0 {
		return m, errors.Join(failures...)
	}
	if newest.After(c.listed) {
		c.listed = newest
	}
	return m, nil
}

// missing are the deliveries since a time that were not stored, newest first and
// each GUID once, and when GitHub sent the newest of all.
func (c *CatchUp) missing(ctx context.Context, since time.Time, m *MissedDeliveries) (missing []forge.Delivery, newest time.Time, err error) {
	asked := map[string]bool{}
	cursor := ""
	for range maxLists {
		page, next, err := c.handlers.Forge.Deliveries(ctx, cursor)
		if err != nil {
			return nil, newest, err
		}
		var candidates []forge.Delivery
		var guids []string
		reached := next == "" || next == cursor
		for _, d := range page {
			if d.At.After(newest) {
				newest = d.At
			}
			if d.At.Before(since) {
				reached = true
				continue
			}
			m.Listed++
			if ofUse(d) && guidForm.MatchString(d.GUID) && !asked[d.GUID] {
				asked[d.GUID] = true
				candidates, guids = append(candidates, d), append(guids, d.GUID)
			}
		}
		known, err := c.archive.Known(ctx, guids)
		if err != nil {
			return nil, newest, err
		}
		for _, d := range candidates {
			if !known[d.GUID] {
				missing = append(missing, d)
			}
		}
		if reached {
			return missing, newest, nil
		}
		cursor = next
	}
	c.handlers.Log.Warn().Int("listed", m.Listed).Msg("GitHub lists more deliveries than are looked through; older missed ones stay missed")
	return missing, newest, nil
}

// fetch stores one delivery as its webhook would have been.
func (c *CatchUp) fetch(ctx context.Context, d forge.Delivery, m *MissedDeliveries) error {
	log := c.handlers.Log.With().Str("delivery", d.GUID).Str("event", d.Event).Int("answered", d.StatusCode).Time("sent", d.At).Logger()
	payload, err := c.handlers.Forge.DeliveryPayload(ctx, d.ID)
	switch {
	case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrGone):
		log.Warn().Err(err).Msg("missed delivery lost: GitHub does not keep it any more")
		m.Gone++
		return nil
	case err != nil:
		return fmt.Errorf("delivery %s: %w", d.GUID, err)
	case len(payload) == 0 || len(payload) > MaxPayload:
		log.Warn().Int("bytes", len(payload)).Msg("missed delivery lost: its payload is empty or larger than 25 MiB")
		m.Gone++
		return nil
	}
	fresh, err := c.archive.Receive(ctx, solver.Delivery{
		GUID: d.GUID, Event: d.Event, Payload: payload, ReceivedAt: c.handlers.Now(), State: solver.Received,
	})
	if err != nil {
		return err
	}
	if fresh {
		m.Taken++
		log.Info().Msg("missed delivery taken in")
	}
	return nil
}
