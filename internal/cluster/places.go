package cluster

import (
	"context"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Others knows the nodes that share the database.
type Others interface {
	// Nodes lists the running nodes except one.
	Nodes(ctx context.Context, except string) ([]policy.Node, error)
	// WarmFolder returns the data folder with the caches of a thread's repository; empty if unknown.
	WarmFolder(context.Context, thread.ID) (string, error)
	SetWarmFolder(ctx context.Context, t thread.ID, folder string) error
}

// Places finds the node for an attempt. It implements solver.Nodes.
type Places struct {
	Name   string // this node's
	Self   policy.Node
	Others Others // nil for a single node
}

// Elsewhere returns the decision about an attempt if this node runs no agents or lacks a label, else nil.
func (p Places) Elsewhere(ctx context.Context, labels []string) (*policy.Decision, error) {
	if p.Self.Serves(labels) {
		return nil, nil
	}
	others, err := p.nodes(ctx)
	if err != nil {
		return nil, err
	}
	d := policy.Elsewhere(labels, others)
	return &d, nil
}

func (p Places) nodes(ctx context.Context) ([]policy.Node, error) {
	if p.Others == nil {
		return nil, nil
	}
	return p.Others.Nodes(ctx, p.Name)
}

// Warm returns the data folder of another node with the thread's session or the repository's caches; empty for none.
func (p Places) Warm(ctx context.Context, t thread.ID, session string) (folder string, err error) {
	nodes, err := p.nodes(ctx)
	if err != nil || len(nodes) == 0 {
		return "", err
	}
	caches, err := p.Others.WarmFolder(ctx, t)
	if err != nil {
		return "", err
	}
	return policy.Warm(p.Self, nodes, session, caches), nil
}

// Began records the data folder in which an attempt on a thread's repository begins.
func (p Places) Began(ctx context.Context, t thread.ID, folder string) error {
	if p.Others == nil {
		return nil
	}
	return p.Others.SetWarmFolder(ctx, t, folder)
}
