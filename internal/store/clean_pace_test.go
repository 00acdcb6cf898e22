package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

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
