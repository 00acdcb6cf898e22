package forge

import (
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/pawlbot/pawl/policy"
)

// GitHub's limits for one installation ("Rate limits for the REST API", secondary limits). GitHub does not say
// whether edits and reactions are content, so here they are. Check runs are none.
const (
	atOnce = 100 // concurrent requests

	readPoints  = 1
	writePoints = 5
)

// limit is GitHub's number of points or requests within any stretch of a length.
type limit struct {
	most int
	in   time.Duration
}

var (
	pointsLimit = limit{900, time.Minute}
	minuteLimit = limit{80, time.Minute} // of content
	hourLimit   = limit{500, time.Hour}  // of content
)

// pacer lets a third of the limit through at once, and six tenths within its length. Any such stretch then has at
// most 14/15 of the limit. The rest is for requests that reach GitHub up to a ninth of the length after they were
// admitted: 6.6 s of a minute.
func (l limit) pacer() *rate.Limiter {
	perSecond := 0.6 * float64(l.most) / l.in.Seconds()
	return rate.NewLimiter(rate.Limit(perSecond), l.most/3)
}

type need struct {
	points int
	// content says that the limits of content apply.
	content bool
	// spare leaves a fifth of the limits to other requests.
	spare bool
}

// wait is the time until the pacer lets n through, with a fifth of its burst to spare.
func (n need) wait(pacer *rate.Limiter, now time.Time, tokens int) time.Duration {
	wanted := float64(tokens)
	if n.spare {
		wanted += float64(pacer.Burst()) / 5
	}
	missing := wanted - pacer.TokensAt(now)
	wait := time.Duration(math.Ceil(missing / float64(pacer.Limit()) * float64(time.Second)))
	if wait < time.Microsecond { // less is a rounding error
		return 0
	}
	return wait
}

// limits is one node's state of one installation: its requests, and GitHub's answers. It is not safe for concurrent
// use.
type limits struct {
	points *rate.Limiter
	minute *rate.Limiter // of content
	hour   *rate.Limiter // of content

	// hold is the time until which GitHub wants no request; secondary is false for the hourly limit.
	hold      time.Time
	secondary bool
	// strikes counts refusals without a time since the last success.
	strikes int
}

func newLimits() *limits {
	return &limits{points: pointsLimit.pacer(), minute: minuteLimit.pacer(), hour: hourLimit.pacer()}
}

// admit takes a request's cost, or takes nothing and returns the wait.
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

// answered notes a request's result. Each refusal without a time doubles the hold, as GitHub asks, until a request
// succeeds.
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
		l.strikes++ // once for all concurrent requests
	}
	if until.After(l.hold) {
		l.hold = until
		l.secondary = secondary
	}
}
