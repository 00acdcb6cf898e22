package store

import (
	"errors"
	"fmt"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// broken remembers the first error after which the database must not be written
// to by this process. Its zero value is not ready; newBroken makes one.
type broken struct {
	told chan error // holds the error once

	mu  sync.Mutex
	err error
}

func newBroken() *broken { return &broken{told: make(chan error, 1)} }

// Fatal gives the error after which the process should end with an exit code
// other than 0, once. After a failed fsync nobody knows what is on the disk: the
// kernel may have dropped what it could not write, and answers the next fsync as
// if nothing had been. A file that turns out to be damaged while it is in use
// must not be written to either, nor one that has lost its name. All writes fail
// from then on, Receive among them; what was answered before was synced. The next
// start reads the whole file and its log again.
func (s *Store) Fatal() <-chan error { return s.broken.told }

// get returns the error that ended all writes, or nil.
func (b *broken) get() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// see passes an error on, and remembers it when it is the last one.
func (b *broken) see(err error) error {
	hint, fatal := fatal(err)
	if !fatal {
		return err
	}
	return b.end(fmt.Errorf("the database cannot be used any more: %w; %s", err, hint))
}

// end remembers an error as the last one, unless there is one.
func (b *broken) end(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
		b.told <- b.err
	}
	return b.err
}

// fatal reports whether SQLite could not sync, or found damage.
func fatal(err error) (hint string, yes bool) {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return "", false
	}
	switch e.Code() {
	case sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC:
		return "the disk may be failing: look at the kernel's log, then start pawl again", true
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return hintDamaged, true
	}
	return "", false
}
