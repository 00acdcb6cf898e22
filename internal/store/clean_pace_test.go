package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTransactionsOfTheCleaningAreBoundedByTheTimeThatTheyTake(t *testing.T) {
	p := pace{rows: 2 * leastChunk}
	for i, want := range []int{10, 20, 40, 80, 100, 100} {
		if p.rows != want {
			t.Errorf("transaction %d has %d rows, want %d", i, p.rows, want)
		}
		p.took(time.Millisecond)
	}
	p.took(cleanTime * 3 / 4)
	if p.rows != cleanChunk {
		t.Errorf("%d rows after one that took about what it should, want as many", p.rows)
	}
	for range 10 {
		p.took(time.Second)
	}
	if p.rows != leastChunk || p.longest != time.Second {
		t.Errorf("%d rows after very long ones, the longest %s; want %d, %s", p.rows, p.longest, leastChunk, time.Second)
	}
}

// A commit that finds a full log copies all of it, while everybody waits.
func TestTheCleaningFillsNoLog(t *testing.T) {
	if testing.Short() {
		t.Skip("volume: it removes 30 MB of rows")
	}
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "pawl.db")
	s, err := Open(ctx, "sqlite:"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const rows = 10000
	for _, query := range []string{
		// The last one is new: without it the clock would not be trusted.
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d)
			INSERT INTO deliveries (guid, event, payload, received_at, state, retry_at)
			SELECT hex(randomblob(16)), 'issues', randomblob(3000), iif(i = 1, %d, i), 'handled', 0 FROM n`, rows, time.Now().Add(-time.Minute).UnixMicro()),
		"PRAGMA wal_checkpoint(TRUNCATE)",
	} {
		if _, err := s.DB().ExecContext(ctx, query); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.Clean(ctx, Retention{Deliveries: time.Now().Add(-time.Hour)})
	if err != nil || c.Deliveries != rows-1 {
		t.Fatalf("cleaned %+v, %v", c, err)
	}
	log, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if full := int64(sqliteLog * 4096); log.Size() > full/2 {
		t.Errorf("the log grew to %d of the %d bytes that a commit copies at", log.Size(), full)
	}
}
