package handlers

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/solver/thread"
)

const nextSecret = "the secret that comes next"

func signedWith(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func signed(body string) string { return signedWith(vectorSecret, body) }

func TestBothSecretsAreAcceptedDuringAChange(t *testing.T) {
	for name, tc := range map[string]struct {
		secrets   []string
		signature string
		status    int
	}{
		"the new one":              {[]string{nextSecret, vectorSecret}, signedWith(nextSecret, vectorBody), 200},
		"the previous one":         {[]string{nextSecret, vectorSecret}, vectorSignature, 200},
		"a third one":              {[]string{nextSecret, vectorSecret}, signedWith("a third secret of some length", vectorBody), 401},
		"no hexadecimal":           {[]string{nextSecret, vectorSecret}, "sha256=x", 401},
		"the previous one, later":  {[]string{nextSecret}, vectorSignature, 401},
		"by an empty secret":       {[]string{nextSecret, vectorSecret}, signedWith("", vectorBody), 401},
		"half of a valid one":      {[]string{nextSecret, vectorSecret}, vectorSignature[:40], 401},
		"the new one, other bytes": {[]string{nextSecret, vectorSecret}, signedWith(nextSecret, "x"), 401},
	} {
		t.Run(name, func(t *testing.T) {
			var store memoryStore
			w := newIngress(t, &store, tc.secrets...).post(t, strings.NewReader(vectorBody), map[string]string{"X-Hub-Signature-256": tc.signature})
			stored := len(store.list) == 1 && string(store.list[0].Payload) == vectorBody
			if w.Code != tc.status || stored != (tc.status == 200) {
				t.Errorf("status %d and %v stored, want status %d", w.Code, store.list, tc.status)
			}
		})
	}
}

func TestWeakSecretsAreRefused(t *testing.T) {
	for _, tc := range []struct {
		secrets []string
		named   string
	}{
		{nil, "webhook_secret"},
		{[]string{""}, "webhook_secret"},
		{[]string{vectorSecret, ""}, "previous_webhook_secret"},
		{[]string{"short", vectorSecret}, "webhook_secret"},
		{[]string{vectorSecret, nextSecret, nextSecret}, "one previous one"},
	} {
		if _, err := NewIngress(tc.secrets, new(Handlers).EventHandlers(), &memoryStore{}, time.Now, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), tc.named) {
			t.Errorf("%q: %v, want an error that names %s", tc.secrets, err, tc.named)
		}
	}
}

func TestSlowBodyIsCutOff(t *testing.T) {
	for _, secrets := range [][]string{{vectorSecret}, {nextSecret, vectorSecret}} {
		srv := httptest.NewUnstartedServer(newIngress(t, new(memoryStore), secrets...))
		srv.Config.ReadTimeout = 50 * time.Millisecond
		srv.Start()
		body, end := io.Pipe()
		answer := make(chan int, 1)
		go func() { answer <- post(t, srv.Client(), srv.URL, body, 10<<20) }()
		_, _ = end.Write([]byte("{")) // fails if a busy machine has cut it off already
		// No more bytes are sent; the server must answer anyway.
		if got := <-answer; got != http.StatusRequestTimeout {
			t.Errorf("status %d, want 408", got)
		}
		end.Close()
		srv.Close()
	}
}

func TestInterruptedDeliveryIsNoError(t *testing.T) {
	w := newRig(t)
	issue := w.Issue("Please.")
	w.Must(w.comments(issue.Number, "ada", "/pawl retry")())
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	var log bytes.Buffer
	w.h.Log = zerolog.New(&log)
	ctx, stop := context.WithCancel(t.Context())
	stopping := &stopsWhenRead{Store: w.Store, stop: stop}
	w.h.Store = stopping
	if err := w.h.Deliver(ctx, w.newest()); err == nil {
		t.Fatal("the delivery was handled while the server stopped")
	}
	if text := log.String(); strings.Contains(text, `"level":"error"`) || !strings.Contains(text, "before the server stops") {
		t.Errorf("the log has %s, want the interruption and no error", text)
	}
	w.h.Store = w.Store
	w.Handle()
	if got := w.Judged(issue); len(got) != 2 {
		t.Errorf("judged %q, want the retry after the next start", got)
	}
}

// stopsWhenRead stops the server while a delivery is being read.
type stopsWhenRead struct {
	Store
	stop context.CancelFunc
}

func (s *stopsWhenRead) Events(ctx context.Context, t thread.ID, after int64) ([]thread.Event, error) {
	s.stop()
	return s.Store.Events(ctx, t, after)
}
