package forge

import (
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/pawlbot/pawl/policy"
)

// GitHub's limits for an installation ("Rate limits for the REST API", secondary limits). GitHub does not define
// content: edits and reactions count here, check runs do not.
const (
	atOnce = 100 // concurrent requests

	readPoints  = 1
	writePoints = 5
)

// limit is a number of points or requests within any window.
type limit struct {
	most int
	in   time.Duration
}

var (
	pointsLimit = limit{900, time.Minute}
	minuteLimit = limit{80, time.Minute} // content
	hourLimit   = limit{500, time.Hour}  // content
)

// pacer allows a burst of a third of the limit and six tenths per window, so at most 14/15 in any window. The rest
// covers requests that arrive up to a ninth of the window late: 6.6 s of a minute.
func (l limit) pacer() *rate.Limiter {
	perSecond := 0.6 * float64(l.most) / l.in.Seconds()
	return rate.NewLimiter(rate.Limit(perSecond), l.most/3)
}

type need struct {
	points int
	// content applies the content limits.
	content bool
	// spare leaves a fifth of the limits to others.
	spare bool
}

// wait returns the time until the pacer has the tokens and the spare.
func (n need) wait(pacer *rate.Limiter, now time.Time, tokens int) time.Duration {
	wanted := float64(tokens)
	if n.spare {
		wanted += float64(pacer.Burst()) / 5
	}
	missing := wanted - pacer.TokensAt(now)
	wait := time.Duration(math.Ceil(missing / float64(pacer.Limit()) * float64(time.Second)))
	if wait < time.Microsecond { // rounding error
		return 0
	}
	return wait
}

// limits holds one installation's state on this node. It is not safe for concurrent use.
type limits struct {
	points *rate.Limiter
	minute *rate.Limiter // content
	hour   *rate.Limiter // content

	// hold is when GitHub accepts requests again; secondary is false for the hourly limit.
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
	wait = max(0, l.holdEnd(now).Sub(now), n.wait(l.points, now, n.points))
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

// holdEnd returns the hold's end, at most longestWait ahead if the clock was set back.
func (l *limits) holdEnd(now time.Time) time.Time {
	l.hold = policy.Earlier(l.hold, now.Add(longestWait))
	return l.hold
}

// answered records a result. Each refusal without a time doubles the hold until a success.
func (l *limits) answered(now time.Time, a answer) {
	expired := !l.holdEnd(now).After(now)
	if !a.wantsPause(now) {
		if expired && a.class() == done { // otherwise the request was sent before the refusal
			l.strikes = 0
		}
		return
	}
	until, secondary, named := limitEnds(a, now, l.strikes)
	if expired && !named {
		l.strikes++ // once for all concurrent requests
	}
	if until.After(l.hold) {
		l.hold = until
		l.secondary = secondary
	}
}
