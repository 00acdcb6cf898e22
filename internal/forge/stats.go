package forge

import (
	"cmp"
	"slices"
	"sync"
)

// Count says how often one kind of request was sent, tries that failed
// included.
type Count struct {
	Method string
	// Route is the path with its variable parts in braces.
	Route string
	Sent  int64
}

// stats counts requests. Its zero value is ready.
type stats struct {
	mu     sync.Mutex
	counts map[Count]int64
}

func (s *stats) add(method, route string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = make(map[Count]int64)
	}
	s.counts[Count{Method: method, Route: route}]++
}

// Stats returns how many requests went to GitHub since the client was made,
// sorted by route and method. Retries, pages, token requests and followed
// redirects each count.
func (c *Client) Stats() []Count {
	c.stats.mu.Lock()
	defer c.stats.mu.Unlock()
	all := make([]Count, 0, len(c.stats.counts))
	for kind, n := range c.stats.counts {
		kind.Sent = n
		all = append(all, kind)
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Route, b.Route), cmp.Compare(a.Method, b.Method))
	})
	return all
}
