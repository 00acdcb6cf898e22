package store

import (
	"context"
	"database/sql"
	"fmt"
)

// prepared are the queries that every webhook asks. SQLite's driver parses a
// statement each time that is not prepared, which takes longer than these take to
// run; PostgreSQL's prepares all by itself.
type prepared struct {
	resolve, events *sql.Stmt
}

func (s *Store) prepare(ctx context.Context) (err error) {
	if s.prepared.resolve, err = s.r.PrepareContext(ctx, s.q(`SELECT t.owner, t.name, t.number FROM aliases a JOIN threads t ON t.id = a.thread_id
		WHERE a.owner = ?1 AND a.name = ?2 AND a.number = ?3`)); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if s.prepared.events, err = s.r.PrepareContext(ctx, s.q(`SELECT e.seq, e.kind, e.at, e.data FROM events e JOIN threads t ON t.id = e.thread_id
		WHERE t.owner = ?1 AND t.name = ?2 AND t.number = ?3 AND e.seq > ?4 ORDER BY e.seq`)); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}
