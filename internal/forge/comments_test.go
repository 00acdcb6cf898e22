package forge

import (
	"strings"
	"testing"
)

func TestACommentIsFoundOnAnyPage(t *testing.T) {
	h, c := start(t)
	for range 150 {
		h.comment("ann", "noise")
	}
	made, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "status", "<!-- pawl:status -->")
	if err != nil {
		t.Fatal(err)
	}
	for range 150 {
		h.comment("ann", "more noise")
	}
	found, ok, err := c.Issues.FindComment(t.Context(), h.repo, 1, "<!-- pawl:status -->")
	if err != nil || !ok || found.ID != made.ID || found.App.ID != testApp {
		t.Errorf("%+v, %v, %v", found, ok, err)
	}
	if _, ok, err := c.Issues.FindComment(t.Context(), h.repo, 1, "<!-- pawl:other -->"); ok || err != nil {
		t.Errorf("found a missing comment: %v, %v", ok, err)
	}
}

func TestACopiedMarkerIsNotPawlsComment(t *testing.T) {
	h, c := start(t)
	h.comment("ann", "> quoted <!-- pawl:status -->")
	if _, ok, err := c.Issues.FindComment(t.Context(), h.repo, 1, "<!-- pawl:status -->"); ok || err != nil {
		t.Errorf("a quoting reply was taken for the status comment: %v, %v", ok, err)
	}
	h.fail(commentRoute, abortBefore)
	made, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "status", "<!-- pawl:status -->")
	if err != nil || len(h.comments()) != 2 || made.ID != h.comments()[1].ID {
		t.Errorf("%+v, %v; %d comments", made, err, len(h.comments()))
	}
	found, ok, err := c.Issues.FindComment(t.Context(), h.repo, 1, "<!-- pawl:status -->")
	if err != nil || !ok || found.ID != made.ID {
		t.Errorf("%+v, %v, %v; want the App's own", found, ok, err)
	}
}

func TestBotCommentWithoutAppIsRecognizedByBotID(t *testing.T) {
	h, c := start(t)
	h.must(h.AddBot("other[bot]", 901))
	h.comment("other[bot]", "m")
	own := h.comment("pawl[bot]", "m")
	found, ok, err := c.Issues.FindComment(t.Context(), h.repo, 1, "m")
	if err != nil || !ok || found.ID != own {
		t.Errorf("%+v, %v, %v", found, ok, err)
	}
}

func TestALongBodyIsCutAndKeepsItsMarker(t *testing.T) {
	h, c := start(t)
	body := strings.Repeat("a line of text\n", 10_000)
	if _, err := c.Issues.CreateComment(t.Context(), h.repo, 1, body, "<!-- m -->"); err != nil {
		t.Fatal(err)
	}
	sent := h.comments()[0].Body
	if len(sent) > maxText || !strings.HasSuffix(sent, "\n\n<!-- m -->") || !strings.Contains(sent, "…") {
		t.Errorf("%d bytes ending in %q", len(sent), sent[len(sent)-80:])
	}
	if _, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "no marker", ""); err == nil {
		t.Error("a comment without a marker was accepted")
	}
}

func TestPagesAreLimited(t *testing.T) {
	h, c := start(t)
	empty := status(200, "[]", "Link", `<https://api.example/x?page=1000000>; rel="last"`)
	for range 200 {
		h.fail(listRoute, empty)
	}
	if _, _, err := c.Issues.FindComment(t.Context(), h.repo, 1, "m"); err != nil {
		t.Fatal(err)
	}
	if n := len(h.calls(listRoute)); n > maxPages {
		t.Errorf("%d pages were read", n)
	}
}
