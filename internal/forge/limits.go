package forge

import (
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/pawlbot/pawl/policy"
)

// What GitHub lets one installation do ("Rate limits for the REST API", secondary limits). It does not
// say whether edits and reactions are content, so here they are. Check runs are none.
const (
	atOnce = 100 // requests under way

	readPoints  = 1
	writePoints = 5
)

// limit is a number of points or requests that GitHub takes within any stretch of time of a length.
type limit struct {
	most int
	in   time.Duration
}

var (
	pointsLimit = limit{900, time.Minute}
	minuteLimit = limit{80, time.Minute} // of content
	hourLimit   = limit{500, time.Hour}  // of content
)

// pacer lets a third of the limit through at once, and six tenths within its length. Any such stretch then holds at
// most 14/15 of the limit. The rest is for requests that reach GitHub up to a ninth of the length after they were
// admitted: 6.6 s of a minute.
func (l limit) pacer() *rate.Limiter {
	perSecond := 0.6 * float64(l.most) / l.in.Seconds()
	return rate.NewLimiter(rate.Limit(perSecond), l.most/3)
}

type need struct {
	points int
	// content marks what counts for the limits of content.
	content bool
	// spare leaves a fifth of the limits to requests without it.
	spare bool
}

// wait is how long it takes until the pacer lets n through, with a fifth of its burst to spare.
func (n need) wait(pacer *rate.Limiter, now time.Time, tokens int) time.Duration {
	wanted := float64(tokens)
	if n.spare {
		wanted += float64(pacer.Burst()) / 5
	}
	missing := wanted - pacer.TokensAt(now)
	wait := time.Duration(math.Ceil(missing / float64(pacer.Limit()) * float64(time.Second)))
	if wait < time.Microsecond { // less is the error of the division
		return 0
	}
	return wait
}

// limits is what one node knows of one installation: what it sent, and what GitHub answered. It is not safe for
// concurrent use.
type limits struct {
	points *rate.Limiter
	minute *rate.Limiter // of content
	hour   *rate.Limiter // of content

	// hold is a time before which GitHub wants nothing; secondary is false for the hourly limit.
	hold      time.Time
	secondary bool
	// strikes counts refusals that named no time since the last success.
	strikes int
}

func newLimits() *limits {
	return &limits{points: pointsLimit.pacer(), minute: minuteLimit.pacer(), hour: hourLimit.pacer()}
}

// admit takes what a request needs, or takes nothing and says how long it has to wait first.
func (l *limits) admit(now time.Time, n need) (wait time.Duration) {
	wait = max(0, l.held(now).Sub(now), n.wait(l.points, now, n.points))
	if n.content {
		wait = max(wait, n.wait(l.minute, now, 1), n.wait(l.hour, now, 1))
	}
	if wait > 0 {
		return wait
	}
	l.points.ReserveN(now, n.points)
	if n.content {
		l.minute.ReserveN(now, 1)
		l.hour.ReserveN(now, 1)
	}
	return 0
}

// held is the end of the hold. After the clock was set back it is kept within the longest wait.
func (l *limits) held(now time.Time) time.Time {
	l.hold = policy.Earlier(l.hold, now.Add(longestWait))
	return l.hold
}

// answered notes what became of a request. Refusals that name no time hold back twice as long each, as
// GitHub asks, until one request succeeds.
func (l *limits) answered(now time.Time, a answer) {
	over := !l.held(now).After(now)
	if !a.wantsPause(now) {
		if over && a.class() == done { // else it was sent before the refusal
			l.strikes = 0
		}
		return
	}
	until, secondary, named := limitEnds(a, now, l.strikes)
	if over && !named {
		l.strikes++ // once for all that were under way together
	}
	if until.After(l.hold) {
		l.hold = until
		l.secondary = secondary
	}
}
