package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// Handlers turns stored deliveries into events. All fields are required except
// AllowedBots and Trace.
type Handlers struct {
	Store       Store
	Forge       *forge.Client
	Solver      *solver.Solver
	AllowedBots []int64
	Now         func() time.Time
	Log         zerolog.Logger
	Trace       solver.Trace

	logs logs
}

// Store is the solver's, with the deliveries.
type Store interface {
	solver.Store
	Delivery(ctx context.Context, guid string) (solver.Delivery, error)
	FinishDelivery(ctx context.Context, guid string, state solver.DeliveryState, note string) error
	// PostponeDelivery notes a delivery that cannot be handled before a time.
	PostponeDelivery(ctx context.Context, guid, note string, until time.Time) error
	// ThreadsOf lists the threads about which something was decided of one
	// repository, or with an empty name of all those of the owner.
	ThreadsOf(ctx context.Context, owner, name string) ([]solver.Thread, error)
}

// happening is what one payload says, before anything was decided. Exactly one
// of remark and change is set; a happening without either is noted only.
type happening struct {
	repo   forge.Repo
	number int
	thread *solver.Thread // named directly, by a check run's external id
	commit string         // named by the commit that its pull request brought
	check  int64          // the id of a finished check run
	// once is the key under which it happens once, whoever brings it; empty for
	// what only a webhook can bring, and is told apart by its delivery.
	once   string
	remark *policy.Remark
	// anonymous says that the remark was edited and that it is not known by whom.
	anonymous bool
	change    *solver.Change
	everyone  bool    // the change concerns all threads of the repository, or of the owner where it has no name
	signal    *signal // the change is what somebody made of the work
	snapshot  solver.Snapshot
	target    solver.Target
	url       string
	madeAt    time.Time
	note      string // why there is nothing to judge
}

// UnparsableError means that a payload cannot be read; trying again is of no
// use.
type UnparsableError struct{ Err error }

func (e *UnparsableError) Error() string { return fmt.Sprintf("payload cannot be read: %v", e.Err) }
func (e *UnparsableError) Unwrap() error { return e.Err }

// noteTime bounds the noting of a failure: a database that hangs must hold up
// neither the next delivery nor a stopping server. The sweep finds what is not noted.
const noteTime = 5 * time.Second

// alone is how long after a delivery came no other node is given it.
const alone = 20 * time.Second

// Deliver handles one stored delivery, unless that was done already. Its row is
// read unless it has just come, with its payload.
func (h *Handlers) Deliver(ctx context.Context, d solver.Delivery) (err error) {
	if age := h.Now().Sub(d.ReceivedAt); d.Payload == nil || age < 0 || age > alone {
		if d, err = h.Store.Delivery(ctx, d.GUID); err != nil {
			return err
		}
		if d.State == solver.Handled || d.State == solver.Unparsable {
			return nil
		}
	}
	guid := d.GUID
	log := h.Log.With().Str("delivery", guid).Str("event", d.Event).Logger()
	crash.Point("delivery_claimed")
	ctx, end := h.Trace.Span(ctx, "delivery", solver.TraceDelivery, guid, solver.TraceEvent, d.Event)
	defer func() { end(err) }()
	note, err := h.Handle(ctx, d.Event, guid, d.Payload)
	crash.Point("delivery_appended")
	var unparsable *UnparsableError
	switch {
	case errors.As(err, &unparsable):
		log.Warn().Err(err).Msg("delivery kept unread")
		return h.Store.FinishDelivery(ctx, guid, solver.Unparsable, err.Error())
	case err != nil:
		return errors.Join(err, h.failed(ctx, guid, err, log))
	}
	log.Debug().Str("note", note).Msg("delivery handled")
	err = h.Store.FinishDelivery(ctx, guid, solver.Handled, note)
	crash.Point("delivery_handled")
	return err
}

// failed notes why a delivery was not handled, and when it is tried again: where
// GitHub said when it may be asked again, then.
func (h *Handlers) failed(ctx context.Context, guid string, err error, log zerolog.Logger) error {
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	limited, ok := errors.AsType[*forge.RateLimited](err)
	switch {
	case ctx.Err() != nil:
		log.Info().Err(err).Msg("delivery not handled before the server stops; it is tried again")
	case ok:
		log.Warn().Time("until", limited.Until).Msg("GitHub's rate limit; the delivery is handled later")
		return h.Store.PostponeDelivery(noting, guid, err.Error(), limited.Until)
	default:
		log.Error().Err(err).Msg("delivery not handled; it is tried again")
	}
	return h.Store.FinishDelivery(noting, guid, solver.Failed, err.Error())
}

// Handle reads one delivery and appends what it means. The note says in a few
// words what became of it. It may be called again for the same GUID.
func (h *Handlers) Handle(ctx context.Context, event, guid string, payload []byte) (note string, err error) {
	hs, err := read(event, payload)
	if err != nil {
		return "", err
	}
	if len(hs) == 0 {
		return "nothing to do for " + event, nil
	}
	for i, hp := range hs {
		if hp.once == "" {
			hp.once = deliveryKey(guid, i)
		}
		n, err := h.take(ctx, hp, guid)
		if err != nil {
			return "", err
		}
		if i == 0 {
			note = n
		} else {
			note += "; " + n
		}
	}
	return note, nil
}
