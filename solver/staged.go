package solver

import (
	"context"

	"github.com/pawlbot/pawl/config"
)

// staged plays git and the agents for a test in virtual time, which no process
// can take part in. A program has none.
type staged struct {
	// fetch brings the thread's branches and the repository's configuration.
	fetch func(ctx context.Context, s *step, p *prepared) (*Decided, error)
	// execute does an attempt and returns its receipt.
	execute func(ctx context.Context, s *step, a Started, b config.Backend, p *prepared, task string) (Ended, error)
	// push moves the thread's branch to what an attempt made.
	push func(ctx context.Context, s *step, p *prepared, r *Ended) error
	// pushed returns the commit that an attempt pushed before it was cut off.
	pushed func(ctx context.Context, s *step, a Attempt) (string, error)
}
