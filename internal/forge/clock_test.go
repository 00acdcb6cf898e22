package forge

import (
	"net/http"
	"testing"
	"time"
)

func TestClockReadsTheOffsetFromGitHubsDate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		header map[string]string
		ahead  time.Duration // how far this node's clock is ahead of GitHub's
		known  bool
	}{
		{name: "same time", known: true},
		{name: "this node is ahead", ahead: 2 * time.Minute, known: true},
		{name: "this node is behind", ahead: -2 * time.Minute, known: true},
		{name: "answer from a cache", header: map[string]string{"Age": "120"}},
		{name: "no date", header: map[string]string{"Date": "today"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, c := start(t)
			date := h.clock.Now().Add(-tt.ahead).Format(http.TimeFormat)
			f := message(http.StatusNotFound, "Not Found", "Date", date)
			for name, value := range tt.header {
				f.Header.Set(name, value)
			}
			h.fail(mintRoute, f)
			if offset, known := c.Clock.Offset(); known {
				t.Errorf("offset %s before the first answer", offset)
			}
			if _, err := c.Apps.Token(t.Context(), h.repo); err == nil {
				t.Fatal("a refused token came")
			}
			offset, known := c.Clock.Offset()
			if known != tt.known {
				t.Fatalf("offset known %t, want %t", known, tt.known)
			}
			if known && (offset-tt.ahead).Abs() > time.Second {
				t.Errorf("offset %s, want %s", offset, tt.ahead)
			}
			h.clock.move(clockMaxAge + time.Second)
			if offset, known = c.Clock.Offset(); known {
				t.Errorf("offset %s is still known after %s", offset, clockMaxAge)
			}
		})
	}
}

func TestClockReadsEachAnswer(t *testing.T) {
	h, c := start(t)
	for _, installation := range []bool{true, false} {
		h.clock.move(time.Hour)
		var err error
		if installation {
			_, err = c.Issues.Get(t.Context(), h.repo, 1)
		} else {
			_, err = c.Apps.Get(t.Context())
		}
		h.must(err)
		if offset, known := c.Clock.Offset(); !known || offset.Abs() > time.Second {
			t.Errorf("offset %s, known %t, want none", offset, known)
		}
	}
}
