package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// TestNodesShareOneDatabase opens several stores on one PostgreSQL, as the nodes
// of one installation do; with SQLite a second one is refused.
func TestNodesShareOneDatabase(t *testing.T) {
	server := startPostgres(t)
	for _, q := range []struct {
		name string
		ask  func(*testing.T, string)
	}{
		{"AWrongClockStealsNothing", aWrongClockStealsNothing},
		{"AWrongClockPutsNothingOff", aWrongClockPutsNothingOff},
		{"OneNodeSweepsUp", oneNodeSweepsUp},
		{"NodesCleanAtTheSameTime", nodesCleanAtTheSameTime},
		{"NoWakeUpIsLostBetweenNodes", noWakeUpIsLostBetweenNodes},
	} {
		t.Run(q.name, func(t *testing.T) { q.ask(t, server.newDatabase(t)) })
	}
	t.Run("NodesMayStartAtTheSameTime", func(t *testing.T) { nodesMayStartAtTheSameTime(t, server.emptyDatabase(t)) })
	t.Run("AcknowledgedWritesSurviveARestart", func(t *testing.T) { acknowledgedWritesSurviveARestart(t, server) })
}

// nodes opens three stores that share one recording queue.
func nodes(t *testing.T, dsn string, now func() time.Time) ([]*store.Store, *recorder) {
	t.Helper()
	r := &recorder{}
	var list []*store.Store
	for range 3 {
		s := must(store.Open(t.Context(), dsn, store.Options{Now: now}))(t)
		t.Cleanup(func() { s.Close() })
		s.UseQueue(r)
		list = append(list, s)
	}
	return list, r
}

func oneNodeSweepsUp(t *testing.T, dsn string) {
	c := newClock()
	ownClock(t, dsn, c)
	nodes, r := nodes(t, dsn, c.Now)
	ctx := t.Context()
	for n := range 60 {
		must(nodes[n%3].Append(ctx, issue(n+1), true, event("", n)))(t)
		must(nodes[n%3].Receive(ctx, thread.Delivery{GUID: fmt.Sprint(n), Event: "ping", ReceivedAt: c.Now()}))(t)
	}
	r.take()
	c.Advance(time.Minute)
	var threads, deliveries atomic.Int64
	var wg sync.WaitGroup
	for _, s := range nodes {
		wg.Go(func() {
			for ctx.Err() == nil {
				leases, err := s.Claim(ctx, "node", 7)
				list, err2 := s.ClaimDeliveries(ctx, 7)
				if err := errors.Join(err, err2); err != nil {
					t.Error(err)
					return
				}
				if len(leases)+len(list) == 0 {
					return
				}
				threads.Add(int64(len(leases)))
				deliveries.Add(int64(len(list)))
			}
		})
	}
	wg.Wait()
	// Rows that one node skipped because another was claiming them are not left over.
	for _, s := range nodes {
		threads.Add(int64(len(must(s.Claim(ctx, "node", 60))(t))))
		deliveries.Add(int64(claimed(t, s)))
	}
	if threads.Load() != 60 || deliveries.Load() != 60 {
		t.Errorf("%d threads and %d deliveries were claimed, want 60 of each once", threads.Load(), deliveries.Load())
	}
}

func noWakeUpIsLostBetweenNodes(t *testing.T, dsn string) {
	stores, _ := nodes(t, dsn, time.Now)
	noWakeUpIsLost(t, stores...)
}

func nodesMayStartAtTheSameTime(t *testing.T, dsn string) {
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			s, err := store.Open(t.Context(), dsn, store.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if err := s.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
