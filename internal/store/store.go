package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlbot/pawl/solver"
)

// Enqueuer puts jobs into the queue within the store's transaction, so that a
// change and the work that follows from it are durable together.
type Enqueuer interface {
	// Step enqueues a step of the thread, at once with a zero time or one that
	// has passed.
	Step(ctx context.Context, tx *sql.Tx, t solver.Thread, at time.Time) error
	// Committed tells that a transaction is durable in which steps were enqueued
	// to be worked at once, and which deliveries this process is to handle. Of
	// those that came before only the GUID is given. Those that it cannot take are
	// given out again later, so it must not block.
	Committed(steps bool, deliveries []solver.Delivery)
}

// Options are what Open needs beside the address. The zero value uses the
// system clock and logs nothing.
type Options struct {
	Now func() time.Time
	// Wall is the machine's clock, which is compared with the one that judges
	// leases: a process whose whole clock is off gives the same here and as Now.
	// Nil means time.Now, also where Now is a time of its own.
	Wall   func() time.Time
	Logger *slog.Logger
	// Image is what a database in memory starts as: what Image of this very
	// program returned. A simulation that opens thousands is not to migrate each.
	Image []byte
}

// Store is an open database. Its methods may be called by many goroutines.
type Store struct {
	w, r     *sql.DB // SQLite: one writing connection, several reading ones; PostgreSQL: the same pool
	postgres bool
	now      func() time.Time
	queue    Enqueuer
	receiver *receiver
	prepared prepared
	lock     *os.File // SQLite: held while this process may write
	file     *os.File // SQLite: the database itself, held as well
	// turn is held by the one write that may ask for the writing connection
	// beside the receiver. database/sql gives a free connection to a waiter
	// picked at random, so that among many a delivery could wait many turns.
	turn   chan struct{}
	broken *broken
	clock  clock
	pinged atomic.Pointer[time.Time] // when Ping wrote last; nil when that failed
}

var _ solver.Store = (*Store)(nil)

// Open opens the database at "sqlite:PATH" or "postgres://…", creating and
// migrating it as needed. An error says what to do about it. A SQLite file is
// locked for this process until Close. "memory:" and "memory:NAME" are for tests
// and simulations: the server's config refuses them, since what was answered
// would be lost.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	s := newStore(o)
	var err error
	path, isFile := strings.CutPrefix(dsn, "sqlite:")
	name, inMemory := strings.CutPrefix(dsn, "memory:")
	switch {
	case isFile:
		err = s.openSQLite(ctx, path, o)
	case inMemory:
		err = s.openMemory(ctx, name, o)
	case isPostgres(dsn):
		err = s.openPostgres(ctx, dsn, o)
	default:
		err = errDSN
	}
	if err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		s.closeDB()
		return nil, err
	}
	if s.receiver, err = newReceiver(ctx, s); err != nil {
		s.closeDB()
		return nil, err
	}
	return s, nil
}

// OpenReadOnly opens an existing database for reading, beside a process that
// may be writing. It takes no lock, migrates nothing, and every write fails.
func OpenReadOnly(ctx context.Context, dsn string, o Options) (*Store, error) {
	s := newStore(o)
	var err error
	switch path, ok := strings.CutPrefix(dsn, "sqlite:"); {
	case ok:
		err = s.readSQLite(ctx, path)
	case isPostgres(dsn):
		err = s.readPostgres(ctx, dsn)
	default:
		err = errDSN
	}
	if err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		s.closeDB()
		return nil, err
	}
	return s, nil
}

var errDSN = errors.New(`database: want "sqlite:PATH" or "postgres://user@host/name"; correct "database" in the config`)

func isPostgres(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

func newStore(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	return &Store{now: o.Now, turn: make(chan struct{}, 1), broken: newBroken(), clock: newClock(o.Wall)}
}

// UseQueue names the queue that steps and deliveries are given to. It must be
// called once, before anything is written; without a queue nothing is enqueued
// and only the rows tell what is to be done.
func (s *Store) UseQueue(q Enqueuer) { s.queue = q }

// DB is the pool that the queue shares: with SQLite the single writing
// connection.
func (s *Store) DB() *sql.DB { return s.w }

// Postgres reports whether the database is PostgreSQL; otherwise it is SQLite.
func (s *Store) Postgres() bool { return s.postgres }

// Close answers the deliveries that are being stored, closes the database and
// gives the lock on a SQLite file back. Stop the queue before. Closing again does
// nothing.
func (s *Store) Close() error {
	if s.receiver != nil {
		s.receiver.close()
	}
	return s.closeDB()
}

func (s *Store) closeDB() error {
	var errs []error
	if s.r != nil && s.r != s.w {
		errs = append(errs, s.r.Close())
	}
	if s.w != nil {
		errs = append(errs, s.w.Close())
	}
	for _, f := range []*os.File{s.file, s.lock} { // after SQLite has closed its own
		if f == nil {
			continue
		}
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// q writes a query's ?1 placeholders the way the database reads them.
func (s *Store) q(query string) string {
	if s.postgres {
		return strings.ReplaceAll(query, "?", "$")
	}
	return query
}

// micros is how a time is stored; the zero time is 0.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// fromMicros is the inverse of micros.
func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
