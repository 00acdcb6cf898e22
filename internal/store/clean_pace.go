package store

import (
	"context"
	"time"
)

// pace bounds what the transactions of one cleaning take from deliveries that
// arrive meanwhile: they come between two of them.
type pace struct {
	rows    int           // that the next one changes at most
	longest time.Duration // that one took
	logged  int           // rows since SQLite's log was copied
}

const (
	// cleanChunk is how many rows one transaction changes at most, and leastChunk
	// where rows are so large, or the disk is so slow, that more take too long.
	cleanChunk, leastChunk = 100, 5
	// cleanTime is what one should take: a fifth of the 50 ms that nothing should
	// be held up for. A hundred ordinary rows take two (BenchmarkClean).
	cleanTime = 10 * time.Millisecond
	// cleanRest is how many times as long as a transaction took nothing is cleaned
	// after it, so that a quarter of the database's time goes into cleaning at most.
	// A hundred thousand rows take ten to twenty seconds that way.
	cleanRest = 3
	// cleanLog is after how many rows SQLite's log is copied into the file: they
	// fill about 4 MB of it.
	cleanLog = 8 * cleanChunk
)

// newPace begins with few rows, which may be large ones.
func newPace() pace { return pace{rows: 2 * leastChunk} }

// took takes down what a transaction took. Beyond cleanTime the next one has half
// of the rows; well below it, twice as many.
func (p *pace) took(d time.Duration) {
	p.logged += p.rows
	p.longest = max(p.longest, d)
	switch {
	case d > cleanTime:
		p.rows = max(leastChunk, p.rows/2)
	case d < cleanTime/2:
		p.rows = min(cleanChunk, 2*p.rows)
	}
}

// writeSome writes in one transaction, and then leaves the database to others.
// It does not wait for the disk, since what a power cut brings back is cleaned
// again: an fsync takes longer than the rest, and a delivery that follows waits
// for its own anyway. The log is copied in between, or a commit would copy 32 MB
// of it while everybody waits.
func (s *cleaning) writeSome(ctx context.Context, fn func(*txn) error) error {
	asked := time.Now()
	var began time.Time
	err := s.writeUnsynced(ctx, func(tx *txn) error {
		began = time.Now()
		return fn(tx)
	})
	if err != nil {
		return err
	}
	s.pace.took(time.Since(began))
	rest := time.NewTimer(cleanRest * time.Since(asked))
	defer rest.Stop()
	if !s.postgres && s.pace.logged >= cleanLog {
		s.pace.logged = 0
		s.copyLog()
	}
	select {
	case <-rest.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
