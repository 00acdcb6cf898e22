package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

const (
	// webhookAim limits the 99th percentile of the answers' latency at webhookRate.
	webhookAim  = 25 * time.Millisecond
	webhookRate = 1000
	connections = 64
	// payloadSize is the usual size of an issue_comment event, in bytes.
	payloadSize = 14 << 10
	// commented is the number of issues that get comments.
	commented = 1000
)

// measureWebhooks sends signed comments that are not for Pawl, each with its own GUID. Meanwhile the server stores and
// handles them.
func measureWebhooks(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	for _, m := range []struct {
		name string
		rate int
		time time.Duration
	}{{"rate", webhookRate, 10 * time.Second}, {"most", 0, 5 * time.Second}} {
		own := filepath.Join(dir, m.name)
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, err
		}
		r, note, err := webhooks(ctx, bin, own, load{connections: connections, rate: m.rate, time: m.time})
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, note)
		p50, p99 := quantile(r.took, 0.5), quantile(r.took, 0.99)
		answers := fmt.Sprintf("p50 %s, p99 %s", ms(p50), ms(p99))
		if m.rate > 0 {
			rows = append(rows, row{fmt.Sprintf("webhook answers at %d deliveries/s, %d connections", m.rate, connections), answers,
				"p99 < " + ms(webhookAim), p99 < webhookAim})
			continue
		}
		rows = append(rows, row{fmt.Sprintf("webhook answers at full speed, %d connections", connections),
			fmt.Sprintf("%.0f/s, %s", r.perSecond(), answers), "", false})
	}
	return rows, notes, nil
}

// webhooks runs one load on a new server after a short warm-up.
func webhooks(ctx context.Context, bin, dir string, l load) (res result, note string, err error) {
	r, err := newBench(ctx, bin, dir, "exit 1\n", "plain", "none", "log: {level: warn}\n")
	if err != nil {
		return res, "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := r.Start(ctx); err != nil {
		return res, "", err
	}
	if l.shots, err = r.comments(); err != nil {
		return res, "", err
	}
	l.addr = r.Addr
	if _, err := (load{addr: r.Addr, shots: l.shots, connections: 8, rate: 200, time: time.Second, prefix: 1}).run(ctx); err != nil {
		return res, "", err
	}
	db, err := store.Open(ctx, r.Database(), store.Options{Access: store.Reading})
	if err != nil {
		return res, "", err
	}
	defer db.Close()
	if err := r.Settled(ctx, db); err != nil {
		return res, "", err
	}
	sender, server := cpuTime(os.Getpid()), cpuTime(r.Server.Process.Pid)
	if res, err = l.run(ctx); err != nil {
		return res, "", err
	}
	sender, server = cpuTime(os.Getpid())-sender, cpuTime(r.Server.Process.Pid)-server
	state, err := db.Stats(ctx)
	if err != nil {
		return res, "", err
	}
	what := fmt.Sprintf("at %d/s", l.rate)
	if l.rate == 0 {
		what = "at full speed"
	}
	return res, fmt.Sprintf("Webhooks %s: %d answered in %.1f s, and %d of these not yet handled at the end; the server used %.0f %% of one core, the sender %.0f %%.",
		what, len(res.took), res.elapsed.Seconds(), state.Deliveries[thread.Received],
		100*server.Seconds()/res.elapsed.Seconds(), 100*sender.Seconds()/res.elapsed.Seconds()), nil
}

// comments returns signed deliveries of comments on many issues, padded to the usual size.
func (r *bench) comments() ([]shot, error) {
	n, err := r.World.OpenIssue(repo, reader, "The build is red", "It fails on my machine.")
	if err != nil {
		return nil, err
	}
	if _, err := r.World.Comment(repo, n, reader, "I see that, too."); err != nil {
		return nil, err
	}
	sent := r.World.Deliveries()
	payload := sent[len(sent)-1].Payload
	var shots []shot
	for i := range commented {
		var p struct {
			Issue, Comment map[string]any
		}
		var all map[string]any
		if err := errors.Join(json.Unmarshal(payload, &p), json.Unmarshal(payload, &all)); err != nil {
			return nil, err
		}
		if p.Issue == nil || p.Comment == nil {
			return nil, fmt.Errorf("the fake GitHub sent no comment: %.200s", payload)
		}
		p.Issue["number"], p.Comment["id"] = 100+i, 1_000_000+i
		p.Issue["body"] = words(max(0, payloadSize-len(payload)))
		all["issue"], all["comment"] = p.Issue, p.Comment
		body, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		shots = append(shots, newShot(r.Addr, "issue_comment", body))
	}
	return shots, nil
}

// words returns about n bytes of text that compresses like prose.
func words(n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x ", rand.N(1<<20))
	}
	return b.String()
}

// shot is a prepared delivery without its GUID. It is signed and encoded before the measurement, because that would
// take CPU time from the server.
type shot struct{ head, body []byte }

// load sends deliveries over its own connections.
type load struct {
	addr        string
	shots       []shot
	connections int
	// rate is the number of deliveries per second, independent of the answers. If it is 0, each delivery is sent after the
	// previous one's answer.
	rate int
	// time is the duration of sending.
	time time.Duration
	// prefix begins the GUIDs of this load, so that loads do not share GUIDs.
	prefix uint32
}

// result has each answer's time and the total time. If the load has a rate, an answer's time counts from the time when its
// delivery was due.
type result struct {
	took    []time.Duration
	elapsed time.Duration
}

func (r result) perSecond() float64 { return float64(len(r.took)) / r.elapsed.Seconds() }

func newShot(addr, event string, body []byte) shot {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return shot{body: body, head: fmt.Appendf(nil, "POST /api/github/hook HTTP/1.1\r\nHost: %s\r\nUser-Agent: GitHub-Hookshot/bench\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nX-GitHub-Event: %s\r\nX-Hub-Signature-256: sha256=%s\r\nX-GitHub-Delivery: ",
		addr, len(body), event, hex.EncodeToString(mac.Sum(nil)))}
}

func (l load) run(ctx context.Context) (result, error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	took := make([][]time.Duration, l.connections)
	errs := make(chan error, l.connections)
	began := time.Now()
	for c := range l.connections {
		wg.Go(func() {
			var err error
			if took[c], err = l.connection(ctx, began, &next); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	r := result{elapsed: time.Since(began)}
	for _, t := range took {
		r.took = append(r.took, t...)
	}
	select {
	case err := <-errs:
		return r, err
	default:
		return r, ctx.Err()
	}
}

// connection sends deliveries in turn until time is up.
func (l load) connection(ctx context.Context, began time.Time, next *atomic.Int64) (took []time.Duration, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for {
		n := next.Add(1) - 1
		due := time.Now()
		if l.rate > 0 {
			due = began.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
			time.Sleep(time.Until(due))
		}
		if due.Sub(began) > l.time || ctx.Err() != nil {
			return took, nil
		}
		if err := l.send(conn, answers, n); err != nil {
			return took, err
		}
		took = append(took, time.Since(due))
	}
}

func (l load) send(conn net.Conn, answers *bufio.Reader, n int64) error {
	s := l.shots[n%int64(len(l.shots))]
	guid := fmt.Appendf(nil, "%08x-0000-4000-8000-%012x\r\n\r\n", l.prefix, n)
	request := net.Buffers{s.head, guid, s.body}
	if _, err := request.WriteTo(conn); err != nil {
		return err
	}
	resp, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("a delivery got status %s: %s", resp.Status, text)
	}
	return nil
}

// The load for measuring the cost of an ignored webhook.
const (
	ignoredAim   = time.Millisecond
	ignoredCount = 2000
	ignoredRate  = 400
	ignoredTurns = 3
)

// measureIgnored sends comments that are not for Pawl. It measures the server's CPU time until they are handled, and
// its requests to GitHub.
func measureIgnored(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	var each []time.Duration
	calls := 0
	for n := range ignoredTurns {
		own := filepath.Join(dir, fmt.Sprint(n))
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, err
		}
		cost, requests, err := ignored(ctx, bin, own)
		if err != nil {
			return nil, nil, err
		}
		each, calls = append(each, cost), calls+requests
	}
	return []row{
		{"processor time of one ignored webhook", fmt.Sprintf("%s / %s / %s", quantile(each, 0), quantile(each, 0.5), quantile(each, 1)),
			"median < " + ms(ignoredAim), quantile(each, 0.5) < ignoredAim},
		{fmt.Sprintf("GitHub API calls for %d ignored webhooks", ignoredTurns*ignoredCount), fmt.Sprint(calls), "0", calls == 0},
	}, nil, nil
}

func ignored(ctx context.Context, bin, dir string) (each time.Duration, calls int, err error) {
	r, err := newBench(ctx, bin, dir, "exit 1\n", "plain", "none", "log: {level: warn}\n")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := r.Start(ctx); err != nil {
		return 0, 0, err
	}
	shots, err := r.comments()
	if err != nil {
		return 0, 0, err
	}
	db, err := store.Open(ctx, r.Database(), store.Options{Access: store.Reading})
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	l := load{addr: r.Addr, shots: shots, connections: 8, rate: ignoredRate, time: time.Second, prefix: 1}
	if _, err := l.run(ctx); err != nil {
		return 0, 0, err
	}
	if err := r.Settled(ctx, db); err != nil {
		return 0, 0, err
	}
	r.World.ResetCalls()
	before := cpuTime(r.Server.Process.Pid)
	l.time, l.prefix = ignoredCount*time.Second/ignoredRate, 2
	res, err := l.run(ctx)
	if err := errors.Join(err, r.Settled(ctx, db)); err != nil {
		return 0, 0, err
	}
	used := cpuTime(r.Server.Process.Pid) - before
	calls, _ = restCalls(r.World.Calls())
	return (used / time.Duration(len(res.took))).Round(time.Microsecond), calls, nil
}
