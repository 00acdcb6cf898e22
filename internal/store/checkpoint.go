package store

import (
	"context"
	"fmt"
)

// When SQLite's write-ahead log goes into the database file. A commit that finds
// sqliteLog pages in the log does so itself, and everybody waits for it: at SQLite's
// default of 1,000 pages a pause of several milliseconds for every 4 MB. So, after
// each checkpointBytes of payloads, and in the rests of the cleaning, a reading
// connection copies the pages beside the commits, and leaves little to that one
// (BenchmarkReceive: 1.3 times as many deliveries a second). The less it copies at a
// time, the shorter a commit waits for the disk meanwhile: p99 20 ms with 4 MB, 8 ms
// with 512 KB. The log's file stays as large as it once was, 32 MB or little more.
const (
	checkpointBytes = 512 << 10
	sqliteLog       = 8000
)

// checkpointer copies the log whenever it is told to, until the channel is closed.
func (s *Store) checkpointer(due <-chan struct{}) {
	for range due {
		s.copyLog()
	}
}

// copyLog copies the log into the database file, beside the commits. Only a
// failure that finds the database unusable matters: a later commit tries again.
func (s *Store) copyLog() {
	if _, err := s.r.ExecContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		s.broken.see(fmt.Errorf("checkpoint: %w", err))
	}
}
