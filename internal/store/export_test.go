package store

import "time"

// SetWall gives the store a machine's clock of the test's own. It must be called
// before the store is used.
func (s *Store) SetWall(wall func() time.Time) { s.clock.wall = wall }
