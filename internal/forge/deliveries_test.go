package forge

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestDeliveriesAreListedNewestFirstPageByPage(t *testing.T) {
	h, c := start(t)
	var last string
	for range 120 {
		last = h.Send("star", []byte(`{"action":"created"}`))
	}
	if err := h.WaitDelivered(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all []Delivery
	pages := 0
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := c.Apps.Deliveries(t.Context(), cursor)
		if err != nil {
			t.Fatal(err)
		}
		all, cursor = append(all, page...), next
		pages++
	}
	if pages != 2 || len(all) != len(h.Deliveries()) || all[0].GUID != last || all[0].StatusCode != 0 || all[0].At.IsZero() {
		t.Fatalf("%d deliveries of %d on %d pages, the first %+v; want all of them, newest first", len(all), len(h.Deliveries()), pages, all[0])
	}
	payload, err := c.Apps.Payload(t.Context(), all[0].ID)
	if err != nil || string(payload) != `{"action":"created"}` {
		t.Errorf("%s, %v", payload, err)
	}
	if _, err := c.Apps.Payload(t.Context(), 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown delivery: %v, want ErrNotFound", err)
	}
}

func TestDeliveryMayLackAPayload(t *testing.T) {
	for _, body := range []string{`{"id": 7, "request": {"payload": null}}`, `{"id": 7, "request": null}`, `{"id": 7}`} {
		h, c := start(t)
		h.fail("GET /app/hook/deliveries/7", status(http.StatusOK, body))
		if payload, err := c.Apps.Payload(t.Context(), 7); payload != nil || err != nil {
			t.Errorf("%s: %q, %v; want none", body, payload, err)
		}
	}
}

func TestAThreadIsReadSinceATime(t *testing.T) {
	h, c := start(t)
	sha := h.branch()
	number, err := h.OpenPull(t.Context(), "octo/hello", "ann", fakegithub.PullRequest{Title: "Fix", Head: "pawl/issue-1"})
	if err != nil {
		t.Fatal(err)
	}
	for range 130 {
		if _, err := h.Comment("octo/hello", number, "ann", "more"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.ReviewComment(t.Context(), "octo/hello", number, "ann", "a.txt", 1, "why?"); err != nil {
		t.Fatal(err)
	}
	pull, err := c.Issues.Get(t.Context(), h.repo, number)
	if err != nil || !pull.IsPull() {
		t.Fatalf("%+v, %v", pull, err)
	}
	since, later := pull.Updated.Add(-time.Hour), pull.Updated.Add(time.Hour)
	if list, more, err := c.Issues.ChangedSince(t.Context(), h.repo, since); len(list) != 2 || more || err != nil {
		t.Errorf("changed: %+v, %v, %v; want the issue and the pull request", list, more, err)
	}
	if list, _, err := c.Issues.ChangedSince(t.Context(), h.repo, later); len(list) != 0 || err != nil {
		t.Errorf("changed later: %+v, %v", list, err)
	}
	if list, err := c.Issues.CommentsSince(t.Context(), h.repo, number, since); len(list) != 130 || err != nil {
		t.Errorf("%d comments, %v; want 130", len(list), err)
	}
	if list, err := c.Issues.CommentsSince(t.Context(), h.repo, number, later); len(list) != 0 || err != nil {
		t.Errorf("%d comments later, %v; want none", len(list), err)
	}
	if list, err := c.PullRequests.Reviews(t.Context(), h.repo, number); len(list) != 1 || err != nil || list[0].State != "COMMENTED" || list[0].SHA != sha {
		t.Errorf("reviews: %+v, %v", list, err)
	}
	if list, err := c.PullRequests.CommentsSince(t.Context(), h.repo, number, since); len(list) != 1 || err != nil || list[0].Path != "a.txt" || list[0].Line != 1 || list[0].Body != "why?" {
		t.Errorf("remarks: %+v, %v", list, err)
	}
	if list, err := c.PullRequests.OfCommit(t.Context(), h.repo, sha); len(list) != 1 || err != nil || list[0].Number != number {
		t.Errorf("pull requests of %s: %+v, %v", sha, list, err)
	}
	for _, odd := range []string{"", "main", "../../issues", "abc", sha + "/x"} {
		if _, err := c.PullRequests.OfCommit(t.Context(), h.repo, odd); err == nil {
			t.Errorf("commit %q was requested", odd)
		}
	}
}
