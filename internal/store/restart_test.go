package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

// acknowledgedWritesSurviveARestart kills PostgreSQL under load and restarts it. Calls fail meanwhile and then succeed,
// and every acknowledged write is stored. The database's default here, synchronous_commit off, would lose commits.
func acknowledgedWritesSurviveARestart(t *testing.T, server *postgres) {
	dsn := server.newDatabase(t)
	must(rawDB(t, dsn).Exec("ALTER DATABASE " + nameOf(dsn) + " SET synchronous_commit = off"))(t)
	s, _, c := open(t, dsn)
	ctx := t.Context()
	type result struct {
		name string
		err  error
	}
	results, stop := make(chan result), make(chan struct{})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("%d-%d", w, n)
				_, err := s.Receive(ctx, thread.Delivery{GUID: name, Event: "ping", ReceivedAt: c.Now()})
				if err == nil {
					_, err = s.Append(ctx, issue(w+1), true, event(name, n))
				}
				select {
				case results <- result{name, err}:
				case <-stop:
					return
				}
			}
		})
	}
	answered := map[string]bool{}
	failed := 0
	until := func(what string, enough func() bool) {
		t.Helper()
		for timeout := time.After(patience); !enough(); {
			select {
			case r := <-results:
				if r.err == nil {
					answered[r.name] = true
				} else {
					failed++
				}
			case <-timeout:
				t.Fatalf("%s: %d answered, %d failed", what, len(answered), failed)
			}
		}
	}
	until("before", func() bool { return len(answered) >= 200 })
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		server.Kill()
	}()
	until("while it is down", func() bool { return failed >= 50 })
	await(t, "the server's end", killed)
	server.Restart(t)
	enough := len(answered) + 200
	until("after", func() bool { return len(answered) >= enough })
	close(stop)
	wg.Wait()

	keys := map[string]bool{}
	for _, key := range column(t, dsn, "SELECT key FROM events") {
		keys[key] = true
	}
	guids := map[string]bool{}
	for _, guid := range column(t, dsn, "SELECT guid FROM deliveries") {
		guids[guid] = true
	}
	for name := range answered {
		if !keys[name] || !guids[name] {
			t.Errorf("%s was answered: delivery %t, event %t", name, guids[name], keys[name])
		}
	}
	for w := range 8 {
		for i, e := range must(s.Events(ctx, issue(w+1), 0))(t) {
			if e.Seq != int64(i+1) {
				t.Fatalf("event %d of thread %d has seq %d", i, w+1, e.Seq)
			}
		}
	}
}

// column reads a column of strings.
func column(t *testing.T, dsn, query string) (values []string) {
	t.Helper()
	rows := must(rawDB(t, dsn).Query(query))(t)
	defer rows.Close()
	for rows.Next() {
		var v string
		check(t, rows.Scan(&v))
		values = append(values, v)
	}
	check(t, rows.Err())
	return values
}
