package web

import (
	"strings"

	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver/thread"
)

// believed describes a grade source's health in one word with its style.
func believed(h learning.SourceHealth) word {
	switch {
	case h.Degraded:
		return word{"degraded", "failed"}
	case h.Values == 0:
		return word{"silent", "dim"}
	}
	return word{"believed", "done"}
}

// attemptHref links an attempt's name (owner/repo#number/attempt) to its thread, or returns empty.
func attemptHref(name string) string {
	slash := max(0, strings.LastIndexByte(name, '/'))
	t, err := thread.Parse(name[:slash])
	if err != nil {
		return ""
	}
	return href(t)
}
