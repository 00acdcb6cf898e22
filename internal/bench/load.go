package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

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
