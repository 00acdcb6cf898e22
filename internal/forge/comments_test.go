package forge

import (
	"strings"
	"testing"
)

// person adds a comment that the App did not write.
func (h *hub) person(body string) {
	h.comments = append(h.comments, map[string]any{"id": len(h.comments) + 1, "body": body, "user": map[string]any{"id": 31, "login": "ann", "type": "User"}})
}

func TestACommentIsFoundOnAnyPage(t *testing.T) {
	h, c := start(t)
	for range 150 {
		h.person("noise")
	}
	made, err := c.CreateComment(t.Context(), testRepo, 3, "status", "<!-- pawl:status -->")
	if err != nil {
		t.Fatal(err)
	}
	for range 150 {
		h.person("more noise")
	}
	found, ok, err := c.FindComment(t.Context(), testRepo, 3, "<!-- pawl:status -->", 0)
	if err != nil || !ok || found.ID != made.ID || found.App.ID != testApp {
		t.Errorf("%+v, %v, %v", found, ok, err)
	}
	if _, ok, err := c.FindComment(t.Context(), testRepo, 3, "<!-- pawl:other -->", 0); ok || err != nil {
		t.Errorf("found what is not there: %v, %v", ok, err)
	}
}

func TestACopiedMarkerIsNotPawlsComment(t *testing.T) {
	h, c := start(t)
	h.person("> quoted <!-- pawl:status -->")
	if _, ok, err := c.FindComment(t.Context(), testRepo, 3, "<!-- pawl:status -->", 0); ok || err != nil {
		t.Errorf("a quoting reply was taken for the status comment: %v, %v", ok, err)
	}
	h.fail(commentRoute, abortBefore)
	made, err := c.CreateComment(t.Context(), testRepo, 3, "status", "<!-- pawl:status -->")
	if err != nil || made.ID != 2 || len(h.comments) != 2 {
		t.Errorf("%+v, %v; %d comments", made, err, len(h.comments))
	}
	found, ok, err := c.FindComment(t.Context(), testRepo, 3, "<!-- pawl:status -->", 31)
	if err != nil || !ok || found.ID != 1 {
		t.Errorf("by author: %+v, %v, %v", found, ok, err)
	}
}

func TestABotsCommentWithoutItsAppIsKnownByTheBotsID(t *testing.T) {
	h, c := start(t)
	h.comments = []map[string]any{
		{"id": 1, "body": "m", "user": map[string]any{"id": 901, "login": "other[bot]", "type": "Bot"}},
		{"id": 2, "body": "m", "user": map[string]any{"id": 900, "login": "pawl[bot]", "type": "Bot"}},
	}
	found, ok, err := c.FindComment(t.Context(), testRepo, 3, "m", 0)
	if err != nil || !ok || found.ID != 2 {
		t.Errorf("%+v, %v, %v", found, ok, err)
	}
}

func TestALongBodyIsCutAndKeepsItsMarker(t *testing.T) {
	h, c := start(t)
	body := strings.Repeat("a line of text\n", 10_000)
	if _, err := c.CreateComment(t.Context(), testRepo, 3, body, "<!-- m -->"); err != nil {
		t.Fatal(err)
	}
	sent := h.comments[0]["body"].(string)
	if len(sent) > MaxText || !strings.HasSuffix(sent, "\n\n<!-- m -->") || !strings.Contains(sent, "more bytes were cut") {
		t.Errorf("%d bytes ending in %q", len(sent), sent[len(sent)-80:])
	}
	if _, err := c.CreateComment(t.Context(), testRepo, 3, "no marker", ""); err == nil {
		t.Error("a comment without a marker was accepted")
	}
}

func TestAnAbsurdNumberOfPagesIsNotRead(t *testing.T) {
	h, c := start(t)
	empty := status(200, "[]", "Link", `<https://api.example/x?page=1000000>; rel="last"`)
	for range 200 {
		h.fail("GET /repos/octo/hello/issues/3/comments", empty)
	}
	if _, _, err := c.FindComment(t.Context(), testRepo, 3, "m", 0); err != nil {
		t.Fatal(err)
	}
	if n := len(h.calls("GET /repos/octo/hello/issues/3/comments")); n > maxPages {
		t.Errorf("%d pages were read", n)
	}
}
