package store_test

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// benchStore opens a SQLite store. lab/bench measures the built program.
func benchStore(b *testing.B) *store.Store {
	b.Helper()
	s := must(store.Open(b.Context(), "sqlite:"+filepath.Join(b.TempDir(), "pawl.db"), store.Options{}))(b)
	b.Cleanup(func() { s.Close() })
	s.UseQueue(&recorder{})
	return s
}

// payload is a comment of 14 KB, as GitHub sends it.
func payload(b *testing.B) []byte {
	b.Helper()
	words := must(os.ReadFile("testdata/payload.json"))(b)
	var text strings.Builder
	for text.Len()+len(words) < 14<<10 {
		fmt.Fprintf(&text, "%x ", rand.N(1<<20))
	}
	return []byte(strings.NewReplacer("octocat/Hello-World", "acme/widgets", "Codertocat", "ada", "hubot", "mallory", "https://api.github.com",
		"https://github.example.com/api/v3", "You are totally right!", text.String()).Replace(string(words)))
}

// report adds the waits' 99th percentile and median, and the rate.
func report(b *testing.B, took []time.Duration, elapsed time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(len(took))/elapsed.Seconds(), "per-s")
}

// BenchmarkReceive stores deliveries from 64 concurrent callers, each as fast as it is answered.
func BenchmarkReceive(b *testing.B) {
	s := benchStore(b)
	body := payload(b)
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	started := time.Now()
	for range 64 {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				from := time.Now()
				if _, err := s.Receive(b.Context(), thread.Delivery{GUID: fmt.Sprint("g", n), Event: "issues", Payload: body, ReceivedAt: from}); err != nil {
					b.Error(err)
				}
				took[n-1] = time.Since(from)
			}
		})
	}
	wg.Wait()
	report(b, took, time.Since(started))
}

func BenchmarkAppend(b *testing.B) {
	s := benchStore(b)
	for n := range b.N {
		must(s.Append(b.Context(), issue(n%100+1), true, event(fmt.Sprint(n), "a comment")))(b)
	}
}

func BenchmarkUpdateShared(b *testing.B) {
	s := benchStore(b)
	for range b.N {
		check(b, s.UpdateShared(b.Context(), "limits", func(_ time.Time, old []byte) []byte { return append(old[:0], "a hundred bytes or so"...) }))
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	s := benchStore(b)
	for n := range b.N {
		l := must(s.Acquire(b.Context(), issue(n%100+1), "node"))(b)
		check(b, s.Release(b.Context(), l, nil))
	}
}

// BenchmarkSweep sweeps a database with 100,000 waiting threads.
func BenchmarkSweep(b *testing.B) {
	s := benchStore(b)
	must(s.DB().Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 100000)
		INSERT INTO threads (owner, name, number, wake_at, updated_at) SELECT 'octo', 'cat', i, ?1 + i, 0 FROM n`, time.Now().Add(time.Hour).UnixMicro()))(b)
	b.ResetTimer()
	for range b.N {
		must(s.Sweep(b.Context()))(b)
	}
}

// BenchmarkClean stores a delivery every 2 ms, in alternating seconds without and with cleaning of 100,000 old rows.
// For both it reports the waits' 99.9th percentile, and the median, 90th percentile and maximum of each second's
// longest wait.
func BenchmarkClean(b *testing.B) {
	const rounds = 10
	s := benchStore(b)
	body := payload(b)
	var kinds [2]struct{ all, longest []time.Duration }
	cleaned, left := 0, false
	for range b.N {
		for round := range 2 * rounds {
			b.StopTimer()
			if !left {
				fillOld(b, s, body)
				left = true
			}
			b.StartTimer()
			ctx, cancel := context.WithTimeout(b.Context(), time.Second)
			cleaning := make(chan struct{})
			go func() {
				defer close(cleaning)
				if round%2 == 0 {
					return
				}
				c, err := s.Clean(ctx, store.Retention{Deliveries: time.Now().Add(-time.Hour), Threads: time.Now().Add(-time.Hour)})
				left = err != nil
				if left && ctx.Err() == nil {
					b.Error(err)
				}
				cleaned += c.Deliveries + c.Events + c.Threads
			}()
			waits := receiveUntil(ctx, b, s, body)
			<-cleaning
			cancel()
			k := &kinds[round%2]
			k.all, k.longest = append(k.all, waits...), append(k.longest, slices.Max(waits))
		}
	}
	milliseconds := func(d []time.Duration, nth, of int, unit string) {
		slices.Sort(d)
		b.ReportMetric(float64(d[min(len(d)-1, len(d)*nth/of)].Microseconds())/1000, unit)
	}
	for i, kind := range []string{"without", "with"} {
		milliseconds(kinds[i].all, 999, 1000, kind+"-p99.9-ms")
		milliseconds(kinds[i].longest, 1, 2, kind+"-longest-p50-ms")
		milliseconds(kinds[i].longest, 9, 10, kind+"-longest-p90-ms")
		milliseconds(kinds[i].longest, 1, 1, kind+"-longest-ms")
	}
	b.ReportMetric(float64(cleaned)/float64(b.N*rounds), "rows/s")
}

// fillOld writes 100,000 rows that are a year old: deliveries with payloads, and threads' events.
func fillOld(b *testing.B, s *store.Store, body []byte) {
	b.Helper()
	// The old rows copy this payload as the store wrote it.
	must(s.Receive(b.Context(), thread.Delivery{GUID: "model", Event: "issues", Payload: body, ReceivedAt: time.Now().Add(-time.Minute)}))(b)
	old := time.Now().Add(-365 * 24 * time.Hour).UnixMicro()
	for _, query := range []string{
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 30000)
			INSERT INTO deliveries (guid, event, payload, received_at, state, retry_at)
			SELECT hex(randomblob(16)), 'issues', (SELECT payload FROM deliveries WHERE guid = 'model'), ?1 + i, 'handled', 0 FROM n`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 1000)
			INSERT INTO threads (owner, name, number, last_seq, updated_at) SELECT 'octo', 'cat' || ?1, i, 69, ?1 + i FROM n`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 69)
			INSERT INTO events (thread_id, seq, kind, at, data) SELECT t.id, n.i, 'ignored', ?1, '{"reason": "' || hex(randomblob(200)) || '"}'
			FROM threads t, n WHERE t.name = 'cat' || ?1`,
	} {
		must(s.DB().Exec(query, old))(b)
	}
}

// receiveUntil stores a delivery every 2 ms and returns each one's wait.
func receiveUntil(ctx context.Context, b *testing.B, s *store.Store, body []byte) []time.Duration {
	var mu sync.Mutex
	var waits []time.Duration
	var wg sync.WaitGroup
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			wg.Wait()
			return waits
		case due := <-tick.C:
			wg.Go(func() {
				if _, err := s.Receive(b.Context(), thread.Delivery{GUID: crand.Text(), Event: "issues", Payload: body, ReceivedAt: due}); err != nil {
					b.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				waits = append(waits, time.Since(due))
			})
		}
	}
}
