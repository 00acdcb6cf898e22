package fakegithub

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// quotas are the primary limits per caller, guarded by world.mu.
type quotas struct {
	windows map[string]*window
	limit   int // requests per hour
}

type window struct {
	limit int
	used  int
	reset time.Time
}

// anonymousLimit is the documented limit without credentials.
const anonymousLimit = 60

// charge counts a request toward the caller's hourly limit.
func (q *quotas) charge(name string, now time.Time) (*window, *reply) {
	limit := q.limit
	if name == "anonymous" {
		limit = anonymousLimit
	}
	w := q.windows[name]
	if w == nil || !now.Before(w.reset) {
		w = &window{limit: limit, reset: now.Add(time.Hour).Truncate(time.Second)}
		q.windows[name] = w
	}
	if w.used >= w.limit {
		rep := problem(http.StatusForbidden, "API rate limit exceeded for "+strings.Replace(name, ":", " ID ", 1)+".")
		rep.body.(obj)["documentation_url"] = docs + "/overview/rate-limits-for-the-rest-api"
		return w, rep
	}
	w.used++
	return w, nil
}

// refund uncounts a conditional GET.
func (w *window) refund() { w.used-- }

func (w *window) mark(rep *reply) *reply {
	rep.header.Set("X-RateLimit-Limit", strconv.Itoa(w.limit))
	rep.header.Set("X-RateLimit-Remaining", strconv.Itoa(w.limit-w.used))
	rep.header.Set("X-RateLimit-Used", strconv.Itoa(w.used))
	rep.header.Set("X-RateLimit-Reset", fmt.Sprint(w.reset.Unix()))
	rep.header.Set("X-RateLimit-Resource", "core")
	return rep
}

// Violation is a request that broke a documented limit.
type Violation struct {
	Caller string // installation:<id>
	Rule   string // description
	Method string
	Path   string
	At     time.Time
}

// limitChecks has the state of Strict. The zero value checks nothing.
type limitChecks struct {
	mu      sync.Mutex
	on      bool
	callers map[string]*LimitChecker
	banned  map[string]bool
	found   []Violation
}

// Strict checks every installation's REST requests against GitHub's secondary limits: 100 at once, 900 points a
// minute, 80 content writes a minute and 500 an hour. During a required wait it allows no request. A caller that breaks
// a limit gets 403 from then on, and Violations lists the request.
func (l *limitChecks) Strict() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on, l.callers, l.banned = true, map[string]*LimitChecker{}, map[string]bool{}
}

// Violations lists Strict's findings, oldest first, without later requests of banned callers.
func (l *limitChecks) Violations() []Violation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.found)
}

// checkedRequest is a request under Strict; nil is unchecked.
type checkedRequest struct {
	checks  *limitChecks
	checker *LimitChecker
	now     func() time.Time
	gone    bool
	banned  bool
}

// arrive records a request before any delay; who identifies the caller.
func (l *limitChecks) arrive(r *http.Request, path string, now func() time.Time, who func() (caller, *reply)) *checkedRequest {
	l.mu.Lock()
	on := l.on
	l.mu.Unlock()
	if !on {
		return nil
	}
	from, refused := who()
	name := from.name()
	if refused != nil || !strings.HasPrefix(name, "installation:") {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	v := &checkedRequest{checks: l, checker: l.callers[name], now: now}
	if v.checker == nil {
		v.checker = new(LimitChecker)
		l.callers[name] = v.checker
	}
	if rule := v.checker.Arrive(now(), r.Method, path); rule != "" && !l.banned[name] {
		l.banned[name] = true
		l.found = append(l.found, Violation{Caller: name, Rule: rule, Method: r.Method, Path: path, At: now()})
	}
	v.banned = l.banned[name]
	return v
}

// refusal returns the answer to a banned caller.
func (v *checkedRequest) refusal() *reply {
	if v == nil || !v.banned {
		return nil
	}
	return problem(http.StatusForbidden, "This App was blocked for breaking the limits; see Violations.")
}

// leave records the answer; rep is nil if the connection was cut. Only the first call counts.
func (v *checkedRequest) leave(rep *reply) {
	if v == nil || v.gone {
		return
	}
	v.gone = true
	v.checks.mu.Lock()
	defer v.checks.mu.Unlock()
	if rep == nil {
		v.checker.Leave(v.now(), 0, nil, "")
		return
	}
	message := ""
	if body, ok := rep.body.(obj); ok {
		message, _ = body["message"].(string)
	}
	v.checker.Leave(v.now(), rep.status, rep.header, message)
}

// GitHub's secondary limits ("Rate limits for the REST API"). Which requests generate content is undocumented; here
// all writes do, except writes of check runs.
const (
	mostAtOnce       = 100
	mostPoints       = 900 // per minute; a read costs 1, a write 5
	mostContent      = 80  // per minute
	mostContentHour  = 500
	unspecifiedPause = time.Minute // after a refusal without a retry time
	// onTheWay is how long after a refusal earlier requests may still arrive.
	onTheWay = time.Second
)

// LimitChecker checks one caller's requests against all documented limits. It uses the times it is given.
type LimitChecker struct {
	atOnce  int
	points  []spent // of the last minute
	content []time.Time
	refused time.Time
	until   time.Time
}

type spent struct {
	at     time.Time
	points int
}

// Arrive records a request and returns the broken limit, or "". Call Leave after each Arrive.
func (l *LimitChecker) Arrive(now time.Time, method, path string) (broken string) {
	l.atOnce++
	points, content := 1, false
	if method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions {
		points, content = 5, !strings.Contains(path, "/check-runs")
	}
	for len(l.points) > 0 && now.Sub(l.points[0].at) >= time.Minute {
		l.points = l.points[1:]
	}
	l.points = append(l.points, spent{now, points})
	sum := 0
	for _, s := range l.points {
		sum += s.points
	}
	switch {
	case now.Before(l.until) && now.Sub(l.refused) > onTheWay:
		broken = fmt.Sprintf("a request %v before the end of the wait that was asked for", l.until.Sub(now))
	case l.atOnce > mostAtOnce:
		broken = fmt.Sprintf("%d requests at once", l.atOnce)
	case sum > mostPoints:
		broken = fmt.Sprintf("%d points within a minute", sum)
	}
	if content {
		if more := l.write(now); broken == "" {
			broken = more
		}
	}
	return broken
}

func (l *LimitChecker) write(now time.Time) (broken string) {
	for len(l.content) > 0 && now.Sub(l.content[0]) >= time.Hour {
		l.content = l.content[1:]
	}
	l.content = append(l.content, now)
	minute := 0
	for i := len(l.content) - 1; i >= 0 && now.Sub(l.content[i]) < time.Minute; i-- {
		minute++
	}
	switch {
	case minute > mostContent:
		return fmt.Sprintf("%d content writes within a minute", minute)
	case len(l.content) > mostContentHour:
		return fmt.Sprintf("%d content writes within an hour", len(l.content))
	}
	return ""
}

// Leave records the answer; status 0 means no answer. A rate-limit refusal starts the required wait.
func (l *LimitChecker) Leave(now time.Time, status int, header http.Header, message string) {
	l.atOnce--
	if status != http.StatusForbidden && status != http.StatusTooManyRequests {
		return
	}
	until := time.Time{}
	if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil {
		until = now.Add(time.Duration(seconds) * time.Second)
	} else if reset, err := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64); err == nil && header.Get("X-RateLimit-Remaining") == "0" {
		until = time.Unix(reset, 0)
	} else if status == http.StatusTooManyRequests || strings.Contains(message, "secondary rate limit") {
		until = now.Add(unspecifiedPause)
	}
	if until.After(l.until) {
		l.refused, l.until = now, until
	}
}
