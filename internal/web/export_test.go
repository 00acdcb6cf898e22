package web

import (
	"maps"
	"slices"
	"strings"
)

// PagePatterns are the patterns of all that people reach by GET.
func PagePatterns(o Options) []string {
	p, err := newPages(o)
	if err != nil {
		panic(err)
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.site())), func(pattern string) bool { return !strings.HasPrefix(pattern, "GET ") })
}
