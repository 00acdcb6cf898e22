package store

import "time"

// SetWall sets the machine's clock after the start; Options.Wall is the one from
// the start on.
func (s *Store) SetWall(wall func() time.Time) { s.clock.wall = wall }

// Gathered is how many deliveries wait for the transaction being written.
func (s *Store) Gathered() int { return len(s.receiver.waiting) }
