package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Several stores use one PostgreSQL, like the nodes of one installation. With SQLite a second store is refused.
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
		{"AKilledNodesThreadsAreFreed", aKilledNodesThreadsAreFreed},
		{"ALostConnectionIsReplaced", aLostConnectionIsReplaced},
		{"OnlyNodesOfAPlaceClaimIt", onlyNodesOfAPlaceClaimIt},
		{"ClaimsArePreparedOnce", claimsArePreparedOnce},
	} {
		t.Run(q.name, func(t *testing.T) { q.ask(t, server.newDatabase(t)) })
	}
	t.Run("NodesMayStartAtTheSameTime", func(t *testing.T) { nodesMayStartAtTheSameTime(t, server.emptyDatabase(t)) })
	t.Run("AcknowledgedWritesSurviveARestart", func(t *testing.T) { acknowledgedWritesSurviveARestart(t, server) })
}

// nodes opens the stores of the nodes a, b and c, which share one recording queue.
func nodes(t *testing.T, dsn string, now func() time.Time) ([]*store.Store, *recorder) {
	t.Helper()
	r := &recorder{}
	var list []*store.Store
	for _, name := range []string{"a", "b", "c"} {
		s := must(store.Open(t.Context(), dsn, store.Options{Now: now, Node: name}))(t)
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

// listening lets a node listen until the returned function ends its connection, as a kill would.
func listening(t *testing.T, s *store.Store, node string) (kill func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan bool, 100), make(chan bool)
	go func() {
		defer close(ended)
		s.Listen(ctx, node, func() { begun <- true })
	}()
	<-begun
	return func() { cancel(); <-ended }
}

func absent(t *testing.T, s *store.Store) string {
	t.Helper()
	return strings.Join(must(s.Nodes().Absent(t.Context()))(t), " ")
}

// eventually waits, because PostgreSQL notices the end of a connection with a delay.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for timeout := time.After(patience); !is(); {
		select {
		case <-timeout:
			t.Fatalf("%s: not within %s", what, patience)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func aKilledNodesThreadsAreFreed(t *testing.T, dsn string) {
	stores, _ := nodes(t, dsn, time.Now)
	ctx := t.Context()
	a, b := stores[0], stores[1]
	kill := listening(t, a, "a")
	defer listening(t, b, "b")()
	for n := range 2 {
		must(a.Append(ctx, issue(n+1), true, event("", n)))(t)
	}
	mine := must(a.Claim(ctx, "a", 1))(t)
	must(b.Claim(ctx, "b", 1))(t)
	if got := absent(t, b); got != "" {
		t.Errorf("while both listen, %q are absent", got)
	}
	kill()
	if got := absent(t, b); got != "" {
		t.Errorf("while the node has connections, %q are absent", got)
	}
	disconnect(t, dsn, "application_name = 'pawl a'")
	eventually(t, "the killed node is absent", func() bool { return absent(t, b) == "a" })
	if freed := must(b.Nodes().Leave(ctx, "a"))(t); freed != 1 {
		t.Errorf("%d threads were freed, want the killed node's", freed)
	}
	if got := absent(t, b); got != "" {
		t.Errorf("%q are still absent", got)
	}
	took := must(b.Claim(ctx, "b", 8))(t)
	if len(took) != 1 || took[0].Thread != mine[0].Thread {
		t.Errorf("claimed %+v, want %s", took, mine[0].Thread)
	}
	eventually(t, "the killed node has lost its lease", func() bool {
		_, err := a.Renew(ctx, mine[0])
		return errors.Is(err, thread.ErrLeaseLost)
	})
}

// disconnect ends the connections for which a condition on pg_stat_activity is true.
func disconnect(t *testing.T, dsn, which string) {
	t.Helper()
	end := "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND " + which
	var ended int
	if err := rawDB(t, dsn).QueryRow(end).Scan(&ended); err != nil || ended == 0 {
		t.Fatalf("ended %d connections, error %v", ended, err)
	}
}

// aLostConnectionIsReplaced ends the connection that holds the presence lock, and then all connections of the node.
func aLostConnectionIsReplaced(t *testing.T, dsn string) {
	stores, _ := nodes(t, dsn, time.Now)
	a, b := stores[0], stores[1]
	defer listening(t, a, "a")()
	const holder = "pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted)"
	held := func() (n int) {
		check(t, rawDB(t, dsn).QueryRow("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "+holder).Scan(&n))
		return n
	}
	disconnect(t, dsn, holder)
	for held() == 0 {
		if got := absent(t, b); got != "" {
			t.Errorf("a reconnected node counts as absent: %q", got)
		}
	}
	disconnect(t, dsn, "application_name = 'pawl a'")
	eventually(t, "the node is absent", func() bool { return absent(t, b) == "a" })
	eventually(t, "the node is back", func() bool { return absent(t, b) == "" })
}

func onlyNodesOfAPlaceClaimIt(t *testing.T, dsn string) {
	ctx := t.Context()
	opened := func(n policy.Node) *store.Store {
		s := must(store.Open(ctx, dsn, store.Options{Self: &n}))(t)
		t.Cleanup(func() { s.Close() })
		s.UseQueue(&recorder{})
		return s
	}
	webhooks, plain, gpu := opened(policy.Node{}), opened(policy.Node{Agents: true}), opened(policy.Node{Agents: true, Labels: []string{"gpu"}})
	claims := func(s *store.Store) bool {
		for _, l := range must(s.Claim(ctx, "node", 1))(t) {
			check(t, s.Release(ctx, l, nil))
			return true
		}
		return false
	}
	// place releases the thread with the labels that its attempt needs.
	place := func(labels ...string) {
		must(plain.Append(ctx, issue(1), true))(t)
		l := must(plain.Claim(ctx, "node", 1))(t)[0]
		check(t, plain.AppendLeased(ctx, l, thread.Batch{WakeAt: plain.Now(), Place: policy.PlaceOf(labels)}))
		check(t, plain.Release(ctx, l, nil))
	}
	place("gpu")
	if got := must(plain.Stats(ctx))(t); got.Queued != 0 || got.QueueAge != 0 {
		t.Errorf("a thread that waits for a node counts as queued: %+v", got)
	}
	if got := must(plain.Waiting(ctx))(t); got["gpu"] != 1 || got["*"] != 0 || len(got) != 2 {
		t.Errorf("waiting by place: %v, want one for gpu", got)
	}
	if claims(webhooks) || claims(plain) || !claims(gpu) {
		t.Error("a thread for gpu: want a claim only by the node with that label")
	}
	place()
	if claims(webhooks) || !claims(plain) {
		t.Error("a thread for any agents: want a claim only by a node that runs agents")
	}
	place("gpu")
	must(plain.Append(ctx, issue(1), true, event("stop", 1)))(t)
	if !claims(webhooks) {
		t.Error("a thread with a new event: want a claim by any node")
	}
	must(plain.Append(ctx, issue(1), true))(t)
	l := must(plain.Claim(ctx, "node", 1))(t)[0]
	must(plain.Append(ctx, issue(1), true, event("another stop", 2)))(t)
	check(t, plain.AppendLeased(ctx, l, thread.Batch{WakeAt: plain.Now(), Place: policy.PlaceOf([]string{"gpu"})}))
	check(t, plain.Release(ctx, l, nil))
	if !claims(webhooks) {
		t.Error("a thread with an event from during the lease: want a claim by any node")
	}
	must(plain.Append(ctx, issue(1), true))(t)
	l = must(plain.Claim(ctx, "node", 1))(t)[0]
	check(t, plain.AppendLeased(ctx, l, thread.Batch{WakeAt: plain.Now().Add(-time.Hour), Place: policy.PlaceOf([]string{"gpu"})}))
	check(t, plain.Release(ctx, l, nil))
	if !claims(webhooks) {
		t.Error("a thread that no node served for an hour: want a claim by any node")
	}
	place("gpu")
	check(t, gpu.Nodes().Beat(ctx, "gpu"))
	if got := must(plain.Nodes().Nodes(ctx, "plain"))(t); len(got) != 1 || !got[0].Serves([]string{"gpu"}) {
		t.Errorf("the other nodes are %+v, want the one with a label", got)
	}
	must(plain.Nodes().Leave(ctx, "gpu"))(t)
	if !claims(webhooks) {
		t.Error("a thread whose node has left: want a claim by any node")
	}
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

// The driver prepares a statement for each new text, which costs a round trip and a plan.
func claimsArePreparedOnce(t *testing.T, dsn string) {
	ctx := t.Context()
	self := policy.Node{Agents: true, Folder: "here", Labels: []string{"gpu"}}
	s := must(store.Open(ctx, dsn, store.Options{Node: "a", Self: &self, Prefer: time.Second}))(t)
	defer s.Close()
	s.DB().SetMaxOpenConns(1)
	prepared := func() (n int) {
		t.Helper()
		if err := s.DB().QueryRowContext(ctx, "SELECT count(*) FROM pg_prepared_statements").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	claim := func(n int) {
		t.Helper()
		must(s.Append(ctx, issue(n), true, event("", n)))(t)
		if leases := must(s.Claim(ctx, "a", 8))(t); len(leases) != 1 {
			t.Fatalf("claimed %+v, want one thread", leases)
		}
	}
	claim(1)
	prepared()
	before := prepared()
	for n := range 5 {
		claim(n + 2)
	}
	if after := prepared(); after != before {
		t.Errorf("five claims later %d statements are prepared, want %d", after, before)
	}
}
