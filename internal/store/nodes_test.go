package store_test

import (
	"context"
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
		{"OneNodeOfThreeEntersAnAccount", oneNodeOfThreeEntersAnAccount},
		{"ADeliveryIsFreshOnOneNode", aDeliveryIsFreshOnOneNode},
		{"OneNodeSweepsUp", oneNodeSweepsUp},
		{"NodesCleanAtTheSameTime", nodesCleanAtTheSameTime},
		{"NoWakeUpIsLostBetweenNodes", noWakeUpIsLostBetweenNodes},
	} {
		t.Run(q.name, func(t *testing.T) { q.ask(t, server.newDatabase(t)) })
	}
	t.Run("NodesMayStartAtTheSameTime", func(t *testing.T) { nodesMayStartAtTheSameTime(t, server.emptyDatabase(t)) })
	t.Run("WhatWasAnsweredSurvivesARestart", func(t *testing.T) { whatWasAnsweredSurvivesARestart(t, server) })
}

// nodes opens three stores with a queue that remembers what all were given.
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

func oneNodeOfThreeEntersAnAccount(t *testing.T, dsn string) {
	c := newClock()
	ownClock(t, dsn, c)
	nodes, _ := nodes(t, dsn, c.Now)
	ctx := t.Context()
	for round := range 5 {
		var in atomic.Int64
		var entered thread.Lease
		var wg sync.WaitGroup
		for n := range 99 {
			wg.Go(func() {
				s := nodes[n%len(nodes)]
				l, err := s.Acquire(ctx, issue(n+1), fmt.Sprint("node ", n%len(nodes)))
				if err != nil {
					t.Error(err)
					return
				}
				ok, err := s.AcquireProbe(ctx, l, "main", 1)
				if err != nil {
					t.Error(err)
				}
				if ok {
					in.Add(1)
					entered = l
				} else if err := s.Release(ctx, l, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if in.Load() != 1 {
			t.Fatalf("round %d: %d entered, want 1", round, in.Load())
		}
		if round%2 == 0 {
			check(t, nodes[0].Release(ctx, entered, nil))
		} else { // the holder dies
			c.Advance(thread.LeaseTime + time.Second)
		}
	}
}

func aDeliveryIsFreshOnOneNode(t *testing.T, dsn string) {
	c := newClock()
	ownClock(t, dsn, c)
	nodes, r := nodes(t, dsn, c.Now)
	var fresh atomic.Int64
	var wg sync.WaitGroup
	for n := range 150 {
		wg.Go(func() {
			ok, err := nodes[n%3].Receive(t.Context(), thread.Delivery{GUID: fmt.Sprint("g", n/3), Event: "ping", ReceivedAt: c.Now()})
			if err != nil {
				t.Error(err)
			}
			if ok {
				fresh.Add(1)
			}
		})
	}
	wg.Wait()
	if _, guids := r.take(); fresh.Load() != 50 || len(guids) != 50 {
		t.Errorf("%d were fresh and %d enqueued, want 50", fresh.Load(), len(guids))
	}
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
	// What one node passed over, because another was at it, is not left.
	for _, s := range nodes {
		threads.Add(int64(len(must(s.Claim(ctx, "node", 60))(t))))
		deliveries.Add(int64(claimed(t, s)))
	}
	if threads.Load() != 60 || deliveries.Load() != 60 {
		t.Errorf("%d threads and %d deliveries were claimed, want 60 of each once", threads.Load(), deliveries.Load())
	}
}

func noWakeUpIsLostBetweenNodes(t *testing.T, dsn string) {
	const threads, each = 5, 30
	ctx := t.Context()
	now := time.Now
	var mu sync.Mutex
	seen := map[thread.ID]int{}
	complete := make(chan struct{}, 1)
	var stores []*store.Store
	for range 3 {
		s := must(store.Open(ctx, dsn, store.Options{}))(t)
		t.Cleanup(func() { s.Close() })
		stores = append(stores, s)
		start(t, s, now, func(ctx context.Context, l thread.Lease, _ time.Time) error {
			th := l.Thread
			defer s.Release(ctx, l, nil)
			events, err := s.Events(ctx, th, 0)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			seen[th] = max(seen[th], len(events))
			sum := 0
			for _, n := range seen {
				sum += n
			}
			if sum == threads*each*len(stores) {
				select {
				case complete <- struct{}{}:
				default:
				}
			}
			return nil
		}, noDelivery)
	}
	var wg sync.WaitGroup
	for _, s := range stores {
		wg.Go(func() {
			for i := range threads * each {
				if _, err := s.Append(ctx, issue(i%threads+1), true, event("", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	await(t, "the last step of every thread", complete)
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
