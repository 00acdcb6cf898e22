package policy

import (
	"slices"
	"strings"
)

// Node is a running server as attempts see it. The zero value runs no agents.
type Node struct {
	Labels []string `json:"labels,omitempty"`
	Agents bool     `json:"agents,omitempty"`
	Folder string   `json:"folder,omitempty"` // names its data folder; see thread.Started.Place
}

// Serves reports whether the node runs attempts that need the labels.
func (n Node) Serves(labels []string) bool {
	return n.Agents && len(missing(labels, n.Labels)) == 0
}

// missing returns the labels that are not in has.
func missing(labels, has []string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return slices.Contains(has, l) })
}

// anyAgents is the place of an attempt that needs no label.
const anyAgents = "*"

// PlaceOf returns the labels that an attempt needs, sorted and joined by commas, or * for none.
func PlaceOf(labels []string) string {
	if len(labels) == 0 {
		return anyAgents
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(labels))), ",")
}

// inFolder begins the place of an attempt that is reserved for one node. No label begins with it.
const inFolder = "@"

// InFolder returns the place of an attempt that is reserved for the node with a data folder.
func InFolder(folder string) string { return inFolder + folder }

// LeftToNode reports whether a place names one node.
func LeftToNode(place string) bool { return strings.HasPrefix(place, inFolder) }

// Warm returns the first of the data folders that belongs to a running node: the attempt starts fastest there. The
// result is empty if that node is this one or if there is none.
func Warm(self Node, others []Node, folders ...string) string {
	for _, f := range folders {
		if f == "" {
			continue
		}
		if f == self.Folder {
			return ""
		}
		if slices.ContainsFunc(others, func(n Node) bool { return n.Agents && n.Folder == f }) {
			return f
		}
	}
	return ""
}

func LabelsOf(place string) []string {
	if place == "" || place == anyAgents {
		return nil
	}
	return strings.Split(place, ",")
}

// Places returns the places that a node serves: its folder, and one for each subset of its labels.
func (n Node) Places() []string {
	if !n.Agents {
		return nil
	}
	subsets := [][]string{nil}
	for _, l := range n.Labels {
		for _, s := range subsets {
			subsets = append(subsets, append(slices.Clone(s), l))
		}
	}
	var all []string
	if n.Folder != "" {
		all = append(all, InFolder(n.Folder))
	}
	for _, s := range subsets {
		all = append(all, PlaceOf(s))
	}
	return all
}

// Elsewhere returns the wait of an attempt that this node cannot run. others are the other running nodes.
func Elsewhere(labels []string, others []Node) Decision {
	wait := Decision{Action: DoWait, Rule: RuleCrowded}
	if slices.ContainsFunc(others, func(n Node) bool { return n.Serves(labels) }) {
		wait.Reasons = Because(RuleCrowded, "this server does not take attempts"+withLabels(labels)+"; another one does")
		return wait
	}
	wait.Rule, wait.Hint = RuleNoNode, "The operator must start such a server; Pawl then continues by itself."
	wait.Reasons = Because(RuleNoNode, "no running server takes attempts"+withLabels(labels))
	return wait
}

func withLabels(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return " that need the labels " + strings.Join(labels, ", ") + " (environment.runs_on)"
}
