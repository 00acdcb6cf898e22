package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/palantir/go-githubapp/githubapp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/solver"
)

// MaxPayload is GitHub's cap on a webhook payload, 25 MiB; a larger event is
// never sent, so a larger body is not GitHub's.
const MaxPayload = 25 << 20

// MinSecret is the shortest webhook secret that is accepted, in bytes.
const MinSecret = 16

// Deliveries stores webhook requests durably. Receive returns after the delivery
// and its job are committed; fresh is false for a GUID that is already known.
type Deliveries interface {
	Receive(ctx context.Context, d solver.Delivery) (fresh bool, err error)
}

// Ingress is the webhook endpoint. It answers 2xx only after the delivery is
// durable, and never waits for GitHub or an agent.
type Ingress struct {
	secret string
	store  Deliveries
	now    func() time.Time
	log    zerolog.Logger
	held   atomic.Int64 // bytes of bodies that are being read
}

// maxHeld bounds the bodies that are read at the same time, in bytes: a signature
// can be checked only when its body is there, and until then anybody may send.
const maxHeld = 64 << 20

// NewIngress refuses a secret that is too short to mean anything: go-githubapp
// would accept unsigned requests with an empty one.
func NewIngress(secret string, store Deliveries, now func() time.Time, log zerolog.Logger) (*Ingress, error) {
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("github.app.webhook_secret has %d bytes; at least %d are needed (openssl rand -hex 32 makes one)", len(secret), MinSecret)
	}
	return &Ingress{secret: secret, store: store, now: now, log: log}, nil
}

var (
	guidForm  = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
	eventForm = regexp.MustCompile(`^[a-z_]{1,64}$`)
)

// ServeHTTP checks what go-githubapp does not (method, GUID, size, SHA-256) and
// leaves the signature and the dispatch to it.
func (in *Ingress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "webhooks are sent with POST", http.StatusMethodNotAllowed)
		return
	}
	event := r.Header.Get("X-GitHub-Event")
	switch {
	case !guidForm.MatchString(r.Header.Get("X-GitHub-Delivery")):
		http.Error(w, "X-GitHub-Delivery must hold the delivery's GUID", http.StatusBadRequest)
		return
	case !eventForm.MatchString(event):
		http.Error(w, "X-GitHub-Event must name the event", http.StatusBadRequest)
		return
	// go-github goes by the prefix, and would take SHA-1 here as well.
	case !strings.HasPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256="):
		http.Error(w, "X-Hub-Signature-256 must hold a SHA-256 signature; set the App's webhook secret at GitHub", http.StatusUnauthorized)
		return
	case r.ContentLength > MaxPayload:
		http.Error(w, "the payload is larger than 25 MiB", http.StatusRequestEntityTooLarge)
		return
	}
	size := r.ContentLength
	if size < 0 {
		size = MaxPayload
	}
	defer in.held.Add(-size)
	if in.held.Add(size) > maxHeld {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many payloads at the same time; redeliver it later", http.StatusServiceUnavailable)
		return
	}
	// go-github falls back to SHA-1 when it is offered.
	r.Header.Del("X-Hub-Signature")
	r.Body = http.MaxBytesReader(w, r.Body, MaxPayload)
	// One dispatcher a request lets every event name through, also those that
	// go-github does not know yet: they are stored and marked.
	githubapp.NewEventDispatcher([]githubapp.EventHandler{anyEvent(event)}, in.secret,
		githubapp.WithScheduler(in), githubapp.WithErrorCallback(in.refuse)).ServeHTTP(w, r)
}

// Schedule implements githubapp.Scheduler: the delivery becomes durable here.
func (in *Ingress) Schedule(ctx context.Context, d githubapp.Dispatch) error {
	fresh, err := in.store.Receive(ctx, solver.Delivery{
		GUID: d.DeliveryID, Event: d.EventType, Payload: d.Payload, ReceivedAt: in.now(), State: solver.Received,
	})
	if err != nil {
		return &storeError{err}
	}
	in.log.Debug().Str("delivery", d.DeliveryID).Str("event", d.EventType).Bool("fresh", fresh).Msg("delivery stored")
	return nil
}

type storeError struct{ err error }

func (e *storeError) Error() string { return fmt.Sprintf("store delivery: %v", e.err) }
func (e *storeError) Unwrap() error { return e.err }

// refuse answers a request that was not stored.
func (in *Ingress) refuse(w http.ResponseWriter, r *http.Request, err error) {
	log := in.log.With().Str("delivery", r.Header.Get("X-GitHub-Delivery")).Str("event", r.Header.Get("X-GitHub-Event")).Logger()
	var tooLarge *http.MaxBytesError
	var store *storeError
	var invalid githubapp.ValidationError
	switch {
	// A ValidationError does not unwrap, so its cause is asked.
	case errors.As(err, &invalid) && errors.As(invalid.Cause, &tooLarge):
		log.Warn().Msg("webhook refused: larger than 25 MiB")
		http.Error(w, "the payload is larger than 25 MiB", http.StatusRequestEntityTooLarge)
	case errors.As(err, &invalid):
		log.Warn().Err(invalid.Cause).Msg("webhook refused")
		http.Error(w, "the signature or the payload is not valid; is the webhook secret the same at GitHub?", http.StatusUnauthorized)
	case errors.As(err, &store):
		log.Error().Err(err).Msg("webhook not stored; GitHub keeps it for redelivery for 3 days")
		http.Error(w, "the delivery could not be stored; redeliver it later", http.StatusServiceUnavailable)
	default:
		log.Error().Err(err).Msg("webhook failed")
		http.Error(w, "the delivery could not be taken; redeliver it later", http.StatusServiceUnavailable)
	}
}

// anyEvent is a go-githubapp handler for the one event that it names. The
// scheduler stores the event, so Handle is never reached.
type anyEvent string

func (a anyEvent) Handles() []string { return []string{string(a)} }

func (a anyEvent) Handle(context.Context, string, string, []byte) error {
	return errors.New("events are handled by the delivery job")
}
