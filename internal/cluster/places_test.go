package cluster

import (
	"testing"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestSingleNodeRunsWhatItsLabelsAllow(t *testing.T) {
	ctx, issue := t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: 1}
	alone := Places{Name: "a", Self: policy.Node{Agents: true, Labels: []string{"gpu"}, Folder: "here"}}
	for _, labels := range [][]string{nil, {"gpu"}} {
		if d, err := alone.Elsewhere(ctx, labels); d != nil || err != nil {
			t.Errorf("labels %q: %+v, %v, want an attempt here", labels, d, err)
		}
	}
	d, err := alone.Elsewhere(ctx, []string{"arm64"})
	if err != nil {
		t.Fatal(err)
	}
	if d == nil || d.Rule != policy.RuleNoNode {
		t.Errorf("a label that this node lacks: %+v, want the rule no_node", d)
	}
	if err := alone.Began(ctx, issue, "here"); err != nil {
		t.Error(err)
	}
	if folder, err := alone.Warm(ctx, issue, "another folder"); folder != "" || err != nil {
		t.Errorf("a session in another folder: left to %q, %v, want no other node", folder, err)
	}
}
