package handlers

import (
	"context"
	"time"
)

// firstStartKey names, among what the nodes share, when Pawl began to listen.
const firstStartKey = "first-start"

// startSlack is how much GitHub's clock may be behind this one.
const startSlack = time.Minute

// firstStart is when Pawl began to listen on this database: the first time that
// anybody asked, or when the oldest delivery came that is stored. What was sent
// before that was sent to nobody, and a database that is new must not do the
// orders of the last three days. The answer is kept with what the nodes share; a
// time to come, of a clock that was ahead, counts as now.
func (c *CatchUp) firstStart(ctx context.Context) (time.Time, error) {
	now := c.handlers.Now().UTC()
	oldest, err := c.archive.Oldest(ctx)
	if err != nil {
		return time.Time{}, err
	}
	var first time.Time
	err = c.archive.UpdateShared(ctx, firstStartKey, func(old []byte) []byte {
		first = now
		if !oldest.IsZero() && oldest.Before(now) {
			first = oldest
		}
		if at, err := time.Parse(time.RFC3339, string(old)); err == nil && !at.After(first) {
			first = at
			return nil
		}
		return []byte(first.Format(time.RFC3339))
	})
	return first.Add(-startSlack), err
}
