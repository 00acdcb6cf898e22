package handlers

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/palantir/go-githubapp/githubapp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/solver"
)

// MaxPayload is GitHub's cap on a webhook payload, 25 MiB; a larger event is
// never sent, so a larger body is not GitHub's.
const MaxPayload = 25 << 20

// MinSecret is the shortest webhook secret that is accepted, in bytes.
const MinSecret = 16

// Deliveries stores webhook requests durably. Receive returns after the delivery
// is committed; fresh is false for a GUID that is already known.
type Deliveries interface {
	Receive(ctx context.Context, d solver.Delivery) (fresh bool, err error)
}

// Ingress is the webhook endpoint. It answers 2xx only after the delivery is
// durable, and never waits for GitHub or an agent.
type Ingress struct {
	secrets  []string
	store    Deliveries
	now      func() time.Time
	log      zerolog.Logger
	bodyTime time.Duration
	held     atomic.Int64 // bytes that have arrived of bodies that are not answered
}

// bodyTime is how long a body may take to arrive. GitHub gives a whole delivery
// 10 s (an Enterprise Server 30 s); who sends slower than that holds a part of
// maxHeld that others need, without having shown a signature.
const bodyTime = 15 * time.Second

// NewIngress takes the secret that GitHub signs with and, while it is being
// changed, the previous one after it. It refuses a secret that is too short to
// mean anything: go-githubapp would accept unsigned requests with an empty one.
func NewIngress(secrets []string, store Deliveries, now func() time.Time, log zerolog.Logger) (*Ingress, error) {
	names := []string{"webhook_secret", "previous_webhook_secret"}
	if len(secrets) == 0 || len(secrets) > len(names) {
		return nil, fmt.Errorf("%d webhook secrets; want github.app.webhook_secret and at most one previous one", len(secrets))
	}
	for i, secret := range secrets {
		if len(secret) < MinSecret {
			return nil, fmt.Errorf("github.app.%s has %d bytes; at least %d are needed (openssl rand -hex 32 makes one)", names[i], len(secret), MinSecret)
		}
	}
	return &Ingress{secrets: secrets, store: store, now: now, log: log, bodyTime: bodyTime}, nil
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
	// go-github falls back to SHA-1 when it is offered.
	r.Header.Del("X-Hub-Signature")
	counted := &countedBody{ReadCloser: http.MaxBytesReader(w, r.Body, MaxPayload), in: in}
	defer counted.giveBack()
	r.Body = in.hurried(w, counted)
	secret, err := in.secretFor(r)
	if err != nil {
		in.refuse(w, r, githubapp.ValidationError{Cause: err})
		return
	}
	// One dispatcher a request lets every event name through, also those that
	// go-github does not know yet: they are stored and marked.
	githubapp.NewEventDispatcher([]githubapp.EventHandler{anyEvent(event)}, secret,
		githubapp.WithScheduler(in), githubapp.WithErrorCallback(in.refuse)).ServeHTTP(w, r)
}

// secretFor returns the secret that a request is signed with, or the first one,
// against which the dispatcher then refuses it. With one secret only the
// dispatcher reads the body.
func (in *Ingress) secretFor(r *http.Request) (string, error) {
	if len(in.secrets) == 1 {
		return in.secrets[0], nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	signature, err := hex.DecodeString(strings.TrimPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256="))
	if err != nil {
		return in.secrets[0], nil
	}
	found := in.secrets[0]
	for _, secret := range in.secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		if hmac.Equal(mac.Sum(nil), signature) {
			found = secret
		}
	}
	return found, nil
}

// hurried is a body that must have arrived within bodyTime. Once it has, the
// server's own limit is all that holds, so that the store may take its time.
func (in *Ingress) hurried(w http.ResponseWriter, body io.ReadCloser) io.ReadCloser {
	control := http.NewResponseController(w)
	// The connection's deadlines go by the system's clock. A writer without
	// deadlines is no network connection.
	if err := control.SetReadDeadline(time.Now().Add(in.bodyTime)); err != nil {
		return body
	}
	return &hurriedBody{body, control}
}

type hurriedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *hurriedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		// For the next request on the connection the server sets a deadline of
		// its own. Where this fails the connection is gone.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Schedule implements githubapp.Scheduler: the delivery becomes durable here.
func (in *Ingress) Schedule(ctx context.Context, d githubapp.Dispatch) error {
	crash.Point("received")
	fresh, err := in.store.Receive(ctx, solver.Delivery{
		GUID: d.DeliveryID, Event: d.EventType, Payload: d.Payload, ReceivedAt: in.now(), State: solver.Received,
	})
	if err != nil {
		return &storeError{err}
	}
	crash.Point("stored")
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
	case errors.As(err, &invalid) && errors.Is(invalid.Cause, errTooMany):
		log.Warn().Msg("webhook refused: too many large ones at the same time")
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many payloads at the same time; redeliver it later", http.StatusServiceUnavailable)
	case errors.As(err, &invalid) && errors.Is(invalid.Cause, os.ErrDeadlineExceeded):
		log.Warn().Msg("webhook refused: its body took too long to arrive")
		w.Header().Set("Connection", "close")
		http.Error(w, "the body took too long to arrive; redeliver it", http.StatusRequestTimeout)
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
	return errors.New("events are handled after they are stored")
}
