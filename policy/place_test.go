package policy

import (
	"slices"
	"strings"
	"testing"
)

func TestAttemptWaitsForANodeWithItsLabels(t *testing.T) {
	gpu := Node{Labels: []string{"gpu", "arm64"}, Agents: true}
	plain, webhooks := Node{Agents: true}, Node{Labels: []string{"gpu"}}
	for name, c := range map[string]struct {
		labels []string
		others []Node
		rule   Rule
		why    string
	}{
		"another node runs any":                  {nil, []Node{plain}, RuleCrowded, "this server does not take attempts; another one does"},
		"another node has the label":             {[]string{"gpu"}, []Node{plain, gpu}, RuleCrowded, "this server does not take attempts that need the labels gpu"},
		"no node has all labels":                 {[]string{"gpu", "big"}, []Node{plain, gpu}, RuleNoNode, "no running server takes attempts that need the labels gpu, big"},
		"the node with the label runs no agents": {[]string{"gpu"}, []Node{webhooks}, RuleNoNode, "no running server takes attempts that need the labels gpu"},
		"no node runs agents":                    {nil, []Node{{}}, RuleNoNode, "no running server takes attempts"},
	} {
		d := Elsewhere(c.labels, c.others)
		if d.Action != DoWait || d.Rule != c.rule || !strings.HasPrefix(d.Reasons.String(), c.why) {
			t.Errorf("%s: %s by %s (%s), want a wait by %s: %s", name, d.Action, d.Rule, d.Reasons, c.rule, c.why)
		}
	}
}

// The store selects attempts by place and the policy by labels, so the two must agree.
func TestNodePlacesMatchItsLabels(t *testing.T) {
	nodes := []Node{{}, {Agents: true}, {Labels: []string{"gpu"}}, {Labels: []string{"gpu", "arm64"}, Agents: true}}
	for _, labels := range [][]string{nil, {"gpu"}, {"arm64"}, {"arm64", "gpu"}, {"gpu", "arm64"}, {"big"}, {"big", "gpu"}} {
		for _, n := range nodes {
			if got, want := slices.Contains(n.Places(), PlaceOf(labels)), n.Serves(labels); got != want {
				t.Errorf("a node %+v has the place of %q: %t, but serves it: %t", n, labels, got, want)
			}
		}
		if got := LabelsOf(PlaceOf(labels)); !slices.Equal(got, slices.Sorted(slices.Values(labels))) {
			t.Errorf("the labels of the place of %q are %q", labels, got)
		}
	}
}

func TestAttemptIsLeftToTheNodeThatStartsItFastest(t *testing.T) {
	self := Node{Agents: true, Folder: "self"}
	others := []Node{{Agents: true, Folder: "a"}, {Agents: true, Folder: "b"}, {Folder: "webhooks"}}
	for _, c := range []struct {
		folders []string
		want    string
	}{
		{nil, ""},
		{[]string{"", ""}, ""},
		{[]string{"a", "b"}, "a"},
		{[]string{"", "b"}, "b"},
		{[]string{"gone", "b"}, "b"},
		{[]string{"webhooks", "b"}, "b"},
		{[]string{"self", "b"}, ""},
		{[]string{"a", "self"}, "a"},
		{[]string{"gone", "self"}, ""},
		{[]string{"gone"}, ""},
	} {
		if got := Warm(self, others, c.folders...); got != c.want {
			t.Errorf("of the folders %q: left to %q, want %q", c.folders, got, c.want)
		}
	}
	if !slices.Contains(others[0].Places(), InFolder("a")) || !LeftToNode(InFolder("a")) || LeftToNode(PlaceOf([]string{"gpu"})) {
		t.Error("the place of a folder is open to another node")
	}
}
