package forge

import (
	"net/http"
	"sync"
	"time"
)

// clockMaxAge is how long a reading counts (our choice). Afterwards the offset is unknown until GitHub's next answer.
const clockMaxAge = 10 * time.Minute

// Clock is an http.RoundTripper that reads GitHub's clock from Date headers. It is safe for concurrent use.
type Clock struct {
	base http.RoundTripper
	now  func() time.Time

	mu     sync.Mutex
	read   time.Time // local time of the reading, or zero
	offset time.Duration
}

func (c *Clock) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := c.now()
	resp, err := c.base.RoundTrip(req)
	if err == nil {
		c.note(resp.Header, sent, c.now())
	}
	return resp, err
}

// note takes the middle of the Date header's second as GitHub's time at the middle of the request. It ignores answers
// with an Age header, since they come from a cache (RFC 9111, 5.1).
func (c *Clock) note(header http.Header, sent, received time.Time) {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil || header.Get("Age") != "" {
		return
	}
	github := date.Add(time.Second / 2)
	local := sent.Add(received.Sub(sent) / 2)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = received
	c.offset = local.Sub(github)
}

// Offset returns how far this node's clock is ahead of GitHub's. It is unknown ten minutes after the last answer. The
// error is at most half a second plus half of the request's duration.
func (c *Clock) Offset() (offset time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() || c.now().Sub(c.read) > clockMaxAge {
		return 0, false
	}
	return c.offset, true
}
