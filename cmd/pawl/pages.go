package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// handle puts together what is served: the webhook endpoint, and on a listener of their own pages, health and metrics.
func (n *node) handle(ctx context.Context, hook http.Handler) error {
	access, err := n.access(ctx)
	if err != nil {
		return err
	}
	counters := web.NewCounters()
	n.solver.OnAttempt, n.solver.OnReceipt, n.solver.OnDecision = counters.Attempt, counters.Receipt, counters.Decision
	n.solver.OnTakeOver = counters.TakeOver
	o := web.Options{
		Hook: hook, Store: n.store, View: n.solver.View, GitHub: n.forge.Metrics(),
		Details: []web.Detail{
			detail("data_dir", n.writable), detail("queue", n.flowing), detail("deliveries", n.noneGivenUp),
			{Name: "github", Run: func(context.Context) (bool, string) { return n.github.state() }},
			{Name: "clock", Run: func(context.Context) (bool, string) { return n.agreed() }},
		},
		Learning: n.solver.LearningReport, Skew: n.store.Skew, Layers: n.solver.Layers.Held, Images: n.solver.Images.Held,
		Counters: counters, Build: buildInfo(),
		WebURL: n.cfg.GitHub.WebURL, Limits: func() policy.Limits { return n.solver.Current().Policy.Limits }, Access: access, Proxies: n.cfg.HTTP.Proxies, Transcript: n.solver.OpenTranscript, Stopping: n.solver.Stopping, Now: n.solver.Now, Log: n.log,
	}
	if n.cfg.HTTP.HooksFrom == config.HooksFromGitHub {
		if err := n.loadHookRanges(ctx); err != nil {
			return err
		}
		o.HookRanges = n.knownHookRanges
	}
	pages, err := web.Pages(o)
	if err != nil {
		return err
	}
	good := func(from netip.Addr) bool {
		network := netip.PrefixFrom(from, from.BitLen())
		if from.Is6() {
			network = netip.PrefixFrom(from, 64) // what web counts as one
		}
		return n.trusts != nil && n.trusts(from) || slices.ContainsFunc(n.cfg.HTTP.Proxies, network.Overlaps)
	}
	n.http, n.pagesHTTP = web.Server(web.Public(o), good), web.Server(pages, nil)
	changed := n.http.ConnState
	n.http.ConnState = func(conn net.Conn, state http.ConnState) {
		changed(conn, state)
		if state == http.StateIdle { // an answer has left
			crash.Point("answered")
		}
	}
	return nil
}

func detail(name string, run func(ctx context.Context) error) web.Detail {
	return web.Detail{Name: name, Run: func(ctx context.Context) (bool, string) {
		if err := run(ctx); err != nil {
			return false, err.Error()
		}
		return true, ""
	}}
}

// What may wait, and for how long, before the queue counts as stuck: several times what a full sweep after a
// crash takes. A delivery is tried within seconds, for two minutes at most; a step begins within seconds where
// there is room.
const (
	maxDeliveryAge = 15 * time.Minute
	maxQueueAge    = 5 * time.Minute
)

// flowing reports whether no delivery lies untouched, and no thread waits for a step while there is room. Both
// are of all servers on the database; where fewer steps run on all than this one has places, there is room.
func (n *node) flowing(ctx context.Context) error {
	s, err := n.store.Stats(ctx)
	if err != nil {
		return err
	}
	switch {
	case s.DeliveryAge > maxDeliveryAge:
		return fmt.Errorf("a delivery was stored %s ago and nobody has handled it", s.DeliveryAge.Round(time.Second))
	case s.QueueAge > maxQueueAge && s.Running < n.cfg.Workers+quickSteps:
		return fmt.Errorf("a thread has waited %s for a step, although only %d run", s.QueueAge.Round(time.Second), s.Running)
	}
	return nil
}

// noneGivenUp reports whether every delivery was handled or is still tried.
func (n *node) noneGivenUp(ctx context.Context) error {
	s, err := n.store.Stats(ctx)
	if given := s.Deliveries[thread.GivenUp]; err == nil && given > 0 {
		return fmt.Errorf("%d could not be handled and are tried no more; pawl status lists them, pawl deliveries decides on them", given)
	}
	return err
}

// maxSkew is where a clock's error matters: GitHub takes tokens that are dated at most a minute ahead.
const maxSkew = time.Minute

// agreed reports whether this machine's clock is the database's, which judges leases, so no thread is harmed.
func (n *node) agreed() (ok bool, detail string) {
	skew := n.store.Skew()
	if skew == 0 {
		return true, "agrees with the database's"
	}
	return skew.Abs() < maxSkew, fmt.Sprintf("the database's clock is ahead by %s", skew.Round(time.Second))
}

// writable reports whether attempts can be kept; webhooks can still be stored where not.
func (n *node) writable(context.Context) error {
	f, err := os.CreateTemp(n.cfg.DataDir, ".ready-*")
	if err != nil {
		return fmt.Errorf("data_dir is not writable: %w", err)
	}
	_, err = f.WriteString("ready\n")
	if err = errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("data_dir is not writable: %w", err)
	}
	return nil
}

// forgeConfig is how GitHub is reached as the App.
func forgeConfig(c config.GitHub, key config.Secret, transport http.RoundTripper, now func() time.Time, log zerolog.Logger) forge.Config {
	return forge.Config{
		WebURL: c.WebURL, APIURL: c.V3APIURL, GraphURL: c.V4APIURL, AppID: c.App.IntegrationID, PrivateKey: []byte(key.Reveal()),
		UserAgent: "pawl/" + buildInfo().Version, Now: now, Log: log, Transport: transport,
	}
}

// githubHealth sends the requests to GitHub, and remembers whether it answers, neither with a failure nor
// refusing the App. The look for missed deliveries uses it every few minutes, so it is never old.
type githubHealth struct {
	transport http.RoundTripper
	now       func() time.Time

	mu               sync.Mutex
	answered, failed time.Time // the last answer, and the last request without a good one
	failure          error     // of the latter
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

// refusal is what a status says of the server or of the App's credentials, and of
// nothing that was asked for; nil for any other.
func refusal(q *http.Request, status int) error {
	path := q.URL.Path
	named := strings.Contains(path, "/repos/") || strings.Contains(path, "/users/") // by people, who may call anything "app"
	self := strings.HasSuffix(path, "/app")
	switch {
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("it answers %d %s", status, http.StatusText(status))
	case named:
	case status == http.StatusUnauthorized && (self || strings.Contains(path, "/app/")), status == http.StatusNotFound && self:
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

// hookRangesInterval is how often GitHub is asked where it sends webhooks from; it changes a few times a year.
const hookRangesInterval = time.Hour

const hookRangesKey = "hook ranges"

// knownHookRanges are the addresses that GitHub sends webhooks from, as it said last, also before the last start.
func (n *node) knownHookRanges() []netip.Prefix {
	if all := n.hookRanges.Load(); all != nil {
		return *all
	}
	return nil
}

// loadHookRanges reads what was kept.
func (n *node) loadHookRanges(ctx context.Context) error {
	old, err := n.store.ReadShared(ctx, hookRangesKey)
	var kept []netip.Prefix
	if json.Unmarshal(old, &kept) == nil { // else they are asked for anew
		n.hookRanges.Store(&kept)
	}
	return err
}

// watchHookRanges asks GitHub until ctx ends. While it does not answer, what it said last holds.
func (n *node) watchHookRanges(ctx context.Context) {
	for {
		all, err := forge.HookRanges(ctx, n.forge)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			n.log.Warn().Err(err).Int("known", len(n.knownHookRanges())).Msg("where GitHub sends webhooks from was not learned; what it said before holds, and without that all addresses")
		default:
			kept, _ := json.Marshal(all) // prefixes, which can always be written
			if err := n.store.UpdateShared(ctx, hookRangesKey, func(time.Time, []byte) []byte { return kept }); err != nil && ctx.Err() == nil {
				n.log.Warn().Err(err).Msg("where GitHub sends webhooks from was not kept")
			}
			n.hookRanges.Store(&all) // after it is kept: what holds once holds after a restart
		}
		if wait.For(ctx, hookRangesInterval) != nil {
			return
		}
	}
}
