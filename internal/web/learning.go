package web

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/text"
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

// learningData is the section "Learning" of the status page.
type learningData struct {
	Mode    string
	Arms    []armLine
	Sources []sourceLine
}

// armLine is one backend in the chart. The numbers of the drawing are hundredths
// of its width.
type armLine struct {
	Backend, Mean, Interval, Share, Rewards string
	Low, Width, Middle, Part                int
}

// sourceLine is how one source of grades did in the last seven days.
type sourceLine struct {
	Source, Coverage, Valid, Failed string
	State, Class, Reason            string
	Broken                          []violation
	More                            string
}

// violation is one implausible grade.
type violation struct{ Attempt, Href, Check string }

// maxViolations is how many violations of a source are named, the newest of them.
const maxViolations = 5

// learningOf is nil where there is nothing to show.
func learningOf(s solver.LearningReport) *learningData {
	if len(s.Arms) == 0 && len(s.Sources) == 0 {
		return nil
	}
	d := &learningData{Mode: "mode " + string(s.Mode)}
	if s.InForce != s.Mode {
		d.Mode += ", in force: " + string(s.InForce)
	}
	for _, a := range s.Arms {
		d.Arms = append(d.Arms, arm(a))
	}
	for _, h := range s.Sources {
		d.Sources = append(d.Sources, source(h))
	}
	return d
}

func arm(a learning.ArmView) armLine {
	low, high := percent(a.Low), percent(a.High)
	return armLine{
		Backend: text.Line(a.Backend, maxName), Mean: fmt.Sprintf("%.2f", a.Mean), Interval: fmt.Sprintf("%.2f to %.2f", a.Low, a.High),
		Share: fmt.Sprintf("%d %%", percent(a.Share)), Rewards: number(int64(a.Rewards)),
		Low: low, Width: max(1, high-low), Middle: max(0, min(98, percent(a.Mean)-1)), Part: percent(a.Share),
	}
}

// percent is a share in whole hundredths.
func percent(v float64) int { return int(min(max(v, 0), 1)*100 + 0.5) }

func source(h learning.SourceHealth) sourceLine {
	l := sourceLine{Source: text.Line(string(h.Source), maxName), Coverage: "–", Valid: "–", State: "believed", Class: "done"}
	if h.Attempts > 0 {
		l.Coverage = fmt.Sprintf("%d of %d (%d %%)", h.Values, h.Attempts, percent(h.Coverage))
	}
	if h.Failed > 0 {
		l.Failed = number(int64(h.Failed))
	}
	if h.Values > 0 {
		l.Valid = fmt.Sprintf("%d %%", percent(h.Valid))
	} else {
		l.State, l.Class = "silent", "dim"
	}
	if h.Degraded {
		l.State, l.Class, l.Reason = "degraded", "failed", text.Line(h.Reason, maxReason)
	}
	for i := len(h.Violations) - 1; i >= 0; i-- {
		if len(l.Broken) == maxViolations {
			l.More = fmt.Sprintf("and %s more", number(int64(i+1)))
			break
		}
		v := h.Violations[i]
		b := violation{Attempt: text.Line(v.Attempt, maxName), Check: text.Spaced(text.Line(string(v.Check), maxName))}
		if slash := strings.LastIndexByte(v.Attempt, '/'); slash > 0 {
			if t, err := thread.Parse(v.Attempt[:slash]); err == nil {
				b.Href = href(t)
			}
		}
		l.Broken = append(l.Broken, b)
	}
	return l
}
