package forge

import (
	"net/http"
	"sync"
	"time"
)

// clockHolds is how long a reading counts (our choice). After that the offset is unknown, so that a node that
// stopped because of it asks again.
const clockHolds = 10 * time.Minute

// Clock is an http.RoundTripper that reads GitHub's clock from each answer's Date header. It is safe for concurrent
// use.
type Clock struct {
	base http.RoundTripper
	now  func() time.Time

	mu     sync.Mutex
	read   time.Time // time of the reading, by this node's clock; zero for never
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

// note takes the answer's Date as the middle of its second, in the middle of the request. An answer with an Age
// comes from a cache, and its Date is old (RFC 9111, 5.1).
func (c *Clock) note(header http.Header, sent, received time.Time) {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil || header.Get("Age") != "" {
		return
	}
	github := date.Add(time.Second / 2)
	here := sent.Add(received.Sub(sent) / 2)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = received
	c.offset = here.Sub(github)
}

// Offset is how far this node's clock is ahead of GitHub's, by the latest answer; negative if it is behind. The
// error is up to half of the request's duration. It is false without an answer in the last ten minutes.
func (c *Clock) Offset() (offset time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() || c.now().Sub(c.read) > clockHolds {
		return 0, false
	}
	return c.offset, true
}
