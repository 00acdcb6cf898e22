package catchup

import (
	"context"
	"time"

	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
)

// PollEvery is how often a server that GitHub cannot reach asks it for deliveries, of which each answer names a
// hundred: 1,200 of the 5,000 requests that GitHub gives an App in an hour.
const PollEvery = 3 * time.Second

// longestPoll is how long it waits where GitHub does not answer.
const longestPoll = time.Minute

// Poll takes in deliveries as GitHub lists them, whenever that is this node's duty, until ctx ends. GitHub sends them
// to nobody then and still lists them; where a webhook brings one, too, it is stored once.
func (c *Watcher) Poll(ctx context.Context) {
	for failed, pause := 0, time.Duration(0); wait.For(ctx, pause) == nil; {
		mine, err := c.duty.Begin(ctx)
		if mine {
			_, err = c.Missed(ctx)
			if ended := c.duty.End(ctx); err == nil {
				err = ended
			}
		}
		if failed++; err == nil {
			failed = 0
		} else if ctx.Err() == nil {
			c.handlers.Log.Warn().Err(err).Msg("deliveries not all taken in; GitHub keeps them for 3 days and is asked again")
		}
		pause = policy.Retry(failed, PollEvery, longestPoll, 1)
	}
}
