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

// Points is what the requests of one installation have cost.
type Points struct {
	// Installation is its id; 0 stands for requests as the App itself, -1 for
	// those without credentials.
	Installation int64
	// Used counts GitHub's points since the client was made: 1 for a request
	// that reads, 5 for one that writes, none for an answer that nothing changed.
	Used int64
}

// Points returns what this client's requests have cost, sorted by installation.
func (c *Client) Points() []Points {
	c.governors.mu.Lock()
	defer c.governors.mu.Unlock()
	all := make([]Points, 0, len(c.governors.byKey))
	for key, g := range c.governors.byKey {
		g.mu.Lock()
		all = append(all, Points{Installation: key, Used: g.used})
		g.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b Points) int { return cmp.Compare(a.Installation, b.Installation) })
	return all
}

// spend counts the points of one try.
func (g *governor) spend(r request, w *wire) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case r.writes():
		g.used += writePoints
	case !w.unchanged:
		g.used += readPoints
	}
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
