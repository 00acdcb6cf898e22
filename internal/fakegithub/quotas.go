package fakegithub

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// quotas hold the primary limit per caller and, when a test asks for it, the
// documented secondary limit on writes. Server.mu guards them.
type quotas struct {
	windows   map[string]*window
	perMinute int // content writes; zero means that the secondary limit is off
	perHour   int
	writes    map[string][]time.Time
}

// window is one hour of one caller.
type window struct {
	limit int
	used  int
	reset time.Time
}

// anonymousLimit is what GitHub documents for requests without credentials.
const anonymousLimit = 60

// charge takes one request from the caller's hour.
func (q *quotas) charge(name, whose, method string, limit int, now time.Time) (*window, *reply) {
	if name == "anonymous" {
		limit = anonymousLimit
	}
	w := q.windows[name]
	if w == nil || !now.Before(w.reset) {
		w = &window{limit: limit, reset: now.Add(time.Hour).Truncate(time.Second)}
		q.windows[name] = w
	}
	if w.used >= w.limit {
		rep := problem(http.StatusForbidden, "API rate limit exceeded for "+whose+".")
		rep.body.(obj)["documentation_url"] = docs + "/overview/rate-limits-for-the-rest-api"
		return w, rep
	}
	w.used++
	if method != http.MethodGet && q.perMinute > 0 {
		return w, q.write(name, now)
	}
	return w, nil
}

// write counts one content write against the secondary limit.
func (q *quotas) write(name string, now time.Time) *reply {
	if q.writes == nil {
		q.writes = map[string][]time.Time{}
	}
	var hour []time.Time
	minute := 0
	for _, at := range q.writes[name] {
		if now.Sub(at) < time.Hour {
			hour = append(hour, at)
		}
		if now.Sub(at) < time.Minute {
			minute++
		}
	}
	q.writes[name] = hour
	if minute >= q.perMinute || len(hour) >= q.perHour {
		rep := problem(http.StatusForbidden, "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later.")
		rep.body.(obj)["documentation_url"] = docs + "/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
		rep.header.Set("Retry-After", "60")
		return rep
	}
	q.writes[name] = append(hour, now)
	return nil
}

// refund gives back the request of a conditional GET.
func (w *window) refund() { w.used-- }

// mark adds the rate limit headers.
func (w *window) mark(rep *reply) *reply {
	rep.header.Set("X-RateLimit-Limit", strconv.Itoa(w.limit))
	rep.header.Set("X-RateLimit-Remaining", strconv.Itoa(w.limit-w.used))
	rep.header.Set("X-RateLimit-Used", strconv.Itoa(w.used))
	rep.header.Set("X-RateLimit-Reset", fmt.Sprint(w.reset.Unix()))
	rep.header.Set("X-RateLimit-Resource", "core")
	return rep
}

func (s *Server) getRateLimit(c *call) *reply {
	w := s.quotas.windows[c.who.name()]
	w.refund() // "accessing this endpoint does not count against your REST API rate limit"
	core := obj{"limit": w.limit, "used": w.used, "remaining": w.limit - w.used, "reset": w.reset.Unix()}
	search := obj{"limit": 30, "used": 0, "remaining": 30, "reset": w.reset.Unix()} // nothing here can be searched
	return ok(obj{"resources": obj{"core": core, "search": search}, "rate": core})
}

// LimitWrites turns on the secondary limit on requests that write; GitHub's
// documented numbers are 80 a minute and 500 an hour. Zero turns it off.
func (s *Server) LimitWrites(perMinute, perHour int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quotas.perMinute, s.quotas.perHour = perMinute, perHour
}
