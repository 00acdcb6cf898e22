package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
)

// strangers is the number of clients that each hold a connection and reopen it when it is closed. It is below a
// listener's limit.
const strangers = 500

// stall connects from the address from and sends only what. It waits until the server or ctx ends the connection.
func stall(ctx context.Context, from, to, what string) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, _ = io.WriteString(conn, what)
	_, _ = io.Copy(io.Discard, conn)
}

func TestStalledConnectionsBlockNoDelivery(t *testing.T) {
	t.Parallel()
	needs.All(t, "hundreds of connections that stall")
	const headers = "POST /api/github/hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: ping\r\nX-GitHub-Delivery: a-b\r\n" +
		"X-Hub-Signature-256: sha256=00\r\n"
	const length = "Content-Length: 20000000\r\n\r\n"
	part := headers + length + strings.Repeat(" ", 60<<10)
	for name, c := range map[string]struct {
		what   string
		leaves time.Duration // when the stranger disconnects
	}{
		"headers that never end":            {headers, time.Hour},
		"bodies that never come":            {headers + length, time.Hour},
		"bodies that stop":                  {part, time.Hour},
		"bodies that stop, and begin again": {part, 50 * time.Millisecond},
		"nothing at all":                    {"", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.Agent(testrig.PlainAgent, "")
			r.Start()
			ctx, end := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer end()
			var opened atomic.Int64
			for i := range strangers {
				from := fmt.Sprintf("127.%d.%d.%d", 1+i%3, i/250, 1+i%250)
				all.Go(func() {
					for ctx.Err() == nil {
						opened.Add(1)
						visit, leave := context.WithTimeout(ctx, c.leaves)
						stall(visit, from, r.Addr, c.what)
						leave()
						time.Sleep(time.Second) // spreads the load of hundreds of connections
					}
				})
			}
			r.Await("the strangers", func() bool { return opened.Load() > strangers })
			var took []time.Duration
			for i := range 100 {
				began := time.Now()
				status, answer := r.Hook([]byte(`{"zen": "Keep it logically awesome."}`), map[string]string{
					"X-GitHub-Delivery": fmt.Sprintf("00000000-0000-4000-8000-%012d", i), "Connection": "close"})
				if took = append(took, time.Since(began)); status != http.StatusOK {
					t.Errorf("delivery %d was answered %d %q", i, status, answer)
				}
			}
			slices.Sort(took)
			t.Logf("%d connections opened by %d strangers; a delivery took %s at the median, %s at most", opened.Load(), strangers, took[50], took[99])
			if took[98] > 10*time.Second { // GitHub's own timeout
				t.Errorf("a delivery in a hundred took %s", took[98])
			}
		})
	}
}
