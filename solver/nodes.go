package solver

import (
	"context"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Nodes finds the node for an attempt; see package cluster.
type Nodes interface {
	// Elsewhere returns a wait if this node cannot run an attempt with the labels, else nil.
	Elsewhere(ctx context.Context, labels []string) (*policy.Decision, error)
	// Warm returns the data folder of another node with the thread's session or the repository's caches; empty for none.
	// session is the data folder with the session.
	Warm(ctx context.Context, t thread.ID, session string) (folder string, err error)
	// Began records that an attempt on the thread's repository begins in a data folder.
	Began(ctx context.Context, t thread.ID, folder string) error
}

// elsewhere returns a wait if this node cannot run an attempt. Any node that can run it may claim the thread at once.
func (s *step) elsewhere(ctx context.Context, labels []string) (*thread.Decided, error) {
	s.place = policy.PlaceOf(labels)
	if s.pub.solver.Nodes == nil {
		return nil, nil
	}
	d, err := s.pub.solver.Nodes.Elsewhere(ctx, labels)
	if d == nil || err != nil {
		return nil, err
	}
	s.next = s.pub.env.Now()
	if d.Rule == policy.RuleNoNode {
		s.next = s.next.Add(maxLook)
	}
	return &thread.Decided{Decision: *d}, nil
}

// leave lets an attempt wait up to node.prefer for the node with its session or the repository's caches. It comes
// before any write to GitHub. An attempt that was left before, or that waits for a slot, begins on any node.
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

// warmNode returns the data folder of the node to which this node leaves the attempt; empty for none.
func (s *step) warmNode(ctx context.Context) (folder string, err error) {
	nodes := s.pub.solver.Nodes
	switch {
	case nodes == nil, s.pub.Config.Node.Prefer == 0, !s.pub.state.Open():
		return "", nil
	case policy.LeftToNode(s.pub.lease.Current().Place), s.awaits(policy.RuleCrowded):
		return "", nil
	}
	session := ""
	if n := len(s.pub.state.Attempts); n > 0 {
		session = s.pub.state.Attempts[n-1].Place
	}
	return nodes.Warm(ctx, s.pub.thread, session)
}

// placeOf returns where a decision's next step must run; empty if any node may take it.
func (s *step) placeOf(d thread.Decided) string {
	if d.Rule == policy.RuleCrowded || d.Rule == policy.RuleNoNode {
		return s.place
	}
	return ""
}

// unplace clears the place that this step stored, because a slot became free on this node.
func (s *step) unplace(ctx context.Context) error {
	if !s.placed {
		return nil
	}
	s.placed = false
	return s.pub.lease.Append(ctx, thread.Batch{Place: thread.AnyNode})
}
