package agent

import (
	"slices"
	"time"
)

// sleepers are the conversations of a CLI that were refused and have not asked
// again, the one that was refused first at the front.
type sleepers []sleeper

type sleeper struct {
	nap
	until time.Time // when it must have asked again
}

// maxSleepers is more conversations than any CLI leads at once.
const maxSleepers = 64

// note takes a refusal or its end down and sets the alarm for the first that is
// asleep too long.
func (s *sleepers) note(n nap, now time.Time, alarm *time.Timer) {
	*s = slices.DeleteFunc(*s, func(other sleeper) bool { return other.session == n.session })
	if !n.over && len(*s) < maxSleepers {
		*s = append(*s, sleeper{n, now.Add(quietSleep)})
	}
	alarm.Stop()
	if len(*s) > 0 {
		alarm.Reset((*s)[0].until.Sub(now))
	}
}

// wake forgets all: a CLI that works does not sleep, and one whose helper was
// refused for good goes on without asking again for it.
func (s *sleepers) wake(alarm *time.Timer) {
	*s = nil
	alarm.Stop()
}
