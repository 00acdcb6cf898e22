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
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
)

const (
	strangers        = 500 // hold a connection each and open the next one when it is closed; fewer than a listener takes
	stalledDelivered = 100 // deliveries that come meanwhile
)

// stall opens a connection from an address of its own, sends what it is given and nothing more, until the server
// ends it.
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

func TestStalledConnectionsKeepNoDeliveryOut(t *testing.T) {
	t.Parallel()
	needs.All(t, "hundreds of connections that stall")
	const headers = "POST /api/github/hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: ping\r\nX-GitHub-Delivery: a-b\r\n" +
		"X-Hub-Signature-256: sha256=00\r\n"
	for name, what := range map[string]string{
		"headers that never end": headers,
		"bodies that never come": headers + "Content-Length: 20000000\r\n\r\n",
		"bodies that stop":       headers + "Content-Length: 20000000\r\n\r\n" + strings.Repeat(" ", 60<<10),
		"nothing at all":         "",
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
						stall(ctx, from, r.Addr, what)
						time.Sleep(time.Second) // strangers on the same two processors, at a pace that leaves some to the server
					}
				})
			}
			r.Await("the strangers", func() bool { return opened.Load() > strangers })
			var took []time.Duration
			for i := range stalledDelivered {
				began := time.Now()
				status, answer := r.Hook([]byte(`{"zen": "Keep it logically awesome."}`), map[string]string{
					"X-GitHub-Delivery": fmt.Sprintf("00000000-0000-4000-8000-%012d", i), "Connection": "close"})
				if took = append(took, time.Since(began)); status != http.StatusOK {
					t.Errorf("delivery %d was answered %d %q", i, status, answer)
				}
			}
			slices.Sort(took)
			t.Logf("%d connections opened by %d strangers; a delivery took %s at the median, %s at the 99th percentile, %s at most", opened.Load(), strangers,
				took[len(took)/2].Round(time.Microsecond), took[len(took)*99/100].Round(time.Microsecond), took[len(took)-1].Round(time.Microsecond))
			if took[len(took)*99/100] > 10*time.Second { // when GitHub gives up
				t.Error("deliveries are kept out")
			}
			if resp, err := http.Get(r.URL("/healthz")); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("the process does not say that it lives: %v", err)
			} else {
				resp.Body.Close()
			}
		})
	}
}

// TestBodiesThatStopAndBeginAgainKeepNoDeliveryOut has 300 strangers send a part of a body each, leave after 50 ms and
// return, until there were 6,000 connections and 20 deliveries.
func TestBodiesThatStopAndBeginAgainKeepNoDeliveryOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	what := "POST /api/github/hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: ping\r\nX-GitHub-Delivery: a-b\r\n" +
		"X-Hub-Signature-256: sha256=00\r\nContent-Length: 20000000\r\n\r\n" + strings.Repeat(" ", 60<<10)
	var all sync.WaitGroup
	var opened atomic.Int64
	for i := range 300 {
		all.Go(func() {
			for range 20 {
				ctx, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
				stall(ctx, fmt.Sprintf("127.4.%d.%d", i/250, 1+i%250), r.Addr, what)
				end()
				opened.Add(1)
			}
		})
	}
	for i := range 20 {
		r.Await("more strangers", func() bool { return opened.Load() >= int64(i)*300 })
		if status, answer := r.Hook([]byte(`{"zen": "Keep it logically awesome."}`), map[string]string{
			"X-GitHub-Delivery": fmt.Sprintf("00000000-0000-4000-8000-%012d", i), "Connection": "close"}); status != http.StatusOK {
			t.Errorf("delivery %d was answered %d %q", i, status, answer)
		}
	}
	all.Wait()
}

func TestWebhooksComeFromGitHubsAddressesWhereTheConfigurationSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.World.SetHookRanges("192.30.252.0/22")
	r.More = `, hooks_from: github, proxies: ["127.0.0.0/8"]`
	r.Start()
	ping := func(forwarded string) int {
		status, _ := r.Hook([]byte(`{"zen": "Keep it logically awesome."}`), map[string]string{"X-Forwarded-For": forwarded})
		return status
	}
	r.Await("what GitHub says", func() bool { return ping("198.51.100.1") == http.StatusForbidden })
	if got := ping("198.51.100.1, 192.30.252.9"); got != http.StatusOK {
		t.Errorf("from GitHub: %d", got)
	}
	if got := ping("192.30.252.9, 198.51.100.1"); got != http.StatusForbidden {
		t.Errorf("from somebody who says to be GitHub: %d", got)
	}
	// A start while GitHub is away knows it, too.
	r.Stop(syscall.SIGTERM)
	r.World.Inject(fakegithub.Fault{Route: "GET /meta", Status: http.StatusServiceUnavailable, Times: -1})
	r.Start()
	if got := ping("198.51.100.1"); got != http.StatusForbidden {
		t.Errorf("from elsewhere, after a start without GitHub: %d", got)
	}
	if r.World.Calls()["GET /meta"] < 1 {
		t.Error("GitHub was not asked")
	}
}

func TestAStalledBodyAndStalledHeadersAreCutOffWithinSeconds(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	const line = "POST /api/github/hook HTTP/1.1\r\nHost: x\r\nX-GitHub-Event: ping\r\nX-GitHub-Delivery: a-b\r\n"
	for name, c := range map[string]struct {
		what  string
		least time.Duration
	}{
		"headers": {line, 4 * time.Second},
		"a body":  {line + "X-Hub-Signature-256: sha256=00\r\nContent-Length: 100\r\n\r\n{", 2 * time.Second},
	} {
		began := time.Now()
		stall(t.Context(), "127.0.0.2", r.Addr, c.what)
		// An answer may take 90 s.
		if took := time.Since(began); took < c.least || took > 40*time.Second {
			t.Errorf("%s: cut off after %s", name, took)
		}
	}
}
