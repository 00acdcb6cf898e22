package solver

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// Retry says how long a thread waits for its next try after so many steps in a
// row that did not come to their end, and whether there is one at all. Otherwise
// the thread waits for its next event, and the count begins anew.
type Retry func(inARow int) (wait time.Duration, again bool)

// How often a step is tried after errors. With retryCap between two tries that is
// for about a day, longer than an outage at GitHub lasts.
const (
	stepTries = 300
	retryCap  = 5 * time.Minute
)

// afterFailure doubles the wait from one second up to retryCap and takes a random
// half of it off, so that what failed together does not return together.
func afterFailure(inARow int) (wait time.Duration, again bool) {
	wait = max(policy.Backoff(inARow-1, 0, retryCap), time.Second)
	return wait - rand.N(wait/2), inARow < stepTries
}

// atOnce is for a step that was cut off where the process stops: any other node
// may take it, or the next process.
func atOnce(int) (wait time.Duration, again bool) { return 0, true }

// retry is when a step is tried again that ends with an error and the context that
// it was given; nil where it did all there was to do. Only Stop cancels that context,
// a deadline is an error.
func (s *step) retry(given context.Context, err error) Retry {
	switch {
	case err == nil:
		return nil
	case errors.Is(given.Err(), context.Canceled):
		return atOnce
	}
	return func(inARow int) (wait time.Duration, again bool) {
		if wait, again = afterFailure(inARow); !again {
			s.log.Error().Err(err).Int("tries", inARow).Msg("the step failed too often; the thread waits for its next event")
		}
		return wait, again
	}
}
