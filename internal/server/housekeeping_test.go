package server

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/cluster"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// A failover may leave a dead connection. A busy connection, the only one that can write, has the same effect here.
func TestHangingSweepTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		taken, err := s.DB().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		n := &Server{store: s, clock: clockAhead(s, 0)}
		if err := n.sweep()(context.WithoutCancel(t.Context())); err == nil || time.Since(began) != sweepTime {
			t.Errorf("ended with %v after %s, want an error after %s", err, time.Since(began), sweepTime)
		}
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
		if err := n.sweep()(t.Context()); err != nil {
			t.Errorf("the next one: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// clockAhead returns a clock that is ahead of GitHub's.
func clockAhead(s *store.Store, ahead time.Duration) *cluster.Clock {
	return &cluster.Clock{Store: s, GitHub: func() (time.Duration, bool) { return ahead, true }}
}

func TestServerWithWrongClockRemovesNothing(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]int{0: 0, 2 * time.Minute: 1, -2 * time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			old := thread.Delivery{GUID: "old", Event: "ping", ReceivedAt: time.Now().Add(-10 * 365 * 24 * time.Hour)}
			if _, err := s.Receive(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			if err := s.FinishDelivery(t.Context(), old.GUID, thread.Handled, ""); err != nil {
				t.Fatal(err)
			}
			n := &Server{
				store:  s,
				solver: &solver.Solver{Env: attempt.Env{Store: s, Now: time.Now, Node: "node", Config: config.Default()}},
				data:   &dataFolder{dir: t.TempDir()},
				clock:  clockAhead(s, ahead),
			}
			ctx, stop := context.WithTimeout(t.Context(), askDuty/2)
			defer stop()
			n.clean(ctx)
			left, err := s.Deliveries(t.Context(), 10)
			if err != nil || len(left) != want {
				t.Errorf("%s ahead: %d deliveries are left, %v; want %d", ahead, len(left), err, want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A node that works through a database outage renews its lease afterwards.
func TestSweepSparesLeasesAfterDatabaseOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{})
		must(err)
		issue := thread.ID{Owner: "acme", Name: "widgets", Number: 1}
		_, err = s.Acquire(t.Context(), issue, "another")
		must(err)
		n := &Server{store: s, clock: clockAhead(s, 0)}
		sweep := n.sweep()
		taken, err := s.DB().Conn(t.Context())
		must(err)
		if err := sweep(context.WithoutCancel(t.Context())); err == nil {
			t.Fatal("a sweep without a database did not fail")
		}
		must(taken.Close())
		time.Sleep(thread.LeaseTime)
		for turn := range skippedSweeps + 1 {
			must(sweep(t.Context()))
			stats, err := s.Stats(t.Context())
			must(err)
			due := stats.Queued == 1
			if want := turn == skippedSweeps; due != want {
				t.Errorf("turn %d after the database is back: taken over %t, want %t", turn, due, want)
			}
		}
		must(s.Close())
	})
}

// While a laptop slept, no agent ran, so its own node continues.
func TestSweepSparesLeasesAfterSleep(t *testing.T) {
	var slept time.Duration
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{Now: func() time.Time { return time.Now().Add(slept) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Acquire(t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: 1}, "another"); err != nil {
		t.Fatal(err)
	}
	sweep := (&Server{store: s, clock: clockAhead(s, 0)}).sweep()
	slept = 8 * time.Hour
	for turn := range skippedSweeps + 1 {
		if err := sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		stats, err := s.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if freed, want := stats.Queued == 1, turn == skippedSweeps; freed != want {
			t.Errorf("turn %d after the wake-up: taken over %t, want %t", turn, freed, want)
		}
	}
}
