package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

// DeliveryTimeout limits the handling of one delivery. It exceeds the sum of its parts' deadlines: otherwise a
// delivery would be retried endlessly while GitHub is slow.
const DeliveryTimeout = 10 * time.Minute

// Limits of the deliveries that one process holds. Others stay in their rows and become due later. Payloads beyond
// inboxBytes are read from their rows.
const (
	deliveryWorkers = 8
	inboxDeliveries = 20000
	inboxBytes      = 8 << 20
	// deliveriesAtOnce limits one claim, so that a dying process holds few.
	deliveriesAtOnce = 4 * deliveryWorkers
)

// inbox passes deliveries to this process's workers: possible user requests before machines' results, each in order
// of arrival.
type inbox struct {
	handle  func(context.Context, thread.Delivery) error
	logger  *slog.Logger
	urgent  chan *thread.Delivery // pointers, since empty slots take memory too
	waiting chan *thread.Delivery
	emptied chan struct{} // receives when no delivery waits

	mu    sync.Mutex
	here  map[string]bool // GUIDs waiting or being handled
	bytes int             // size of the waiting payloads
}

func newInbox(handle func(context.Context, thread.Delivery) error, logger *slog.Logger) *inbox {
	return &inbox{handle: handle, logger: logger, urgent: make(chan *thread.Delivery, inboxDeliveries), waiting: make(chan *thread.Delivery, inboxDeliveries),
		here: map[string]bool{}, emptied: make(chan struct{}, 1)}
}

// put adds new deliveries while there is space. It never blocks.
func (in *inbox) put(deliveries []thread.Delivery) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, d := range deliveries {
		if in.here[d.GUID] {
			continue
		}
		to := in.waiting
		if d.Urgent {
			to = in.urgent
		}
		if in.bytes+len(d.Payload) > inboxBytes {
			d.Payload = nil
		}
		select {
		case to <- &d:
			in.here[d.GUID] = true
			in.bytes += len(d.Payload)
		default: // full: this delivery becomes due in its row
		}
	}
}

func (in *inbox) idle() bool { return len(in.urgent)+len(in.waiting) == 0 }

func (in *inbox) work(ctx context.Context) {
	for {
		d := in.next(ctx)
		if d == nil {
			return
		}
		in.mu.Lock()
		in.bytes -= len(d.Payload)
		in.mu.Unlock()
		if in.idle() {
			select {
			case in.emptied <- struct{}{}:
			default:
			}
		}
		in.one(ctx, *d)
		in.mu.Lock()
		delete(in.here, d.GUID)
		in.mu.Unlock()
	}
}

func (in *inbox) next(ctx context.Context) *thread.Delivery {
	if ctx.Err() != nil {
		return nil
	}
	select {
	case d := <-in.urgent:
		return d
	default:
	}
	select {
	case <-ctx.Done():
		return nil
	case d := <-in.urgent:
		return d
	case d := <-in.waiting:
		return d
	}
}

// one handles a delivery within its time limit. The handler stores a failed delivery's next try; otherwise the
// delivery is due again when its claim ends.
func (in *inbox) one(ctx context.Context, d thread.Delivery) {
	ctx, cancel := context.WithTimeout(ctx, DeliveryTimeout)
	defer cancel()
	if err := in.handle(ctx, d); err != nil && ctx.Err() == nil {
		in.logger.WarnContext(ctx, "handle a delivery; retrying", slog.String("delivery", d.GUID), slog.String("err", err.Error()))
	}
}
