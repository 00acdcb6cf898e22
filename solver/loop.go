package solver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
)

// lookout watches a running agent for going in circles: by what its stream
// tells, and by the files that it names.
type lookout struct {
	limits  policy.SeverityLimits
	circles *policy.Circles
	files   *sampler
	track   tracker
	// replaced are withheld paths in whose place the agent wrote something.
	replaced []string
	// spoilt is why withheld paths could not be brought back: the agent made that
	// impossible.
	spoilt error
}

func newLookout(dir string, limits policy.SeverityLimits, began time.Time) (*lookout, error) {
	files, err := newSampler(dir, began)
	if err != nil {
		return nil, fmt.Errorf("watch the checkout: %w", err)
	}
	return &lookout{limits: limits, circles: policy.NewCircles(), files: files}, nil
}

func (l *lookout) close() { l.files.root.Close() }

func (l *lookout) edits() policy.Edits { return l.circles.Edits() }

// loopCut is the cause for which an attempt is ended that goes in circles.
type loopCut struct{ verdict policy.Severity }

// Error says what was seen.
func (c loopCut) Error() string {
	return "cut off as a " + string(c.verdict.Class) + " edit loop: " + strings.Join(c.verdict.Reasons, "; ")
}

// deed takes one call of the agent into account, and ends the attempt with it
// when that makes it a severe loop.
func (l *lookout) deed(d agent.Deed, end context.CancelCauseFunc) {
	l.track.deed(d)
	d.Edits = l.files.complete(d)
	Observe(l.circles, d)
	if v, cut := l.limits.CutOff(l.circles.Edits()); cut && len(d.Edits) > 0 {
		end(loopCut{v})
	}
}

// session takes the patches of the CLI's session file where neither the stream
// nor the tree told what the edits held. A file that cannot be read changes
// nothing.
func (l *lookout) session(a agent.Adapter, home, id string) {
	seen := l.circles.Edits()
	if !seen.Blind() {
		return
	}
	told := policy.NewCircles()
	err := a.SessionDeeds(home, id, l.files.root.Name(), func(d agent.Deed) { Observe(told, d) })
	if e := told.Edits(); err == nil && e.Seen > 0 && !e.Blind() && 2*e.Operations >= seen.Operations {
		l.circles = told
	}
}

// keptBranch is where the work of an attempt is kept that does not reach the
// branch of its thread.
func (s *step) keptBranch(n int) string { return fmt.Sprintf("pawl/kept-%d-%d", s.thread.Number, n) }

// keep ends an attempt that was cut off as a loop. Its work goes to a branch of
// its own, for people to look at; where that fails the receipt says so.
func (s *step) keep(ctx context.Context, a Started, b config.Backend, p *prepared, ws *git.Workspace, loop loopCut, r *Ended) {
	r.Ending, r.Outcome, r.Detail = policy.Killed, policy.EditLoop, tail(oneLine(loop.Error()), 500)
	r.Reasons = append(r.Reasons, loop.Error())
	kept, err := s.pushKept(ctx, a, b, p, ws, r)
	switch {
	case err != nil:
		s.log.Warn().Err(err).Msg("the work of a loop was not kept")
		r.Reasons = append(r.Reasons, "its work could not be kept: "+err.Error())
	case kept == "":
		r.Reasons = append(r.Reasons, "it left the files as they were")
	default:
		r.Kept = kept
		r.Reasons = append(r.Reasons, "its work is kept on branch "+kept)
	}
}

// pushKept commits the work and pushes it; the branch is empty where there is none.
func (s *step) pushKept(ctx context.Context, a Started, b config.Backend, p *prepared, ws *git.Workspace, r *Ended) (string, error) {
	if err := s.commitTree(ctx, a, b, p, ws, r); err != nil || r.Commit == "" {
		return "", err
	}
	kept := s.keptBranch(a.N)
	act := Act{Key: pushKey(kept, r.Commit), SHA: r.Commit}
	if err := s.record(ctx, KindActStarted, act); err != nil {
		return "", err
	}
	if err := s.authorised(ctx, p, func() error { return p.cache.Push(ctx, p.remote, r.Commit, kept, "") }); err != nil {
		return "", err
	}
	return kept, s.record(ctx, KindActDone, act)
}
