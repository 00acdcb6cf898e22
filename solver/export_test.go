package solver

import (
	"context"
	"errors"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
)

// Play is what an agent of a test does in one attempt.
type Play struct {
	Takes  time.Duration
	Report agent.Report
	Edits  policy.Edits
	// Commit is what it leaves; empty where it changes nothing.
	Commit string
	Diff   string
	Failed string // what a verify command prints that fails; empty where none does
	Cut    bool   // it goes in circles and is cut off
	Broken error  // what breaks on Pawl's side
}

// Stage is a test's git and agents.
type Stage interface {
	// Tip is the commit of a thread's branch; empty where there is none.
	Tip(ctx context.Context, t Thread) (string, error)
	// Push moves the branch from one commit to another.
	Push(ctx context.Context, t Thread, branch, from, to string) error
	// Pushed reports whether a commit reached a branch of the thread.
	Pushed(ctx context.Context, t Thread, commit string) (bool, error)
	Verify() []string
	Play(t Thread, a Started) Play
}

// SetStage puts a stage in the place of git, the sandbox and the agents. What
// surrounds them, and what they write to the log, stays as it is.
func (s *Solver) SetStage(on Stage) {
	s.staged = &staged{
		fetch: func(ctx context.Context, s *step, p *prepared) (*Decided, error) {
			var err error
			if p.tip, err = on.Tip(ctx, s.thread); err != nil {
				return nil, err
			}
			p.base, p.into, p.settings = "main", "base", "base"
			if p.start = p.tip; p.start == "" {
				p.start = p.into
			}
			p.repo = config.Repo{Verify: on.Verify()}
			p.effective, _ = s.Config.Narrow(p.repo)
			return nil, nil
		},
		execute: func(ctx context.Context, s *step, a Started, _ config.Backend, p *prepared, _ string) (Ended, error) {
			return s.play(ctx, on, a, p)
		},
		push: func(ctx context.Context, s *step, p *prepared, r *Ended) error {
			err := s.stagePush(ctx, on, p.branch, p.tip, r)
			r.Pushed = err == nil
			return err
		},
		pushed: func(ctx context.Context, s *step, a Attempt) (string, error) {
			for _, act := range s.state.Acts {
				if act.SHA == "" || act.At.Before(a.At) || act.Key != pushKey(s.branch(), act.SHA) {
					continue
				}
				there, err := on.Pushed(ctx, s.thread, act.SHA)
				if there || err != nil {
					return act.SHA, err
				}
			}
			return "", nil
		},
	}
}

func treeOf(commit string) string { return "tree of " + commit }

// play is execute and settle, with the stage in the place of processes.
func (s *step) play(ctx context.Context, on Stage, a Started, p *prepared) (Ended, error) {
	r := Ended{N: a.N, Base: p.start, Place: s.placeName(), StartTree: treeOf(p.start), EndTree: treeOf(p.start)}
	play := on.Play(s.thread, a)
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := s.watch(run, a.Seen, cancel)
	timer := time.NewTimer(play.Takes)
	defer timer.Stop()
	select {
	case <-run.Done():
	case <-timer.C:
	}
	end()
	s.lease.hold(true)
	if cause := context.Cause(run); cause != nil {
		return cancelled(r, cause), nil
	}
	s.receipt(&r, play.Report, play.Edits)
	if play.Broken != nil {
		return broken(r, play.Broken), play.Broken
	}
	if play.Commit != "" {
		r.Commit, r.EndTree, r.Change = play.Commit, treeOf(play.Commit), policy.Fingerprint(play.Diff)
	}
	if play.Cut {
		r.Ending, r.Outcome, r.Detail = policy.Killed, policy.EditLoop, "cut off"
		if kept := s.keptBranch(a.N); r.Commit != "" && s.stagePush(ctx, on, kept, "", &r) == nil {
			r.Kept = kept
		}
		return r, nil
	}
	if play.Commit == "" {
		s.judge(&r, p)
		return r, nil
	}
	if v := on.Verify(); len(v) > 0 && r.Ending == policy.Completed {
		r.Verify = []Verified{{Command: v[0], Passed: play.Failed == "", Output: play.Failed}}
	}
	err := s.deliver(ctx, a, p, &r)
	switch why := context.Cause(ctx); {
	case errors.Is(err, errStopped) || errors.Is(err, errClosed):
		return cancelled(r, err), nil
	case err != nil && why != nil:
		return cancelled(r, why), nil
	case err != nil:
		return broken(r, err), err
	}
	s.judge(&r, p)
	return r, nil
}

// stagePush is push: begun in the log, done, done in the log.
func (s *step) stagePush(ctx context.Context, on Stage, branch, from string, r *Ended) error {
	act := Act{Key: pushKey(branch, r.Commit), SHA: r.Commit}
	if err := s.record(ctx, KindActStarted, act); err != nil {
		return err
	}
	for try := 0; ; try++ {
		err := s.lease.confirm(ctx)
		if err == nil {
			err = s.unasked(ctx)
		}
		if err == nil {
			err = on.Push(ctx, s.thread, branch, from, r.Commit)
		}
		if !errors.Is(err, git.ErrUnavailable) || try == gitRetries {
			if err != nil {
				return err
			}
			return s.record(ctx, KindActDone, act)
		}
		time.Sleep(time.Second << try)
	}
}

// ProbeRules are the rules of the waits whose end nobody knows.
func ProbeRules() []string { return []string{ruleProbe, ruleCrowded} }
