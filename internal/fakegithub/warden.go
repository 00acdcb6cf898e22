package fakegithub

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// GitHub's secondary limits and what it asks of clients ("Rate limits for the
// REST API", "Best practices for using the REST API"). It does not say which
// requests generate content; here every write does.
const (
	mostAtOnce       = 100
	mostPoints       = 900 // a minute; a read costs 1, a write 5
	mostContent      = 80  // a minute
	mostContentHour  = 500
	leastSpacing     = time.Second // between two writes
	unspecifiedPause = time.Minute // after a refusal that names no time
	// onTheWay is how long after a refusal requests may arrive that were sent
	// before its answer did.
	onTheWay = time.Second
)

// Warden checks the requests of one caller against all documented limits. It
// works on times that it is given. Its zero value has seen nothing.
type Warden struct {
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

// Arrive notes a request and returns what it breaks, or "". Every arrival is
// followed by one Leave.
func (w *Warden) Arrive(now time.Time, method string) (broken string) {
	w.atOnce++
	points, write := 1, false
	if method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions {
		points, write = 5, true
	}
	for len(w.points) > 0 && now.Sub(w.points[0].at) >= time.Minute {
		w.points = w.points[1:]
	}
	w.points = append(w.points, spent{now, points})
	sum := 0
	for _, s := range w.points {
		sum += s.points
	}
	switch {
	case now.Before(w.until) && now.Sub(w.refused) > onTheWay:
		broken = fmt.Sprintf("a request %v before the end of the wait that was asked for", w.until.Sub(now))
	case w.atOnce > mostAtOnce:
		broken = fmt.Sprintf("%d requests at once", w.atOnce)
	case sum > mostPoints:
		broken = fmt.Sprintf("%d points within a minute", sum)
	}
	if write {
		if more := w.write(now); broken == "" {
			broken = more
		}
	}
	return broken
}

func (w *Warden) write(now time.Time) (broken string) {
	for len(w.content) > 0 && now.Sub(w.content[0]) >= time.Hour {
		w.content = w.content[1:]
	}
	if n := len(w.content); n > 0 && now.Sub(w.content[n-1]) < leastSpacing {
		broken = fmt.Sprintf("a write %v after the last", now.Sub(w.content[n-1]))
	}
	w.content = append(w.content, now)
	minute := 0
	for i := len(w.content) - 1; i >= 0 && now.Sub(w.content[i]) < time.Minute; i-- {
		minute++
	}
	switch {
	case minute > mostContent:
		return fmt.Sprintf("%d content writes within a minute", minute)
	case len(w.content) > mostContentHour:
		return fmt.Sprintf("%d content writes within an hour", len(w.content))
	}
	return broken
}

// Leave notes the answer to a request; status is 0 when none was sent. A
// refusal for a limit starts the wait that it asks for.
func (w *Warden) Leave(now time.Time, status int, header http.Header, message string) {
	w.atOnce--
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
	if until.After(w.until) {
		w.refused, w.until = now, until
	}
}
