package solver

import (
	"context"
	"errors"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/simhash"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// Play describes what a test's agent does in one attempt.
type Play struct {
	Takes  time.Duration
	Report agent.Report
	Edits  policy.Edits
	// Commit is the agent's commit; empty if it changes nothing.
	Commit string
	Diff   string
	Failed string // the output of a failing verify command; empty if none fails
	Cut    bool   // the agent goes in circles and is cut off
	Broken error  // an error on Pawl's side
}

// Stage replaces git and agents in a test.
type Stage interface {
	// Tip returns the commit of a thread's branch, or "".
	Tip(ctx context.Context, t thread.ID) (string, error)
	// Push moves the branch from one commit to another.
	Push(ctx context.Context, t thread.ID, branch, from, to string) error
	// Pushed reports whether a commit reached a branch of the thread.
	Pushed(ctx context.Context, t thread.ID, commit string) (bool, error)
	Verify() []string
	Play(t thread.ID, a thread.Started) Play
}

// OnStage is GitHub with a stage instead of git, the sandbox and agents. The surrounding code and its log entries are
// real.
func OnStage(gh *forge.Client, on Stage) Host { return staged{GitHub: GitHub{Forge: gh}, on: on} }

type staged struct {
	GitHub
	on Stage
}

func (h staged) fetch(ctx context.Context, p *publisher, g *attempt.Ground) (*thread.Decided, error) {
	var err error
	if g.Tip, err = h.on.Tip(ctx, p.thread); err != nil {
		return nil, err
	}
	g.Base, g.Into = "main", "base"
	if g.Start = g.Tip; g.Start == "" {
		g.Start = g.Into
	}
	g.Repo = config.Repo{Verify: h.on.Verify()}
	g.Effective, _ = p.Config.Narrow(g.Repo)
	return nil, nil
}

func (h staged) reconcile(context.Context, *attempt.Ground) error { return nil }

func (h staged) pushed(ctx context.Context, p *publisher, _ *attempt.Ground, commit string) (bool, error) {
	return h.on.Pushed(ctx, p.thread, commit)
}

func (h staged) verifyBase(context.Context, *attempt.Attempt) (*thread.Decided, error) {
	return nil, nil
}

func (h staged) executor(a *attempt.Attempt) attempt.Executor { return &actor{Attempt: a, on: h.on} }

func treeOf(commit string) string { return "tree of " + commit }

// actor plays an attempt on a stage.
type actor struct {
	*attempt.Attempt
	on   Stage
	play Play
}

func (p *actor) Open(context.Context) error {
	p.Receipt.StartTree, p.Receipt.EndTree = treeOf(p.Ground.Start), treeOf(p.Ground.Start)
	p.play = p.on.Play(p.Thread, p.Started)
	return nil
}

func (p *actor) Close() {}

func (p *actor) Agent(ctx context.Context) (cause, err error) {
	run, end := p.Watch(ctx)
	timer := time.NewTimer(p.play.Takes)
	defer timer.Stop()
	select {
	case <-run.Done():
	case <-timer.C:
	}
	cause = context.Cause(run)
	end()
	if cause != nil {
		return cause, nil
	}
	p.Report(p.play.Report, p.play.Edits)
	if p.play.Cut && p.play.Broken == nil {
		return attempt.LoopCut{}, nil
	}
	return nil, p.play.Broken
}

func (p *actor) Commit(context.Context) error {
	if p.play.Commit != "" {
		p.Receipt.Commit, p.Receipt.EndTree, p.Receipt.Change = p.play.Commit, treeOf(p.play.Commit), simhash.Fingerprint(p.play.Diff)
	}
	return nil
}

func (p *actor) Verify(context.Context) ([]policy.Verified, error) {
	var all []policy.Verified
	for _, v := range p.on.Verify()[:min(1, len(p.on.Verify()))] {
		all = append(all, policy.Verified{Command: v, Passed: p.play.Failed == "", Output: p.play.Failed})
	}
	return all, nil
}

func (p *actor) Judge(context.Context) (*policy.Judged, error) { return nil, nil }

func (p *actor) Push(ctx context.Context) error {
	err := p.push(ctx, p.Ground.Branch, p.Ground.Tip)
	p.Receipt.Pushed = err == nil
	return err
}

func (p *actor) PushKept(ctx context.Context, branch string) error { return p.push(ctx, branch, "") }

func (p *actor) PushUnfinished(context.Context) error { return nil } // no server stops in these tests

// push logs its start, pushes, and logs its end.
func (p *actor) push(ctx context.Context, branch, from string) error {
	act := thread.Act{Key: thread.PushKey(branch, p.Receipt.Commit), SHA: p.Receipt.Commit}
	if err := p.Lease.Record(ctx, thread.KindActStarted, act); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := p.Lease.Confirm(ctx)
		if err == nil {
			err = p.CheckEnded(ctx)
		}
		if err == nil {
			err = p.on.Push(ctx, p.Thread, branch, from, p.Receipt.Commit)
		}
		if !errors.Is(err, git.ErrUnavailable) || try > 3 {
			if err != nil {
				return err
			}
			return p.Lease.Record(ctx, thread.KindActDone, act)
		}
		time.Sleep(policy.Retry(try, time.Second, time.Minute, 1))
	}
}

// ProbeRules lists the rules of waits with an unknown end.
func ProbeRules() []policy.Rule { return []policy.Rule{policy.RuleProbe, policy.RuleCrowded} }
