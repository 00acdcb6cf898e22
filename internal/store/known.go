package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// knownChunk is how many GUIDs one query asks for; SQLite takes no more than
// 32,766 parameters, PostgreSQL no more than 65,535.
const knownChunk = 500

// Known tells which of the GUIDs name a delivery that was stored; the others are
// missing from the map.
func (s *Store) Known(ctx context.Context, guids []string) (map[string]bool, error) {
	known := make(map[string]bool, len(guids))
	for chunk := range slices.Chunk(guids, knownChunk) {
		if err := s.knownOf(ctx, chunk, known); err != nil {
			return nil, fmt.Errorf("look up deliveries: %w", err)
		}
	}
	return known, nil
}

func (s *Store) knownOf(ctx context.Context, guids []string, known map[string]bool) error {
	args := make([]any, len(guids))
	marks := make([]string, len(guids))
	for i, guid := range guids {
		args[i], marks[i] = guid, fmt.Sprintf("?%d", i+1)
	}
	rows, err := s.r.QueryContext(ctx, s.q("SELECT guid FROM deliveries WHERE guid IN ("+strings.Join(marks, ", ")+")"), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var guid string
		if err := rows.Scan(&guid); err != nil {
			return err
		}
		known[guid] = true
	}
	return rows.Err()
}
