package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSlowClientsCannotHoldConnectionsAndLargeWebhooksArrive(t *testing.T) {
	s := Server(http.NotFoundHandler())
	switch {
	case s.ReadHeaderTimeout <= 0, s.IdleTimeout <= 0, s.MaxHeaderBytes <= 0:
		t.Errorf("an unbounded server: %+v", s)
	case s.ReadTimeout < 30*time.Second:
		t.Errorf("a webhook of 25 MiB has only %s", s.ReadTimeout)
	case s.WriteTimeout <= s.ReadTimeout+pageTime:
		t.Errorf("an answer after a slow request has no time: %s", s.WriteTimeout)
	}
}

func TestCleanedTextIsShortAndVisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 50).Draw(t, "max")
		raw := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		for _, got := range []string{text(raw, most), line(raw, most)} {
			if !utf8.ValidString(got) || utf8.RuneCountInString(got) > most+1 {
				t.Fatalf("%q of at most %d", got, most)
			}
			for _, r := range got {
				if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == 0x202e {
					t.Fatalf("%q holds %U", got, r)
				}
			}
		}
	})
}

func TestOnlyWebAddressesBecomeLinks(t *testing.T) {
	for in, want := range map[string]string{
		"https://github.com/acme/widgets/pull/8": "https://github.com/acme/widgets/pull/8",
		"http://127.0.0.1:8080/x":                "http://127.0.0.1:8080/x",
		"javascript:alert(1)":                    "", "data:text/html,x": "", "//evil.example": "", "/x": "", "": "",
		"https://user:secret@github.com/": "", "https://": "", "https://x\n.y/": "", "HTTPS://github.com/x": "https://github.com/x",
	} {
		if got := webURL(in); got != want {
			t.Errorf("webURL(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestARequestWaitsInLineUntilThereIsRoomOrItsClientGoes(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	h := inLine(make(chan struct{}, 1), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-leave
	}))
	ask := func(ctx context.Context) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	}
	first, second := make(chan struct{}), make(chan struct{})
	go func() { ask(t.Context()); close(first) }()
	<-inside
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	ask(gone) // returns, although nobody leaves
	go func() { ask(t.Context()); close(second) }()
	leave <- struct{}{}
	<-first
	<-inside
	leave <- struct{}{}
	<-second
}
