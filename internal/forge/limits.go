package forge

import (
	"encoding/json"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// What GitHub lets one installation do ("Rate limits for the REST API", secondary limits). It does not
// say whether edits and reactions are content, so here they are. Check runs are none.
const (
	// atOnce bounds the requests under way. Nodes that share the limits take a quarter each, without asking.
	atOnce       = 100
	atOnceShared = atOnce / 4

	readPoints  = 1
	writePoints = 5
)

var (
	pointsLimit = bucket{900, time.Minute}
	minuteLimit = bucket{80, time.Minute} // of content
	hourLimit   = bucket{500, time.Hour}  // of content
)

// bucket is a limit of so many within any stretch of time of a length, kept as a leaky bucket (the
// "generic cell rate algorithm"): all that has to be remembered is the time at which it is empty, so
// nodes can share it, which the state of golang.org/x/time/rate cannot be.
//
// A third of the limit may come at once, and six tenths of it flow out within the length. So any such
// stretch holds 14/15 of the limit at most; the rest is for requests that reach GitHub later than they
// were admitted, by up to a ninth of the length: 6.6 s of a minute.
type bucket struct {
	most int
	in   time.Duration
}

// each is how long it takes until one has flown out.
func (b bucket) each() time.Duration { return b.in * 10 / time.Duration(6*b.most) }

func (b bucket) size() time.Duration { return b.each() * time.Duration(b.most/3) }

// wait is how long it takes until n fit into a bucket that is empty at a time, with spare a fifth of it free.
func (b bucket) wait(empty, now time.Time, n int, spare bool) time.Duration {
	size := b.size()
	if spare {
		size = size * 4 / 5
	}
	return max(0, b.add(empty, now, n).Sub(now)-size)
}

// add is when the bucket is empty after n more.
func (b bucket) add(empty, now time.Time, n int) time.Time {
	return policy.Later(empty, now).Add(b.each() * time.Duration(n))
}

type need struct {
	points int
	// content marks what counts for the limits of content.
	content bool
	// spare leaves a fifth of the limits to requests without it.
	spare bool
}

// usage is what one installation has used of its limits, by the one clock of the nodes that share it.
// It is a value: its methods return the next one. Zero has used nothing.
type usage struct {
	// Points, Minute and Hour are the times at which these buckets are empty.
	Points time.Time `json:"points,omitzero"`
	Minute time.Time `json:"minute,omitzero"`
	Hour   time.Time `json:"hour,omitzero"`
	// Hold is a time before which GitHub wants nothing; Secondary is false for the hourly limit.
	Hold      time.Time `json:"hold,omitzero"`
	Secondary bool      `json:"secondary,omitempty"`
	// Strikes counts refusals that named no time since the last success.
	Strikes int `json:"strikes,omitempty"`
}

// parseUsage reads what a node stored. What cannot be read counts as nothing used; GitHub's answers are
// obeyed anyway.
func parseUsage(text []byte) (usage, error) {
	var u usage
	if err := json.Unmarshal(text, &u); err != nil && len(text) > 0 {
		return usage{}, err
	}
	return u, nil
}

// admit takes what a request needs, or takes nothing and says how long it has to wait first.
func (u usage) admit(now time.Time, n need) (next usage, wait time.Duration) {
	wait = max(0, u.Hold.Sub(now), pointsLimit.wait(u.Points, now, n.points, n.spare))
	if n.content {
		wait = max(wait, minuteLimit.wait(u.Minute, now, 1, n.spare), hourLimit.wait(u.Hour, now, 1, n.spare))
	}
	if wait > 0 {
		return u, wait
	}
	u.Points = pointsLimit.add(u.Points, now, n.points)
	if n.content {
		u.Minute, u.Hour = minuteLimit.add(u.Minute, now, 1), hourLimit.add(u.Hour, now, 1)
	}
	return u, 0
}

// answered notes what became of a request. Refusals that name no time hold back twice as long each, as
// GitHub asks, until one request succeeds.
func (u usage) answered(now time.Time, a answer) usage {
	over := !u.Hold.After(now)
	switch {
	case a.wantsPause(now):
		until, secondary, named := limitEnds(a, now, u.Strikes)
		if !named && over {
			u.Strikes++ // once for all that were under way together
		}
		if until.After(u.Hold) {
			u.Hold, u.Secondary = until, secondary
		}
	case a.class() == done && over: // else it was sent before the refusal
		u.Strikes = 0
	}
	return u
}

// settle mends what a wrong clock left behind: no time can be further ahead than its limit is long. The
// mended value must be kept, or it would be mended anew for ever.
func (u usage) settle(now time.Time) usage {
	u.Points = policy.Earlier(u.Points, now.Add(pointsLimit.size()))
	u.Minute = policy.Earlier(u.Minute, now.Add(minuteLimit.size()))
	u.Hour = policy.Earlier(u.Hour, now.Add(hourLimit.size()))
	u.Hold = policy.Earlier(u.Hold, now.Add(longestWait))
	return u
}

// by is the usage by a clock that is ahead of its own by so much.
func (u usage) by(ahead time.Duration) usage {
	for _, at := range []*time.Time{&u.Points, &u.Minute, &u.Hour, &u.Hold} {
		*at = at.Add(ahead)
	}
	return u
}
