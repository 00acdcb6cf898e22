package web

import (
	"strings"

	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver/thread"
)

// believed is how far a source of grades is believed, and the style of that word.
func believed(h learning.SourceHealth) word {
	switch {
	case h.Degraded:
		return word{"degraded", "failed"}
	case h.Values == 0:
		return word{"silent", "dim"}
	}
	return word{"believed", "done"}
}

// attemptHref is the address of an attempt's thread (owner/repo#number/attempt); empty for what is none.
func attemptHref(name string) string {
	slash := max(0, strings.LastIndexByte(name, '/'))
	t, err := thread.Parse(name[:slash])
	if err != nil {
		return ""
	}
	return href(t)
}
