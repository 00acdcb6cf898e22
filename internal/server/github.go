package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/internal/web"
)

// GitHub returns the App's client configuration. The caller adds clock, log and transport.
func GitHub(c config.GitHub, key config.Secret, build web.Build) forge.Config {
	return forge.Config{
		WebURL:     c.WebURL,
		APIURL:     c.V3APIURL,
		GraphURL:   c.V4APIURL,
		AppID:      c.App.IntegrationID,
		PrivateKey: []byte(key.Reveal()),
		UserAgent:  userAgent(build),
	}
}

func userAgent(build web.Build) string { return "pawl/" + build.Version }

// githubHealth sends requests and records whether GitHub answers and accepts the App. The regular search for missed
// deliveries keeps the record current.
type githubHealth struct {
	transport http.RoundTripper
	now       func() time.Time

	mu               sync.Mutex
	answered, failed time.Time // times of the last good response and the last failure
	failure          error     // the last failure's error
}

func (h *githubHealth) RoundTrip(q *http.Request) (*http.Response, error) {
	answer, err := h.transport.RoundTrip(q)
	h.mu.Lock()
	defer h.mu.Unlock()
	failure := err
	if err == nil {
		failure = refusal(q, answer.StatusCode)
	}
	switch {
	case failure == nil:
		h.answered = h.now()
	case !errors.Is(err, context.Canceled):
		h.failed, h.failure = h.now(), failure
	}
	return answer, err
}

// refusal returns an error for a status that concerns the server or the App, but not the request.
func refusal(q *http.Request, status int) error {
	path := q.URL.Path
	named := strings.Contains(path, "/repos/") || strings.Contains(path, "/users/") // names may contain "app"
	self := strings.HasSuffix(path, "/app")
	asApp := self || strings.Contains(path, "/app/")
	switch {
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("it answers %d %s", status, http.StatusText(status))
	case named:
	case status == http.StatusUnauthorized && asApp, status == http.StatusNotFound && self:
		return fmt.Errorf("it refuses the App's credentials (%d)", status)
	}
	return nil
}

func (h *githubHealth) state() (ok bool, detail string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ago := func(t time.Time) string { return h.now().Sub(t).Round(time.Second).String() }
	switch {
	case h.answered.IsZero() && h.failed.IsZero():
		return true, "not asked yet"
	case h.answered.Before(h.failed):
		return false, fmt.Sprintf("no good answer %s ago: %v", ago(h.failed), h.failure)
	}
	return true, fmt.Sprintf("answered %s ago", ago(h.answered))
}

// hookRangesInterval is how often Pawl reads GitHub's webhook addresses, which change a few times a year.
const hookRangesInterval = time.Hour

const hookRangesKey = "hook ranges"

// knownHookRanges returns the last known webhook addresses.
func (s *Server) knownHookRanges() []netip.Prefix {
	if all := s.hookRanges.Load(); all != nil {
		return *all
	}
	return nil
}

func (s *Server) loadHookRanges(ctx context.Context) error {
	old, err := s.store.ReadShared(ctx, hookRangesKey)
	var kept []netip.Prefix
	if json.Unmarshal(old, &kept) == nil { // otherwise Pawl fetches the addresses again
		s.hookRanges.Store(&kept)
	}
	return err
}

// watchHookRanges updates the addresses until ctx ends.
func (s *Server) watchHookRanges(ctx context.Context) {
	for {
		all, err := s.forge.Apps.HookRanges(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Warn().Err(err).Int("known", len(s.knownHookRanges())).Msg("fetch GitHub's webhook addresses; the last known ones stay valid, and without them every address is accepted")
		default:
			kept, _ := json.Marshal(all) // never fails
			if err := s.store.UpdateShared(ctx, hookRangesKey, func(time.Time, []byte) []byte { return kept }); err != nil && ctx.Err() == nil {
				s.log.Warn().Err(err).Msg("store GitHub's webhook addresses")
			}
			s.hookRanges.Store(&all) // stored first, so that a restart knows the addresses
		}
		if wait.For(ctx, hookRangesInterval) != nil {
			return
		}
	}
}
