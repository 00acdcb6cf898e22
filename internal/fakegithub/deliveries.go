package fakegithub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hookID identifies the App's only webhook.
const hookID = 400_000_001

func (h *webhooks) hookConfig() obj {
	h.mu.Lock()
	defer h.mu.Unlock()
	config := obj{"content_type": "json", "insecure_ssl": "0", "url": h.url}
	if h.secret != "" {
		config["secret"] = "********"
	}
	return config
}

// listDeliveries lists newest first and pages by cursor.
func (h *webhooks) listDeliveries(c *call) *reply {
	size := clamp(c.query("per_page", "30"), 30, 100)
	before := int64(1 << 62)
	if cursor := c.query("cursor", ""); cursor != "" {
		id, err := strconv.ParseInt(strings.TrimPrefix(cursor, "v1_"), 10, 64)
		if err != nil {
			return problem(http.StatusBadRequest, "Invalid cursor")
		}
		before = id
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []obj{}
	var last int64
	more := false
	for _, d := range slices.Backward(h.records) {
		if !h.keeps(d) || d.ID >= before {
			continue
		}
		if len(list) == size {
			more = true
			break
		}
		list = append(list, d.render())
		last = d.ID
	}
	rep := ok(list)
	if more {
		rep.header.Set("Link", fmt.Sprintf(`<%s>; rel="next"`, c.link("cursor", "v1_"+strconv.FormatInt(last, 10))))
	}
	return rep
}

func (d *delivery) render() obj {
	body := obj{"id": d.ID, "guid": d.GUID, "delivered_at": stamp(d.At), "redelivery": d.Redelivery,
		"duration": float64(d.Duration.Milliseconds()) / 1000, "status": d.status, "status_code": d.StatusCode, "event": d.Event,
		"action": nil, "installation_id": nil, "repository_id": nil, "throttled_at": nil}
	if d.Action != "" {
		body["action"] = d.Action
	}
	if d.installationID != 0 {
		body["installation_id"] = d.installationID
	}
	if d.repositoryID != 0 {
		body["repository_id"] = d.repositoryID
	}
	return body
}

func (h *webhooks) getDelivery(c *call) *reply {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.find(c.id())
	if d == nil {
		return notFound()
	}
	body := d.render()
	body["url"] = d.url
	headers := d.headers
	if headers == nil { // the delivery was dropped before sending
		headers = h.headers(d)
	}
	var payload any = string(d.Payload)
	if json.Valid(d.Payload) {
		payload = json.RawMessage(d.Payload)
	}
	body["request"] = obj{"headers": headers, "payload": payload}
	body["response"] = obj{"headers": obj{}, "payload": d.answer}
	return ok(body)
}

func (h *webhooks) find(id int64) *delivery {
	for _, d := range h.records {
		if d.ID == id && h.keeps(d) {
			return d
		}
	}
	return nil
}

// Delivery is one delivery of a webhook. StatusCode is 0 before the answer, or if sending failed.
type Delivery struct {
	ID         int64
	GUID       string
	Event      string
	Action     string
	Redelivery bool
	Answered   bool
	StatusCode int
	At         time.Time
	Duration   time.Duration
	Payload    []byte
}

// deliveryFault applies to the next deliveries of an event (empty: any): they fail or, if never is set, leave no
// trace.
type deliveryFault struct {
	event string
	never bool
	left  int
}

// fault returns the fault for a delivery; nil for none.
func (h *webhooks) fault(d *delivery) *deliveryFault {
	for _, f := range h.faults {
		if f.left > 0 && (f.event == "" || f.event == d.Event) {
			f.left--
			return f
		}
	}
	return nil
}

// Drop loses the next n deliveries of an event (empty: any). They are recorded as failed and can be redelivered.
func (h *webhooks) Drop(event string, n int) {
	h.addFault(&deliveryFault{event: event, left: n})
}

func (h *webhooks) addFault(f *deliveryFault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, f)
}

// Hold holds new deliveries until Release.
func (h *webhooks) Hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holding = true
}

// Held lists held deliveries, oldest first.
func (h *webhooks) Held() []Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	return views(h.held)
}

// Release sends the named deliveries in order, then the other held ones, and stops holding. A GUID that is named
// twice is sent twice.
func (h *webhooks) Release(guids ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, guid := range guids {
		for _, d := range h.held {
			if d.GUID == guid {
				h.push(d)
				break
			}
		}
	}
	for _, d := range h.held {
		if !slices.Contains(guids, d.GUID) {
			h.push(d)
		}
	}
	h.holding, h.held = false, nil
}

func (h *webhooks) Deliveries() []Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	return views(h.records)
}

func views(list []*delivery) []Delivery {
	out := make([]Delivery, 0, len(list))
	for _, d := range list {
		out = append(out, d.Delivery)
	}
	return out
}

// Redeliver sends the newest delivery with this GUID again.
func (h *webhooks) Redeliver(guid string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range slices.Backward(h.records) {
		if d.GUID == guid {
			h.again(d)
			return nil
		}
	}
	return fmt.Errorf("no delivery %s among the newest %d", guid, keptDeliveries)
}

// Send delivers any payload under any event name and returns its GUID.
func (h *webhooks) Send(event string, payload []byte) string {
	d := &delivery{Delivery: Delivery{GUID: newGUID(), Event: event, Payload: payload}}
	h.add(d)
	return d.GUID
}

// deliveryLife: "All deliveries from the past 3 days will be listed".
const deliveryLife = 3 * 24 * time.Hour

// maxPayload: "Payloads are capped at 25 MB".
const maxPayload = 25 << 20

// Lose suppresses the next n events (empty: any), as GitHub does with oversized payloads: they are neither sent nor
// listed.
func (h *webhooks) Lose(event string, n int) {
	h.addFault(&deliveryFault{event: event, never: true, left: n})
}

// keeps reports whether a delivery was sent and is recent enough to be listed.
func (h *webhooks) keeps(d *delivery) bool {
	return d.Answered && h.clock().Sub(d.At) <= deliveryLife
}
