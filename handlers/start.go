package handlers

import (
	"context"
	"fmt"
	"time"
)

// firstStartKey names, among what the nodes share, when Pawl began to listen.
const firstStartKey = "first-start"

// startSlack is how much GitHub's clock may be behind this one.
const startSlack = time.Minute

// Begin notes when Pawl began to listen on this database, if that is not known
// yet. Call it before webhooks are answered: a first server that is killed before
// its first look would otherwise leave what was sent to it meanwhile to nobody.
func (c *CatchUp) Begin(ctx context.Context) error {
	if _, err := c.firstStart(ctx); err != nil {
		return fmt.Errorf("note when Pawl began to listen: %w", err)
	}
	return nil
}

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
