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
	// webhookAim is the 99th percentile of the answers at webhookRate.
	webhookAim  = 25 * time.Millisecond
	webhookRate = 1000
	connections = 64
	// payloadSize is that of an ordinary issue_comment event, in bytes.
	payloadSize = 14 << 10
	// commented is over how many issues the comments are spread.
	commented = 1000
)

// measureWebhooks sends comments that are not for Pawl, signed and each with a
// GUID of its own, while the server stores and handles them.
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
		rows = append(rows, row{fmt.Sprintf("webhook answers as fast as they come, %d connections", connections),
			fmt.Sprintf("%.0f/s, %s", r.perSecond(), answers), "", false})
	}
	return rows, notes, nil
}

// webhooks runs one load on a new server, after a short one to warm it up.
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
		what = "as fast as they come"
	}
	return res, fmt.Sprintf("Webhooks %s: %d answered in %.1f s, %d of them were not yet handled then; the server used %.0f %% of one core, the sender %.0f %%.",
		what, len(res.took), res.elapsed.Seconds(), state.Deliveries[thread.Received],
		100*server.Seconds()/res.elapsed.Seconds(), 100*sender.Seconds()/res.elapsed.Seconds()), nil
}

// comments are signed deliveries of comments on many issues, made from one that
// the fake GitHub sends and filled up with text to the usual size.
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

// words is text of about n bytes that compresses about as well as prose.
func words(n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x ", rand.N(1<<20))
	}
	return b.String()
}

// shot is a delivery that is ready to be sent but for its GUID: signing and
// encoding must not take the time of the server, which shares the cores.
type shot struct{ head, body []byte }

// load sends deliveries over connections of its own. Each needs one write and
// the reading of a short answer.
type load struct {
	addr        string
	shots       []shot
	connections int
	// rate is how many are sent a second, whether or not the earlier ones were
	// answered; 0 sends the next one on each connection after the answer.
	rate int
	// time is for how long new ones are sent.
	time time.Duration
	// prefix keeps the GUIDs of several loads apart.
	prefix uint32
}

// result of a load: what each answer took and how long it all did. At a rate,
// the time counts from when the delivery was due, so that a server that makes
// the sender wait does not look faster.
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

// connection sends the next delivery, one at a time, until the time is over.
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
		return fmt.Errorf("a delivery was answered %s: %s", resp.Status, text)
	}
	return nil
}

// The cost of one webhook that is ignored.
const (
	ignoredAim   = time.Millisecond
	ignoredCount = 2000
	ignoredRate  = 400
	ignoredTurns = 3
)

// measureIgnored counts the processor time and the requests to GitHub of comments
// that nobody asked Pawl for, from the request until they are handled.
func measureIgnored(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	var each []time.Duration
	calls := 0
	for n := range ignoredTurns {
		own := filepath.Join(dir, fmt.Sprint(n))
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, err
		}
		cost, asked, err := ignored(ctx, bin, own)
		if err != nil {
			return nil, nil, err
		}
		each, calls = append(each, cost), calls+asked
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
