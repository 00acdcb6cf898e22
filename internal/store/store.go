package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

// Queue is told what a transaction left to do in this process, once it is durable.
// It must not block: what it cannot take stays due in its row.
type Queue interface {
	// Committed tells whether threads became due, and which deliveries this process is to handle.
	Committed(threads bool, deliveries []thread.Delivery)
}

// Options are what Open needs beside the address; zero uses the system clock.
type Options struct {
	Now func() time.Time
	// Wall is the machine's clock, which is compared with the one that judges leases; nil means time.Now, whatever Now is.
	Wall func() time.Time
}

// Store is an open database. Its methods may be called by many goroutines.
type Store struct {
	*database
	*threads
	*accounts
	*deliveries
	*grades
	*usage
	*records
}

var _ thread.Store = (*Store)(nil)

// Open opens the database at "sqlite:PATH" or "postgres://…", creating and migrating it as needed. An error
// says what to do. A SQLite file is locked for this process until Close.
func Open(ctx context.Context, dsn string, o Options) (*Store, error) {
	return open(ctx, dsn, o, false)
}

// OpenReadOnly opens an existing database for reading, beside a process that may be writing. It takes no lock,
// migrates nothing, and every write fails.
func OpenReadOnly(ctx context.Context, dsn string, o Options) (*Store, error) {
	return open(ctx, dsn, o, true)
}

func open(ctx context.Context, dsn string, o Options, reading bool) (*Store, error) {
	s := newStore(o)
	var err error
	path, isFile := strings.CutPrefix(dsn, "sqlite:")
	switch {
	case isFile && reading:
		err = s.readSQLite(ctx, path)
	case isFile:
		err = s.openSQLite(ctx, path)
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"):
		err = s.openPostgres(ctx, dsn, reading)
	default:
		err = errDSN
	}
	if err == nil {
		err = s.prepare(ctx)
	}
	if err == nil && !reading {
		s.receiver, err = newReceiver(ctx, s.deliveries)
	}
	if err != nil {
		s.closeDB()
		return nil, err
	}
	s.serving = !reading
	return s, nil
}

var errDSN = errors.New(`database: want "sqlite:PATH" or "postgres://user@host/name"; correct "database" in the config`)

func newStore(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	db := &database{now: o.Now, turn: make(chan struct{}, 1), broken: &broken{first: make(chan error, 1)}, clock: newClock(o.Wall)}
	a := &accounts{db}
	return &Store{database: db, accounts: a, threads: &threads{database: db, accounts: a}, deliveries: &deliveries{database: db}, grades: &grades{db}, usage: &usage{db}, records: &records{db}}
}

// UseQueue names the queue that is told of what became due, once, before anything is written.
func (s *Store) UseQueue(q Queue) { s.queue = q }

// Close answers the deliveries that are being stored and closes the database. Stop the queue before. Closing
// again does nothing.
func (s *Store) Close() error {
	if s.receiver != nil {
		s.receiver.close()
	}
	return s.closeDB()
}
