package fakegithub

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"
	"time"
)

// delivery is one attempt to send one webhook.
type delivery struct {
	id             int64
	guid           string
	event          string
	action         string
	installationID int64
	repositoryID   int64
	redelivery     bool
	payload        []byte
	headers        map[string]string

	// What became of it; zero until it was sent.
	at       time.Time
	duration time.Duration
	status   string
	code     int
	url      string
	answer   string
	sent     bool
}

const (
	keptDeliveries  = 5_000            // the newest ones, with their payloads
	keptAnswer      = 4 << 10          // bytes of an answer's body
	deliveryTimeout = 10 * time.Second // "GitHub terminates the connection after 10 seconds"
)

// courier sends deliveries one at a time and remembers them.
type courier struct {
	now     func() time.Time
	secret  string
	appID   int64
	client  *http.Client
	changed *bell
	cancel  context.CancelFunc
	done    chan struct{}
	wake    chan struct{}

	mu      sync.Mutex // guards everything below
	url     string
	queue   []*delivery
	sending bool
	holding bool
	held    []*delivery
	records []*delivery
	twists  []*twist
	lastID  int64
}

func newCourier(o Options, now func() time.Time, changed *bell) *courier {
	ctx, cancel := context.WithCancel(context.Background())
	c := &courier{now: now, secret: o.WebhookSecret, appID: o.AppID, url: o.WebhookURL, changed: changed, cancel: cancel,
		client: &http.Client{Timeout: deliveryTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 2}},
		done:   make(chan struct{}), wake: make(chan struct{}, 1)}
	go c.work(ctx)
	return c
}

func (c *courier) close() {
	c.cancel()
	<-c.done
	c.client.CloseIdleConnections()
}

func (c *courier) setURL(url string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.url = url
}

// add queues a new delivery, unless a test holds, drops or doubles it.
func (c *courier) add(d *delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	copies := c.twist(d)
	if copies == neverFires || len(d.payload) > maxPayload {
		return
	}
	if copies == 0 {
		d.sent, d.at, d.status = true, c.now(), "failed to connect to host"
		c.record(d)
		return
	}
	c.record(d)
	for range copies {
		if c.holding {
			c.held = append(c.held, d)
		} else {
			c.push(d)
		}
	}
}

func (c *courier) record(d *delivery) {
	c.lastID++
	d.id = 20_000_000_000 + c.lastID
	if len(c.records) == keptDeliveries {
		c.records = append(c.records[:0], c.records[keptDeliveries/2:]...)
	}
	c.records = append(c.records, d)
}

func (c *courier) push(d *delivery) {
	c.queue = append(c.queue, d)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// again records and queues a redelivery: a new id under the same GUID.
func (c *courier) again(old *delivery) {
	d := &delivery{guid: old.guid, event: old.event, action: old.action, installationID: old.installationID,
		repositoryID: old.repositoryID, payload: old.payload, redelivery: true}
	c.record(d)
	c.push(d)
}

func (c *courier) work(ctx context.Context) {
	defer close(c.done)
	for {
		d := c.next()
		if d == nil {
			select {
			case <-c.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		c.send(ctx, d)
		c.changed.ring()
	}
}

func (c *courier) next() *delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil
	}
	d := c.queue[0]
	c.queue = c.queue[1:]
	c.sending = true
	return d
}

// send makes one request and writes down how it was answered.
func (c *courier) send(ctx context.Context, d *delivery) {
	c.mu.Lock()
	url := c.url
	c.mu.Unlock()
	headers, began := c.headers(d), time.Now()
	code, status, answer := c.post(ctx, url, headers, d.payload)
	c.mu.Lock()
	defer c.mu.Unlock()
	d.at, d.duration, d.url, d.headers = c.now(), time.Since(began), url, headers
	d.code, d.status, d.answer, d.sent = code, status, answer, true
	c.sending = false
}

func (c *courier) post(ctx context.Context, url string, headers map[string]string, body []byte) (int, string, string) {
	if url == "" {
		return 0, "failed to connect to host", ""
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, "invalid url", err.Error()
	}
	for key, value := range headers {
		req.Header.Set(key, value)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, "failed to connect to host", err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, keptAnswer))
	if err != nil {
		return 0, "failed to read the answer", err.Error()
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp.StatusCode, "OK", string(answer)
	}
	return resp.StatusCode, fmt.Sprintf("Invalid HTTP Response: %d", resp.StatusCode), string(answer)
}

func (c *courier) headers(d *delivery) map[string]string {
	h := map[string]string{"Content-Type": "application/json", "Accept": "*/*", "User-Agent": "GitHub-Hookshot/f05835d",
		"X-GitHub-Event": d.event, "X-GitHub-Delivery": d.guid, "X-GitHub-Hook-ID": fmt.Sprint(hookID),
		"X-GitHub-Hook-Installation-Target-ID": fmt.Sprint(c.appID), "X-GitHub-Hook-Installation-Target-Type": "integration"}
	if c.secret != "" {
		h["X-Hub-Signature"] = "sha1=" + sign(sha1.New, c.secret, d.payload)
		h["X-Hub-Signature-256"] = "sha256=" + sign(sha256.New, c.secret, d.payload)
	}
	return h
}

func sign(algorithm func() hash.Hash, secret string, body []byte) string {
	mac := hmac.New(algorithm, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func newGUID() string {
	b := make([]byte, 16)
	rand.Read(b)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
