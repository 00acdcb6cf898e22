package fakegithub

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Delivery is what became of one webhook. StatusCode is 0 until it was answered
// and when it could not be sent.
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

func (d *delivery) view() Delivery {
	return Delivery{ID: d.id, GUID: d.guid, Event: d.event, Action: d.action, Redelivery: d.redelivery, Answered: d.sent,
		StatusCode: d.code, At: d.at, Duration: d.duration, Payload: d.payload}
}

// twist changes how many times the next deliveries of an event are sent.
type twist struct {
	event  string
	copies int
	left   int
}

func (c *courier) twist(d *delivery) int {
	for _, t := range c.twists {
		if t.left > 0 && (t.event == "" || t.event == d.event) {
			t.left--
			return t.copies
		}
	}
	return 1
}

// Drop loses the next n deliveries of an event, or of any when event is empty.
// They are recorded as failed and can be redelivered.
func (s *Server) Drop(event string, n int) {
	s.courier.addTwist(&twist{event: event, copies: 0, left: n})
}

// Duplicate sends the next n deliveries of an event, or of any when event is
// empty, twice under the same GUID.
func (s *Server) Duplicate(event string, n int) {
	s.courier.addTwist(&twist{event: event, copies: 2, left: n})
}

func (c *courier) addTwist(t *twist) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.twists = append(c.twists, t)
}

// Hold keeps new deliveries back until Release.
func (s *Server) Hold() {
	s.courier.mu.Lock()
	defer s.courier.mu.Unlock()
	s.courier.holding = true
}

// Held lists what is kept back, oldest first.
func (s *Server) Held() []Delivery {
	s.courier.mu.Lock()
	defer s.courier.mu.Unlock()
	return views(s.courier.held)
}

// Release sends the named deliveries in the order given, then everything else
// that was held in its own order, and stops holding. A GUID may be named more
// than once, so Release also reorders and duplicates.
func (s *Server) Release(guids ...string) {
	c := s.courier
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, guid := range guids {
		for _, d := range c.held {
			if d.guid == guid {
				c.push(d)
				break
			}
		}
	}
	for _, d := range c.held {
		if !slices.Contains(guids, d.guid) {
			c.push(d)
		}
	}
	c.holding, c.held = false, nil
}

// Deliveries lists the newest 5,000 deliveries, oldest first.
func (s *Server) Deliveries() []Delivery {
	s.courier.mu.Lock()
	defer s.courier.mu.Unlock()
	return views(s.courier.records)
}

func views(list []*delivery) []Delivery {
	out := make([]Delivery, 0, len(list))
	for _, d := range list {
		out = append(out, d.view())
	}
	return out
}

// Redeliver sends the newest delivery with this GUID again, as the button does.
func (s *Server) Redeliver(guid string) error {
	c := s.courier
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range slices.Backward(c.records) {
		if d.guid == guid {
			c.again(d)
			return nil
		}
	}
	return fmt.Errorf("no delivery %s among the newest %d", guid, keptDeliveries)
}

// WaitDelivered returns when nothing is queued or being sent. What is held does
// not count.
func (s *Server) WaitDelivered(ctx context.Context) error {
	return s.Await(ctx, func() bool {
		s.courier.mu.Lock()
		defer s.courier.mu.Unlock()
		return len(s.courier.queue) == 0 && !s.courier.sending
	})
}

// Send delivers any payload under any event name and returns its GUID, for
// payloads that nobody's act produces.
func (s *Server) Send(event string, payload []byte) string {
	d := &delivery{guid: newGUID(), event: event, payload: payload}
	s.courier.add(d)
	return d.guid
}
