package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
	"github.com/palantir/go-githubapp/githubapp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/solver/thread"
)

// MaxPayload is GitHub's size limit for a webhook payload, 25 MiB.
const MaxPayload = 25 << 20

// MinSecret is the shortest accepted webhook secret, in bytes.
const MinSecret = 16

// Deliveries stores webhook requests. Receive returns after the commit; fresh is false for a known GUID.
type Deliveries interface {
	Receive(ctx context.Context, d thread.Delivery) (fresh bool, err error)
}

// Ingress is the webhook endpoint. It answers 2xx only after the delivery is stored, and never waits for GitHub or an
// agent.
type Ingress struct {
	secrets  []string
	hooks    []http.Handler  // go-githubapp's dispatchers, one per secret
	known    map[string]bool // events with a handler
	store    Deliveries
	now      func() time.Time
	log      zerolog.Logger
	refusals zerolog.Logger // sampled: strangers' requests could fill the log
}

// NewIngress takes the webhook secret and, during a rotation, the previous one. It refuses short secrets: with an empty
// one, go-githubapp would accept unsigned requests.
func NewIngress(secrets []string, handlers []githubapp.EventHandler, store Deliveries, now func() time.Time, log zerolog.Logger) (*Ingress, error) {
	names := []string{"webhook_secret", "previous_webhook_secret"}
	if len(secrets) == 0 || len(secrets) > len(names) {
		return nil, fmt.Errorf("%d webhook secrets; want github.app.webhook_secret and at most one previous one", len(secrets))
	}
	for i, secret := range secrets {
		if len(secret) < MinSecret {
			return nil, fmt.Errorf("github.app.%s has %d bytes; at least %d are needed (openssl rand -hex 32 makes one)", names[i], len(secret), MinSecret)
		}
	}
	in := &Ingress{
		secrets:  secrets,
		known:    map[string]bool{},
		store:    store,
		now:      now,
		log:      log,
		refusals: log.Sample(&zerolog.BurstSampler{Burst: 20, Period: time.Minute}),
	}
	for _, secret := range secrets {
		in.hooks = append(in.hooks, in.dispatcher(secret, handlers...))
	}
	for _, h := range handlers {
		for _, event := range h.Handles() {
			in.known[event] = true
		}
	}
	return in, nil
}

// dispatcher passes requests that are signed with a secret to Schedule.
func (in *Ingress) dispatcher(secret string, handlers ...githubapp.EventHandler) http.Handler {
	return githubapp.NewEventDispatcher(handlers, secret, githubapp.WithScheduler(in), githubapp.WithErrorCallback(in.refuse))
}

var (
	guidForm  = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
	eventForm = regexp.MustCompile(`^[a-z_]{1,64}$`)
)

func ValidGUID(guid string) bool { return guidForm.MatchString(guid) }

// ServeHTTP checks method, GUID, size and SHA-256; go-githubapp checks the signature and dispatches.
func (in *Ingress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "webhooks are sent with POST", http.StatusMethodNotAllowed)
		return
	}
	event := r.Header.Get("X-GitHub-Event")
	switch {
	case !ValidGUID(r.Header.Get("X-GitHub-Delivery")):
		http.Error(w, "X-GitHub-Delivery must hold the delivery's GUID", http.StatusBadRequest)
		return
	case !eventForm.MatchString(event):
		http.Error(w, "X-GitHub-Event must name the event", http.StatusBadRequest)
		return
	// go-github chooses the hash by this prefix, and would also accept SHA-1.
	case !strings.HasPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256="):
		about(in.refusals, r).Warn().Str("hint", secretHint).Msg("webhook refused: it is not signed")
		http.Error(w, "X-Hub-Signature-256 must hold a SHA-256 signature; set the App's webhook secret at GitHub", http.StatusUnauthorized)
		return
	case r.ContentLength > MaxPayload:
		http.Error(w, "the payload is larger than 25 MiB", http.StatusRequestEntityTooLarge)
		return
	}
	// go-github would fall back to SHA-1.
	r.Header.Del("X-Hub-Signature")
	r.Body = http.MaxBytesReader(w, r.Body, MaxPayload)
	signed, err := in.signedBy(r)
	if err != nil {
		in.refuse(w, r, githubapp.ValidationError{Cause: err})
		return
	}
	hook := in.hooks[signed]
	if !in.known[event] {
		// A dispatcher drops events without a handler. Events unknown to go-github are stored unread.
		hook = in.dispatcher(in.secrets[signed], unknownEvent(event))
	}
	hook.ServeHTTP(w, r)
}

// signedBy returns the index of the secret that signed a request. If none did, it returns 0, and the dispatcher refuses
// the request.
func (in *Ingress) signedBy(r *http.Request) (int, error) {
	if len(in.secrets) == 1 {
		return 0, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	signature := r.Header.Get("X-Hub-Signature-256")
	signed := func(secret string) bool { return github.ValidateSignature(signature, body, []byte(secret)) == nil }
	return max(0, slices.IndexFunc(in.secrets, signed)), nil
}

// Schedule implements githubapp.Scheduler and stores the delivery.
func (in *Ingress) Schedule(ctx context.Context, d githubapp.Dispatch) error {
	crash.Point("received")
	fresh, err := in.store.Receive(ctx, thread.Delivery{
		GUID: d.DeliveryID, Event: d.EventType, Payload: d.Payload, ReceivedAt: in.now(), State: thread.Received,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	crash.Point("stored")
	in.log.Debug().Str("delivery", d.DeliveryID).Str("event", d.EventType).Bool("fresh", fresh).Msg("delivery stored")
	return nil
}

var errStore = errors.New("store delivery")

// secretHint is an operator's hint for refused webhooks.
const secretHint = "if GitHub sent it (the App's settings list it under Advanced), write one secret there under Webhook " +
	"and as github.app.webhook_secret, and restart Pawl; else a stranger sent it, and there is nothing to do"

func about(log zerolog.Logger, r *http.Request) *zerolog.Logger {
	named := log.With().
		Str("delivery", r.Header.Get("X-GitHub-Delivery")).
		Str("event", r.Header.Get("X-GitHub-Event")).
		Logger()
	return &named
}

func (in *Ingress) refuse(w http.ResponseWriter, r *http.Request, err error) {
	invalid, _ := errors.AsType[githubapp.ValidationError](err) // ValidationError does not unwrap
	log, refusals := about(in.log, r), about(in.refusals, r)
	_, tooLarge := errors.AsType[*http.MaxBytesError](invalid.Cause)
	switch {
	case tooLarge:
		refusals.Warn().Msg("webhook refused: larger than 25 MiB")
		http.Error(w, "the payload is larger than 25 MiB", http.StatusRequestEntityTooLarge)
	case errors.Is(invalid.Cause, os.ErrDeadlineExceeded):
		refusals.Warn().Msg("webhook refused: its body took too long to arrive")
		w.Header().Set("Connection", "close")
		http.Error(w, "the body took too long to arrive; redeliver it", http.StatusRequestTimeout)
	case invalid.Cause != nil:
		refusals.Warn().Err(invalid.Cause).Str("hint", secretHint).
			Msg("webhook refused: it is not signed with github.app.webhook_secret, or cannot be read")
		http.Error(w, "the signature or the payload is not valid; is the webhook secret the same at GitHub?", http.StatusUnauthorized)
	case errors.Is(err, errStore):
		log.Error().Err(err).Msg("webhook not stored; GitHub keeps it for redelivery for 3 days")
		http.Error(w, "the delivery could not be stored; redeliver it later", http.StatusServiceUnavailable)
	default:
		log.Error().Err(err).Msg("webhook failed")
		http.Error(w, "the delivery could not be accepted; redeliver it later", http.StatusServiceUnavailable)
	}
}

// unknownEvent handles an event that this version does not know: its payload is kept for a newer version.
type unknownEvent string

func (e unknownEvent) Handles() []string { return []string{string(e)} }

func (e unknownEvent) Handle(context.Context, string, string, []byte) error {
	return fmt.Errorf("%w: unknown event %q", errUnparsable, string(e))
}
