package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/panics"
)

// panicked records the background tasks that panicked.
type panicked struct {
	mu   sync.Mutex
	last map[string]time.Time
	n    int
}

// stillPanics is how long /readyz reports a task's last panic. Our choice.
const stillPanics = 10 * time.Minute

func (p *panicked) add(task string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string]time.Time{}
	}
	p.last[task] = at
	p.n++
}

func (p *panicked) health(now time.Time) (ok bool, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for task, at := range p.last {
		if now.Sub(at) < stillPanics {
			return false, fmt.Sprintf("the background task %q panicked; panics since the start: %d. The server's log has the stack", task, p.n)
		}
	}
	return true, ""
}

// task runs a background task, and restarts it after a panic.
func (s *Server) task(ctx context.Context, name string, do func()) {
	s.background.Go(func() {
		panics.Repeat(ctx, do, func(e *panics.Error) {
			s.panicked.add(name, s.deps.Now())
			s.log.Error().Err(e).Str("task", name).Str("stack", e.Stack).Msg("a background task panicked; it begins again")
		})
	})
}
