package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
)

const (
	// every is the time between two checks.
	every = time.Minute
	// sendTime limits one message.
	sendTime  = 20 * time.Second
	sharedKey = "notify"
)

// Watch checks the alerts every minute and sends new ones. All fields are required.
type Watch struct {
	URL func() string // receives {"text": "…"} by POST, as for Slack, Mattermost and Discord's /slack; empty turns Watch off
	// Health reads the current state.
	Health func(context.Context) (Health, error)
	// UpdateShared changes shared state atomically, like the store's.
	UpdateShared func(ctx context.Context, key string, f func(now time.Time, old []byte) (next []byte)) error
	Client       *http.Client
	Log          zerolog.Logger
}

// Client returns a client with this transport that follows no redirects.
func Client(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Attempt counts a finished attempt by its outcome.
func (w *Watch) Attempt(ctx context.Context, o policy.Outcome) {
	if w.URL() == "" {
		return
	}
	err := w.update(ctx, func(now time.Time, t *reported) bool {
		t.attempt(o, now)
		return true
	})
	if err != nil && ctx.Err() == nil {
		w.Log.Warn().Err(err).Msg("count an attempt for the alert about a day without success")
	}
}

// Run checks until ctx ends. It logs errors and continues.
func (w *Watch) Run(ctx context.Context) {
	for {
		if err := w.turn(ctx); err != nil && ctx.Err() == nil {
			w.Log.Warn().Err(err).Msg("notify the operator; retrying in a minute")
		}
		if wait.For(ctx, every) != nil {
			return
		}
	}
}

// turn sends what changed since the last check by any node. After a failure to send, the next turn sends it again.
func (w *Watch) turn(ctx context.Context) error {
	if w.URL() == "" {
		return nil
	}
	health, err := w.Health(ctx)
	if err != nil {
		return err
	}
	var lines []string
	var before map[string]time.Time
	err = w.update(ctx, func(now time.Time, t *reported) bool {
		lines = nil // the function may run more than once
		if now.Sub(t.Looked).Abs() < every/2 {
			return false // another node has just checked
		}
		before, t.Looked = t.At, now
		lines = t.news(health.alerts(now, *t), now)
		return true
	})
	if err != nil || len(lines) == 0 {
		return err
	}
	if err = w.send(ctx, lines); err != nil {
		return errors.Join(err, w.update(context.WithoutCancel(ctx), func(_ time.Time, t *reported) bool {
			t.At = before
			return true
		}))
	}
	return nil
}

func (w *Watch) update(ctx context.Context, f func(now time.Time, t *reported) (changed bool)) error {
	return w.UpdateShared(ctx, sharedKey, func(now time.Time, old []byte) []byte {
		var t reported
		if len(old) > 0 && json.Unmarshal(old, &t) != nil {
			t = reported{} // written by another version
		}
		if !f(now, &t) {
			return nil
		}
		next, _ := json.Marshal(t) // never fails
		return next
	})
}

// send posts a message. Errors never repeat the URL, which is a secret.
func (w *Watch) send(ctx context.Context, lines []string) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	body, err := json.Marshal(map[string]string{"text": "Pawl: " + strings.Join(lines, "\nPawl: ")})
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL(), bytes.NewReader(body))
	if err != nil {
		return errors.New("notify.url is not an address")
	}
	q.Header.Set("Content-Type", "application/json")
	answer, err := w.Client.Do(q)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if err != nil {
		return fmt.Errorf("notify.url: %w", err)
	}
	defer answer.Body.Close()
	reply, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("notify.url answers %s: %s", answer.Status, render.Line(string(reply), 200))
	}
	return nil
}
