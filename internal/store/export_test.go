package store

import "time"

// SetWall gives the store a machine's clock of the test's own. It must be called
// before the store is used.
func (s *Store) SetWall(wall func() time.Time) { s.clock.wall = wall }

// Gathered is how many deliveries wait for the transaction being written.
func (s *Store) Gathered() int { return len(s.receiver.waiting) }
