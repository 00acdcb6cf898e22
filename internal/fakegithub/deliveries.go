package fakegithub

import "time"

// deliveryLife is how long a delivery is listed, can be read and redelivered
// ("All deliveries from the past 3 days will be listed", redelivering webhooks).
const deliveryLife = 3 * 24 * time.Hour

// maxPayload is the size above which an event is not sent ("Payloads are capped
// at 25 MB", webhook events and payloads).
const maxPayload = 25 << 20

// neverFires as the number of copies means that an event leaves no trace.
const neverFires = -1

// Lose makes the next n events of a kind, or of any when event is empty, never
// fire, as GitHub does with those whose payload is too large: they are neither
// sent nor listed as deliveries.
func (s *Server) Lose(event string, n int) {
	s.courier.addTwist(&twist{event: event, copies: neverFires, left: n})
}

// keeps reports whether a delivery was sent and is not too old to be shown.
func (c *courier) keeps(d *delivery) bool {
	return d.sent && c.now().Sub(d.at) <= deliveryLife
}
