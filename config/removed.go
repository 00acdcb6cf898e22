package config

import "regexp"

// removed maps removed keys to their error messages. [] stands for an index, as in backends[].name. "KEY: VALUE" is a
// removed value of a key that remains.
var removed = map[string]string{
	"backlog":                       "was removed; start work on each issue with the label pawl, an assignment or the comment /pawl solve",
	"policy.learning.value":         "was removed; Pawl chooses backends by quality, and policy.budget limits cost",
	"policy.learning.cascade":       "was removed; use policy.learning.mode: learn, which prefers the backend whose work is verified most often",
	"policy.learning.mode: cascade": "cascade was removed; use learn, which prefers the backend whose work is verified most often",
	"tracing":                       "was removed; each log line names its delivery, thread and attempt",
}

var anyIndex = regexp.MustCompile(`\[\d+\]`)
