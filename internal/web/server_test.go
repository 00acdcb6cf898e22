package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
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
