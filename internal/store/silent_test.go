package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pawlbot/pawl/internal/postgrestest"
	"github.com/pawlbot/pawl/internal/store"
)

// proxied opens a store on a new database through a proxy.
func proxied(t *testing.T) (*store.Store, *postgrestest.Proxy) {
	t.Helper()
	p := startPostgres(t)
	dsn := p.newDatabase(t)
	proxy := p.Proxy(t)
	s := must(store.Open(t.Context(), proxy.Address(nameOf(dsn)), store.Options{}))(t)
	t.Cleanup(func() { s.Close() })
	return s, proxy
}

// A silent connection sends no reset. Without deadlines every call here would wait forever.
func TestSilentConnectionsAreReplaced(t *testing.T) {
	s, proxy := proxied(t)
	ctx := t.Context()
	must(s.Append(ctx, issue(1), true, event("", 1)))(t)
	wakes, listening := make(chan bool, 100), make(chan bool)
	listen, stop := context.WithCancel(ctx)
	go func() {
		defer close(listening)
		s.Listen(listen, "node", func() { wakes <- true })
	}()
	<-wakes                                     // the store listens
	within := must(s.DB().BeginTx(ctx, nil))(t) // a transaction in progress
	statement := make(chan error)
	go func() {
		_, err := within.ExecContext(ctx, "SELECT pg_sleep(3600)")
		statement <- errors.Join(err, within.Rollback())
	}()
	proxy.Silence()
	calls := map[string]func() error{
		"a webhook": func() error { return receive(ctx, s, "silent", 10) },
		"a claim":   func() error { _, err := s.Claim(ctx, "node", 8); return err },
		"a read":    func() error { _, err := s.Events(ctx, issue(1), 0); return err },
		"a ping":    func() error { return s.Ping(ctx) },
		"the count": func() error { _, err := s.Stats(ctx); return err },
		"the sweep": func() error { _, err := s.Sweep(ctx); return err },
	}
	for name, call := range calls {
		for err := call(); err != nil; err = call() { // each failure has dropped a connection
			t.Logf("%s failed: %v", name, err)
		}
	}
	if err := <-statement; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a statement on a silent connection: %v, want its deadline", err)
	}
	<-wakes // the store listens again
	must(s.Append(ctx, issue(2), true, event("", 1)))(t)
	<-wakes
	stop()
	<-listening
}

func TestWebhookIsRefusedInTimeWhilePostgreSQLHangs(t *testing.T) {
	s, proxy := proxied(t)
	check(t, receive(t.Context(), s, "before", 10))
	proxy.Hang()
	refused := make(chan error)
	for n := range 40 { // more than the pool has connections
		go func() { refused <- receive(t.Context(), s, fmt.Sprint("hanging", n), 10) }()
	}
	for range 40 {
		if err := <-refused; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a webhook while the database hangs: %v, want its deadline", err)
		}
	}
	proxy.Mend()
	for receive(t.Context(), s, "after", 10) != nil {
	}
	if _, err := s.Delivery(t.Context(), "before"); err != nil {
		t.Error(err)
	}
}
