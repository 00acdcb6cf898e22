package solver

import (
	"context"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// A step may leave an attempt to another node that has the repository's labels or caches. Where a process runs every
// attempt itself (Others is nil), these stages do nothing.

// Others knows the nodes that share the database.
type Others interface {
	// Nodes lists the running nodes except one.
	Nodes(ctx context.Context, except string) ([]policy.Node, error)
	// WarmFolder returns the data folder with the caches of a thread's repository; empty if unknown.
	WarmFolder(context.Context, thread.ID) (string, error)
	SetWarmFolder(ctx context.Context, t thread.ID, folder string) error
}

// elsewhere returns a wait if this node runs no agents or lacks one of the labels. Nodes that can run the attempt may
// claim the thread at once.
func (s *step) elsewhere(ctx context.Context, labels []string) (*thread.Decided, error) {
	s.place = policy.PlaceOf(labels)
	if s.pub.solver.Others == nil || s.pub.solver.Self.Serves(labels) {
		return nil, nil
	}
	others, err := s.pub.solver.Others.Nodes(ctx, s.pub.env.Node)
	if err != nil {
		return nil, err
	}
	d := policy.Elsewhere(labels, others)
	s.next = s.pub.env.Now()
	if d.Rule == policy.RuleNoNode {
		s.next = s.next.Add(maxLook)
	}
	return &thread.Decided{Decision: d}, nil
}

// leave lets an attempt wait up to node.prefer for the node with the thread's session or the repository's caches,
// before anything is written to GitHub. An attempt that was left before, or that waits for a slot, begins on any node.
func (s *step) leave(ctx context.Context) (progress, error) {
	warm, err := s.warmNode(ctx)
	if warm == "" || err != nil {
		return nothing, err
	}
	facts, err := s.facts(ctx, effective(s.pub.Config, s.pub.state.Repo))
	if err != nil || policy.Next(facts).Action != policy.DoAttempt {
		return nothing, err
	}
	return finished, s.pub.lease.Append(ctx, thread.Batch{WakeAt: s.pub.env.Now(), Place: policy.InFolder(warm)})
}

// warmNode returns the data folder of the node that this node leaves an attempt to; empty for none.
func (s *step) warmNode(ctx context.Context) (folder string, err error) {
	others := s.pub.solver.Others
	switch {
	case others == nil, s.pub.Config.Node.Prefer == 0, !s.pub.state.Open():
		return "", nil
	case policy.LeftToNode(s.pub.lease.Current().Place), s.awaits(policy.RuleCrowded):
		return "", nil
	}
	nodes, err := others.Nodes(ctx, s.pub.env.Node)
	if err != nil || len(nodes) == 0 {
		return "", err
	}
	caches, err := others.WarmFolder(ctx, s.pub.thread)
	if err != nil {
		return "", err
	}
	session := ""
	if n := len(s.pub.state.Attempts); n > 0 {
		session = s.pub.state.Attempts[n-1].Place
	}
	return policy.Warm(s.pub.solver.Self, nodes, session, caches), nil
}

// placeOf returns the place of a decision's wait; empty if any node may take the next step.
func (s *step) placeOf(d thread.Decided) string {
	if d.Rule == policy.RuleCrowded || d.Rule == policy.RuleNoNode {
		return s.place
	}
	return ""
}

// unplace ends the wait for a node that this step stored: a slot became free here.
func (s *step) unplace(ctx context.Context) error {
	if !s.placed {
		return nil
	}
	s.placed = false
	return s.pub.lease.Append(ctx, thread.Batch{Place: thread.AnyNode})
}
