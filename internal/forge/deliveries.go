package forge

import (
	"context"
	"net/http"
	"time"

	"github.com/google/go-github/v60/github"
)

// Delivery is one attempt of GitHub to send one webhook. Attempts at the same
// webhook share the GUID and differ in the id.
type Delivery struct {
	ID   int64
	GUID string
	// Event and Action are those of the payload; Action is empty where the event
	// has none.
	Event  string
	Action string
	// At is when GitHub sent it.
	At         time.Time
	Redelivery bool
	// StatusCode is what was answered; zero when no connection was made.
	StatusCode int
}

// Deliveries reads one page of the App's webhook deliveries, newest first. An
// empty cursor begins with the newest one; next is empty on the last page.
// github.com lists those of 3 days, an Enterprise Server those of 7
// (docs.github.com, "Redelivering webhooks").
func (c *Client) Deliveries(ctx context.Context, cursor string) (page []Delivery, next string, err error) {
	err = c.do(ctx, request{method: http.MethodGet, route: "/app/hook/deliveries", as: asApp, urgency: background, send: func(ctx context.Context, gh *github.Client) error {
		got, resp, err := gh.Apps.ListHookDeliveries(ctx, &github.ListCursorOptions{PerPage: pageSize, Cursor: cursor})
		if err != nil {
			return err
		}
		page, next = make([]Delivery, 0, len(got)), resp.Cursor
		for _, d := range got {
			page = append(page, Delivery{
				ID: d.GetID(), GUID: d.GetGUID(), Event: d.GetEvent(), Action: d.GetAction(), At: d.GetDeliveredAt().Time,
				Redelivery: d.GetRedelivery(), StatusCode: d.GetStatusCode(),
			})
		}
		return nil
	}})
	return page, next, err
}

// DeliveryPayload reads what a delivery carried. It is nil where GitHub keeps no
// payload, and ErrNotFound means that it keeps nothing of the delivery. GitHub
// may have written the JSON anew, so a signature of it would not fit.
func (c *Client) DeliveryPayload(ctx context.Context, id int64) ([]byte, error) {
	var payload []byte
	err := c.do(ctx, request{method: http.MethodGet, route: "/app/hook/deliveries/{id}", as: asApp, urgency: background, once: true, send: func(ctx context.Context, gh *github.Client) error {
		got, _, err := gh.Apps.GetHookDelivery(ctx, id)
		if err != nil {
			return err
		}
		if got.GetID() == 0 {
			return errEmptyAnswer
		}
		payload = nil
		if raw := got.GetRequest().GetRawPayload(); len(raw) > 0 && string(raw) != "null" {
			payload = raw
		}
		return nil
	}})
	return payload, err
}
