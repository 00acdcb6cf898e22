package web

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// cacheTime is how long what was learned is shown again before it is computed
// anew: up to 2,000 rows are read for it, and anybody may ask for a page.
const cacheTime = 5 * time.Second

// learningCache computes what was learned, at most once in cacheTime. It may be
// asked by many goroutines.
type learningCache struct {
	ask func(ctx context.Context) (solver.LearningReport, error)
	now func() time.Time

	mu   sync.Mutex
	at   time.Time
	last solver.LearningReport
}

// get returns what was learned.
func (s *learningCache) get(ctx context.Context) (solver.LearningReport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if age := now.Sub(s.at); !s.at.IsZero() && age >= 0 && age < cacheTime {
		return s.last, nil
	}
	got, err := s.ask(ctx)
	if err != nil {
		return solver.LearningReport{}, err
	}
	s.at, s.last = now, got
	return got, nil
}

// believed is how far a source of grades is believed, and the style of that word.
func believed(h learning.SourceHealth) (b struct{ Text, Class string }) {
	switch {
	case h.Degraded:
		b.Text, b.Class = "degraded", "failed"
	case h.Values == 0:
		b.Text, b.Class = "silent", "dim"
	default:
		b.Text, b.Class = "believed", "done"
	}
	return b
}

// attemptHref is the address of the thread of an attempt, owner/repo#number/attempt;
// empty where the name says none.
func attemptHref(name string) string {
	slash := max(0, strings.LastIndexByte(name, '/'))
	t, err := thread.Parse(name[:slash])
	if err != nil {
		return ""
	}
	return href(t)
}
