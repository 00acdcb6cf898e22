package forge

import (
	"net/http"
	"strconv"
	"time"
)

// hourly is what GitHub last said of the hourly limit (docs.github.com, "Checking
// the status of your rate limit"). Its zero value knows nothing.
type hourly struct {
	limit, remaining int
	reset            time.Time
}

// short says that less than a fifth is left of the hour, which is for what people
// wait for: without tokens of the App nothing goes on.
func (h hourly) short(now time.Time) bool {
	return h.limit > 0 && h.remaining < h.limit/5 && h.reset.After(now)
}

// note keeps what an answer says.
func (g *governor) note(header http.Header) {
	limit, err := strconv.Atoi(header.Get("X-Ratelimit-Limit"))
	if err != nil {
		return
	}
	remaining, err := strconv.Atoi(header.Get("X-Ratelimit-Remaining"))
	if err != nil {
		return
	}
	reset, ok := resetTime(header)
	if !ok {
		return
	}
	// A reset after more than an hour is of a clock that is wrong.
	if latest := g.now().Add(longestWait); reset.After(latest) {
		reset = latest
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hourly = hourly{limit, remaining, reset}
}

// short says until when the rest of the hour is kept for others.
func (g *governor) short() (until time.Time, short bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hourly.reset.Add(time.Second), g.hourly.short(g.now())
}
