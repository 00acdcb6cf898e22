// Package cluster coordinates the nodes on one database; most parts also work for a single node. Watch lists running
// nodes and finds dead ones, so that others continue their threads before the leases expire. One node does a Duty for
// all. Places finds the node for an attempt. A node with a wrong Clock claims nothing.
//
// Each node holds a PostgreSQL lock on a connection of its own. A kill ends the connection and releases the lock. After
// a silent network failure PostgreSQL keeps both, and others wait for the lease to expire. Epochs fence a node that was
// declared dead by mistake.
package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/wait"
)

type Store interface {
	// Beat lists this node for the others.
	Beat(ctx context.Context, node string) error
	// Absent returns nodes that did not leave and whose lock and connections are gone.
	Absent(ctx context.Context) ([]string, error)
	// Leave removes a node and makes its threads due. It returns their number.
	Leave(ctx context.Context, node string) (freed int, err error)
}

const (
	// beatEvery is a third of the time after which a silent node is no longer listed.
	beatEvery = 10 * time.Second
	// lookEvery is how often a node looks for absent ones: one short query.
	lookEvery = time.Second
	// patience is how long a node may be absent before it counts as dead. A live one that lost its connection connects
	// again within a second. Our choice.
	patience = 2 * time.Second
	// outage is how long after its own absence a node counts no other as dead. The database may have restarted, and
	// not all nodes reach it at once. Our choice.
	outage = 15 * time.Second
)

// Watch lists this node and removes dead ones until ctx ends. node is this node's name.
func Watch(ctx context.Context, s Store, node string, log zerolog.Logger) {
	w := watch{self: node}
	for next := time.Now(); ; {
		if !time.Now().Before(next) {
			next = time.Now().Add(beatEvery)
			if err := s.Beat(ctx, node); err != nil && ctx.Err() == nil {
				log.Warn().Err(err).Msg("this server is not listed for the others; retrying")
			}
		}
		if wait.For(ctx, lookEvery) != nil {
			return
		}
		absent, err := s.Absent(ctx)
		if err != nil {
			absent = []string{node} // the sweep reports a database that does not answer
		}
		for _, name := range w.dead(absent, time.Now()) {
			freed, err := s.Leave(ctx, name)
			if err != nil {
				log.Warn().Err(err).Str("dead", name).Msg("a node is dead; its threads continue when their leases expire")
				continue
			}
			log.Warn().Str("dead", name).Int("threads", freed).Msg("a node is dead; its threads are due")
		}
	}
}

// watch stores when each node became absent, and when this node was last absent.
type watch struct {
	self   string
	since  map[string]time.Time
	outage time.Time
}

// dead returns the nodes that were absent for at least patience, or nil during an outage.
func (w *watch) dead(absent []string, now time.Time) (names []string) {
	if slices.Contains(absent, w.self) {
		w.outage = now
	}
	since := map[string]time.Time{}
	for _, name := range absent {
		since[name] = now
		if before, known := w.since[name]; known {
			since[name] = before
		}
		if now.Sub(since[name]) >= patience && now.Sub(w.outage) >= outage {
			names = append(names, name)
		}
	}
	w.since = since
	return names
}
