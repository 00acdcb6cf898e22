package forge

import (
	"context"
	"sync"
)

// Shared keeps small values that all nodes of one Pawl see, so that they keep
// GitHub's limits together. A store implements it for several nodes; without
// one a client keeps the values in its own memory.
type Shared interface {
	// Update replaces the value under key by what f makes of it, as one atomic
	// read-modify-write. old is empty when there is none; with nil as its answer
	// the value stays. f may be called more than once, and must not keep old.
	Update(ctx context.Context, key string, f func(old []byte) (next []byte)) error
}

// memory is a Shared for one process. Its zero value is ready.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
}

// Update implements Shared. It never fails.
func (m *memory) Update(_ context.Context, key string, f func([]byte) []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = make(map[string][]byte)
	}
	if next := f(m.values[key]); next != nil {
		m.values[key] = next
	}
	return nil
}
