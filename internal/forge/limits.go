package forge

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Keys of limits beside installation ids: GitHub counts requests with the
// App's JWT and without credentials apart.
const (
	asAppKey     int64 = 0
	anonymousKey int64 = -1
)

// limits remembers, per installation, until when GitHub wants no request, so
// that one refused call keeps the others from asking too, and it paces
// creations. It is in memory only: after a restart the first call learns it
// again. Its zero value is ready.
type limits struct {
	mu    sync.Mutex
	holds map[int64]hold
	paces map[int64]*pace
}

// hold is a time before which nothing is sent.
type hold struct {
	until     time.Time
	secondary bool
}

// block keeps every call under key back until a time. A later time already
// known stays.
func (l *limits) block(key int64, until time.Time, secondary bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds == nil {
		l.holds = make(map[int64]hold)
	}
	if until.After(l.holds[key].until) {
		l.holds[key] = hold{until: until, secondary: secondary}
	}
}

// held returns the hold for key; one that has passed is removed.
func (l *limits) held(key int64, now time.Time) (hold, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.holds[key]
	if ok && !h.until.After(now) {
		delete(l.holds, key)
		return hold{}, false
	}
	return h, ok
}

// pace keeps creations under GitHub's limits of 80 a minute and 500 an hour
// per installation. Each bucket holds half of its limit and refills the other
// half in the window, so no window sees more than the limit.
type pace struct {
	minute *rate.Limiter
	hour   *rate.Limiter
}

// creation reserves one creation under key and returns how long to wait for
// it. A caller that does not wait must call cancel.
func (l *limits) creation(key int64, now time.Time) (wait time.Duration, cancel func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paces == nil {
		l.paces = make(map[int64]*pace)
	}
	p := l.paces[key]
	if p == nil {
		p = &pace{
			minute: rate.NewLimiter(rate.Every(time.Minute/40), 40),
			hour:   rate.NewLimiter(rate.Every(time.Hour/250), 250),
		}
		l.paces[key] = p
	}
	a, b := p.minute.ReserveN(now, 1), p.hour.ReserveN(now, 1)
	wait = max(a.DelayFrom(now), b.DelayFrom(now))
	return wait, func() { a.CancelAt(now); b.CancelAt(now) }
}
