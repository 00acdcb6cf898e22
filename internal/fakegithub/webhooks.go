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
	"maps"
	"net/http"
	"sync"
	"time"
)

// delivery is one attempt to send a webhook, with data that tests do not read.
type delivery struct {
	Delivery
	installationID int64
	repositoryID   int64
	headers        map[string]string
	status         string
	url            string
	answer         string
}

const (
	keptDeliveries  = 5_000            // newest, with their payloads
	keptAnswer      = 4 << 10          // bytes of an answer's body
	deliveryTimeout = 10 * time.Second // "GitHub terminates the connection after 10 seconds"
)

// webhooks sends deliveries one at a time and records them.
type webhooks struct {
	clock   func() time.Time
	secret  string
	appID   int64
	client  *http.Client
	changed *notifier
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
	faults  []*deliveryFault
	lastID  int64
}

func newWebhooks(o Options, changed *notifier) *webhooks {
	ctx, cancel := context.WithCancel(context.Background())
	h := &webhooks{clock: o.Now, secret: o.WebhookSecret, appID: o.AppID, url: o.WebhookURL, changed: changed, cancel: cancel,
		client: &http.Client{Timeout: deliveryTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 2}},
		done:   make(chan struct{}), wake: make(chan struct{}, 1)}
	go h.work(ctx)
	return h
}

func (h *webhooks) close() {
	h.cancel()
	<-h.done
	h.client.CloseIdleConnections()
}

// SetWebhookURL sets the target of deliveries. An empty URL records them as failed.
func (h *webhooks) SetWebhookURL(url string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.url = url
}

// add queues a new delivery, unless a test holds or drops it.
func (h *webhooks) add(d *delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fault := h.fault(d)
	switch {
	case len(d.Payload) > maxPayload, fault != nil && fault.never:
		return
	case fault != nil:
		d.Answered, d.At, d.status = true, h.clock(), "failed to connect to host"
		h.record(d)
		return
	}
	h.record(d)
	if h.holding {
		h.held = append(h.held, d)
	} else {
		h.push(d)
	}
}

func (h *webhooks) record(d *delivery) {
	h.lastID++
	d.ID = 20_000_000_000 + h.lastID
	if len(h.records) == keptDeliveries {
		h.records = append(h.records[:0], h.records[keptDeliveries/2:]...)
	}
	h.records = append(h.records, d)
}

func (h *webhooks) push(d *delivery) {
	h.queue = append(h.queue, d)
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// again queues a redelivery: a new id with the same GUID.
func (h *webhooks) again(old *delivery) {
	d := &delivery{Delivery: Delivery{GUID: old.GUID, Event: old.Event, Action: old.Action, Payload: old.Payload, Redelivery: true},
		installationID: old.installationID, repositoryID: old.repositoryID}
	h.record(d)
	h.push(d)
}

func (h *webhooks) work(ctx context.Context) {
	defer close(h.done)
	for {
		d := h.next()
		if d == nil {
			select {
			case <-h.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		h.send(ctx, d)
		h.changed.ring()
	}
}

func (h *webhooks) next() *delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		return nil
	}
	d := h.queue[0]
	h.queue = h.queue[1:]
	h.sending = true
	return d
}

// send makes one request and records the answer.
func (h *webhooks) send(ctx context.Context, d *delivery) {
	h.mu.Lock()
	url := h.url
	h.mu.Unlock()
	headers, began := h.headers(d), time.Now()
	code, status, answer := h.post(ctx, url, headers, d.Payload)
	h.mu.Lock()
	defer h.mu.Unlock()
	d.At, d.Duration, d.url, d.headers = h.clock(), time.Since(began), url, headers
	d.StatusCode, d.status, d.answer, d.Answered = code, status, answer, true
	h.sending = false
}

func (h *webhooks) post(ctx context.Context, url string, headers map[string]string, body []byte) (int, string, string) {
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
	resp, err := h.client.Do(req)
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

func (h *webhooks) headers(d *delivery) map[string]string {
	headers := map[string]string{"Content-Type": "application/json", "Accept": "*/*", "User-Agent": "GitHub-Hookshot/f05835d",
		"X-GitHub-Event": d.Event, "X-GitHub-Delivery": d.GUID, "X-GitHub-Hook-ID": fmt.Sprint(hookID),
		"X-GitHub-Hook-Installation-Target-ID": fmt.Sprint(h.appID), "X-GitHub-Hook-Installation-Target-Type": "integration"}
	if h.secret != "" {
		headers["X-Hub-Signature"] = "sha1=" + sign(sha1.New, h.secret, d.Payload)
		headers["X-Hub-Signature-256"] = "sha256=" + sign(sha256.New, h.secret, d.Payload)
	}
	return headers
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

// emit sends an event of a repository to the installed App. It adds repository, sender, installation and
// organization to fields.
func (w *world) emit(event string, r *repository, sender *account, fields ...obj) {
	in := w.installationOf(r)
	if in == nil || !in.suspended.IsZero() {
		return
	}
	payload := obj{"repository": w.renderRepo(r), "sender": w.renderUser(sender),
		"installation": obj{"id": in.id, "node_id": nodeID("Integration", in.id)}}
	if event == "push" { // GitHub sends these two times as numbers in pushes
		repo := payload["repository"].(obj)
		repo["created_at"], repo["pushed_at"], repo["master_branch"] = r.created.Unix(), r.pushed.Unix(), r.defaultBranch
		repo["owner"].(obj)["name"] = r.owner.login
	}
	if r.owner.kind == "Organization" {
		payload["organization"] = w.renderOrganization(r.owner)
	}
	for _, f := range fields {
		maps.Copy(payload, f)
	}
	addProperties(payload)
	w.webhooks.add(newDelivery(event, payload, in.id, r.id))
}

// addProperties adds custom_properties to repositories. Webhooks have them, and REST lists do not.
func addProperties(payload obj) {
	payload["repository"].(obj)["custom_properties"] = obj{}
	if pull, ok := payload["pull_request"].(obj); ok {
		for _, side := range []string{"head", "base"} {
			pull[side].(obj)["repo"].(obj)["custom_properties"] = obj{}
		}
	}
}

func (w *world) emitApp(event string, in *installation, sender *account, fields obj) {
	payload := obj{"installation": w.renderInstallation(in), "sender": w.renderUser(sender)}
	maps.Copy(payload, fields)
	w.webhooks.add(newDelivery(event, payload, in.id, 0))
}

func newDelivery(event string, payload obj, installationID, repositoryID int64) *delivery {
	action, _ := payload["action"].(string)
	return &delivery{Delivery: Delivery{GUID: newGUID(), Event: event, Action: action, Payload: encode(payload)},
		installationID: installationID, repositoryID: repositoryID}
}

func (w *world) emitThread(r *repository, t *thread, action string, sender *account, extra obj) {
	if t.pull != nil {
		w.emit("pull_request", r, sender, obj{"action": action, "number": t.number, "pull_request": w.renderPull(r, t)}, extra)
		return
	}
	w.emit("issues", r, sender, obj{"action": action, "issue": w.renderIssue(r, t)}, extra)
}

func (w *world) emitComment(r *repository, t *thread, c *comment, action string, sender *account, extra obj) {
	w.emit("issue_comment", r, sender, obj{"action": action, "issue": w.renderIssue(r, t), "comment": w.renderComment(r, t, c)}, extra)
}

func (w *world) emitCheck(r *repository, run *checkRun, action string, sender *account, extra obj) {
	w.emit("check_run", r, sender, obj{"action": action, "check_run": w.renderCheckRunEvent(r, run)}, extra)
}
