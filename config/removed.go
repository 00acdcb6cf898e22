package config

import "regexp"

// removed says of each key that is gone what replaces it. A key in a list has [] for its index, as in backends[].name.
// "KEY: VALUE" is a value that is gone of a key that is not.
var removed = map[string]string{
	"backlog":                       "is gone; ask for work on each issue, by the label pawl, an assignment or the comment /pawl solve",
	"policy.learning.value":         "is gone; backends are chosen by the quality of their work, and policy.budget bounds its cost",
	"policy.learning.cascade":       "is gone; use policy.learning.mode: learn, which finds the backend whose work is verified most often",
	"policy.learning.mode: cascade": "cascade is gone; use learn, which finds the backend whose work is verified most often",
	"tracing":                       "is gone; each line of the log names its delivery, thread and attempt",
}

// anyIndex matches the index of an item of a list.
var anyIndex = regexp.MustCompile(`\[\d+\]`)
