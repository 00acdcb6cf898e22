package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pawlbot/pawl/solver"
)

// deliveryTimeout is how long the handling of one delivery may take: it asks
// GitHub once or twice.
const deliveryTimeout = 2 * time.Minute

// What one process keeps of the deliveries that it is to handle. Their rows are
// the queue: what does not fit here, or is lost with the process, is given out
// again by the store's sweep. Payloads beyond inboxBytes are read from their rows.
const (
	deliveryWorkers = 8
	inboxDeliveries = 20000
	inboxBytes      = 8 << 20
)

// inbox hands stored deliveries to the workers of this process, in the order in
// which they came. A delivery is not a job of River's: inserting, fetching and
// completing one took more processor time than storing and handling the delivery.
type inbox struct {
	handle  func(context.Context, solver.Delivery) error
	logger  *slog.Logger
	waiting chan *solver.Delivery // a pointer, since empty places take memory, too

	mu    sync.Mutex
	here  map[string]bool // the GUIDs that wait or are being handled
	bytes int             // of the payloads that wait
}

func newInbox(handle func(context.Context, solver.Delivery) error, logger *slog.Logger) *inbox {
	return &inbox{handle: handle, logger: logger, waiting: make(chan *solver.Delivery, inboxDeliveries), here: map[string]bool{}}
}

// put takes what fits and is not here already. It never blocks.
func (in *inbox) put(deliveries []solver.Delivery) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, d := range deliveries {
		if in.here[d.GUID] {
			continue
		}
		if in.bytes+len(d.Payload) > inboxBytes {
			d.Payload = nil
		}
		select {
		case in.waiting <- &d:
			in.here[d.GUID] = true
			in.bytes += len(d.Payload)
		default: // it is full, and the sweep gives the rest out later
			return
		}
	}
}

// work handles deliveries one after the other until ctx ends.
func (in *inbox) work(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case d := <-in.waiting:
			in.mu.Lock()
			in.bytes -= len(d.Payload)
			in.mu.Unlock()
			in.one(ctx, *d)
			in.mu.Lock()
			delete(in.here, d.GUID)
			in.mu.Unlock()
		}
	}
}

// one handles a delivery in its own time. The handler has noted in the row when
// one that failed is tried again; where it could not, the sweep does so.
func (in *inbox) one(ctx context.Context, d solver.Delivery) {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	if err := in.handle(ctx, d); err != nil && ctx.Err() == nil {
		in.logger.WarnContext(ctx, "a delivery was not handled; it is tried again", slog.String("delivery", d.GUID), slog.String("err", err.Error()))
	}
}
