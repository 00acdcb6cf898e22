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

// cacheTime is how long what was learned is shown again: it takes up to 2,000 rows, and anybody may ask.
const cacheTime = 5 * time.Second

// learningCache computes what was learned, at most once in cacheTime, for many goroutines.
type learningCache struct {
	ask func(ctx context.Context) (solver.LearningReport, error)
	now func() time.Time

	mu   sync.Mutex
	at   time.Time
	last solver.LearningReport
}

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

// attemptHref is the address of an attempt's thread (owner/repo#number/attempt); empty for what is none.
func attemptHref(name string) string {
	slash := max(0, strings.LastIndexByte(name, '/'))
	t, err := thread.Parse(name[:slash])
	if err != nil {
		return ""
	}
	return href(t)
}
