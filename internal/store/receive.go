package store

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/pawlbot/pawl/solver/thread"
)

// ErrBusy means that more deliveries wait to be stored than fit. GitHub should hear 503.
var ErrBusy = errors.New("too many deliveries are waiting to be stored")

// errReading answers deliveries to a store that does not serve.
var errReading = errors.New("the database is not open for serving")

// errClosed answers deliveries that arrive while the store closes.
var errClosed = errors.New("the store is closed")

// A batch and what waits are bounded by number and bytes, for several of GitHub's largest payloads of 25 MB.
const (
	batchDeliveries   = 256
	batchBytes        = 8 << 20
	waitingDeliveries = 2048
	waitingBytes      = 64 << 20
)

// receiver stores deliveries in group commits: while one transaction is written to the disk, the next one
// gathers. Most of the work are the payloads' bytes (BenchmarkReceive), so they are packed.
type receiver struct {
	store          *deliveries
	insert, finish *sql.Stmt
	waiting        chan *pending
	stopped        chan struct{}
	written        int        // bytes of payloads since the last checkpoint
	copying        sync.Mutex // held by a checkpoint of SQLite

	mu     sync.Mutex
	bytes  int
	closed bool
}

// pending is one delivery on its way: to be stored or, with finish, to be noted as finished. The answer comes
// after the commit; done says whether it was new, or was there to be finished.
type pending struct {
	delivery thread.Delivery // with its payload packed
	payload  []byte          // as it came
	finish   bool
	done     bool
	answer   chan error
}

func newReceiver(ctx context.Context, s *deliveries) (r *receiver, err error) {
	r = &receiver{store: s, waiting: make(chan *pending, waitingDeliveries), stopped: make(chan struct{})}
	if r.insert, err = s.w.PrepareContext(ctx, `INSERT INTO deliveries (guid, event, payload, received_at, state, retry_at, urgent)
		VALUES ($1, $2, $3, $4, $5, $6, CASE WHEN $7 THEN 1 ELSE 0 END) ON CONFLICT (guid) DO NOTHING`); err != nil {
		return nil, err
	}
	if r.finish, err = s.w.PrepareContext(ctx, "UPDATE deliveries SET state = $2, note = $3, tries = tries + 1, retry_at = 0 WHERE guid = $1"); err != nil {
		return nil, errors.Join(err, r.insert.Close())
	}
	go r.run()
	return r, nil
}

// Receive stores a delivery, and returns once it is durable; fresh is false for a known GUID. When ctx ends
// first it may still be stored, so the payload must not be changed. ErrBusy and the database's errors: it is
// not known to be stored.
func (s *deliveries) Receive(ctx context.Context, d thread.Delivery) (fresh bool, err error) {
	if err := checkDelivery(d); err != nil {
		return false, err
	}
	if s.receiver == nil {
		return false, fmt.Errorf("store delivery %s: %w", d.GUID, errReading)
	}
	p := &pending{delivery: d, payload: d.Payload}
	p.delivery.Payload, p.delivery.Urgent = pack(d.Payload), d.Asks()
	if fresh, err = s.receiver.commit(ctx, p); err != nil {
		return false, fmt.Errorf("store delivery %s: %w", d.GUID, err)
	}
	return fresh, nil
}

func (r *receiver) commit(ctx context.Context, p *pending) (done bool, err error) {
	p.answer = make(chan error, 1)
	if err := r.add(p); err != nil {
		return false, err
	}
	select {
	case err := <-p.answer:
		return p.done, err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// checkDelivery keeps names that one of the databases could not store, and that
// would make a whole batch fail, out of it. GitHub's GUIDs have 36 characters.
func checkDelivery(d thread.Delivery) error {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if d.GUID == "" || len(d.GUID) > 100 || strings.ContainsFunc(d.GUID, odd) {
		return fmt.Errorf("delivery GUID %.100q: want 1 to 100 printable characters", d.GUID)
	}
	if len(d.Event) > 100 || strings.ContainsFunc(d.Event, odd) {
		return fmt.Errorf("delivery %s: event %.100q: want at most 100 printable characters", d.GUID, d.Event)
	}
	return nil
}

func (r *receiver) add(p *pending) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	if r.bytes+len(p.payload) > waitingBytes {
		return ErrBusy
	}
	select {
	case r.waiting <- p:
		r.bytes += len(p.payload)
		return nil
	default:
		return ErrBusy
	}
}

func (r *receiver) close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.waiting)
	}
	r.mu.Unlock()
	<-r.stopped
	r.copying.Lock() // no checkpoint is under way, and none follows
	defer r.copying.Unlock()
	_ = errors.Join(r.insert.Close(), r.finish.Close()) // the connections are closed next
}

// run commits batches until close. It uses no caller's context: one that ends
// must not take the others' deliveries with it.
func (r *receiver) run() {
	defer close(r.stopped)
	for first := range r.waiting {
		r.write(r.gather(first))
	}
}

func (r *receiver) write(batch []*pending) {
	err := r.store.storeBatch(context.Background(), batch)
	r.mu.Lock()
	for _, p := range batch {
		r.bytes -= len(p.payload)
	}
	r.mu.Unlock()
	for _, p := range batch {
		p.answer <- err
		r.written += len(p.delivery.Payload)
	}
	if !r.store.postgres && r.written > checkpointBytes && r.copying.TryLock() {
		r.written = 0
		go func() {
			defer r.copying.Unlock()
			r.store.copyLog()
		}()
	}
}

// gather adds to the first what waits already. It waits for no more: the commit before was time enough.
func (r *receiver) gather(first *pending) []*pending {
	batch, size := []*pending{first}, len(first.payload)
	for len(batch) < batchDeliveries && size < batchBytes {
		select {
		case p, ok := <-r.waiting:
			if !ok {
				return batch
			}
			batch, size = append(batch, p), size+len(p.payload)
		default:
			return batch
		}
	}
	return batch
}

// storeBatch stores the deliveries that are new, which this process has claimTime to handle, and finishes the
// handled. They are sorted so that two nodes with the same ones cannot wait for each other.
func (s *deliveries) storeBatch(ctx context.Context, batch []*pending) error {
	sorted := slices.Clone(batch)
	slices.SortStableFunc(sorted, func(a, b *pending) int { return strings.Compare(a.delivery.GUID, b.delivery.GUID) })
	return s.in(ctx, func(tx *txn) error {
		insert, finish := tx.StmtContext(ctx, s.receiver.insert), tx.StmtContext(ctx, s.receiver.finish)
		defer insert.Close()
		defer finish.Close()
		retryAt := micros(s.dueNow().Add(claimTime))
		for _, p := range sorted {
			d := p.delivery
			var res sql.Result
			var err error
			if p.finish {
				res, err = finish.ExecContext(ctx, d.GUID, string(d.State), d.Note)
			} else {
				res, err = insert.ExecContext(ctx, d.GUID, d.Event, d.Payload, micros(d.ReceivedAt), string(thread.Received), retryAt, d.Urgent)
			}
			if err != nil {
				return err
			}
			n, err := res.RowsAffected()
			if err != nil {
				return err
			}
			p.done = n == 1
		}
		for _, p := range batch { // in the order in which they came
			if p.done && !p.finish {
				d := p.delivery
				d.Payload = p.payload
				tx.deliveries = append(tx.deliveries, d)
			}
		}
		return nil
	})
}

// The first byte of a stored payload says how it is stored; before there was one it came as JSON.
const (
	formatPlain = 0x00
	formatS2    = 0x01
)

// oldHead begins what earlier versions packed with these words as a dictionary, which no upgrade may lose.
var oldHead = []byte("\xffs2\x01")

//go:embed payload_words.json
var oldWords []byte

// pack makes a payload smaller, in less time than that saves: SQLite writes each byte twice.
func pack(payload []byte) []byte {
	if len(payload) == 0 {
		return nil
	}
	small := make([]byte, 1+s2.MaxEncodedLen(len(payload)))
	small[0] = formatS2
	if n := 1 + len(s2.Encode(small[1:], payload)); n <= len(payload) {
		return bytes.Clone(small[:n])
	}
	return append([]byte{formatPlain}, payload...)
}

func unpack(stored []byte) (payload []byte, err error) {
	if len(stored) == 0 {
		return stored, nil
	}
	switch old, isOld := bytes.CutPrefix(stored, oldHead); {
	case isOld:
		payload, err = s2.MakeDict(oldWords, []byte(`{"action":"`)).Decode(nil, old)
	case stored[0] == formatS2:
		payload, err = s2.Decode(nil, stored[1:])
	case stored[0] == formatPlain:
		return stored[1:], nil
	case stored[0] >= '\t' && stored[0] <= '~':
		return stored, nil
	default:
		err = fmt.Errorf("form %#x is none that this pawl knows", stored[0])
	}
	if err != nil {
		return nil, fmt.Errorf("its stored payload cannot be read: %w", err)
	}
	return payload, nil
}
