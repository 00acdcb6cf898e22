package config

import (
	"fmt"
	"slices"
	"strings"
)

// Effective is what holds for one repository: the server's configuration,
// narrowed by the repository's.
type Effective struct {
	// Policy is the server's, with the repository's lower bounds.
	Policy Policy
	// Backends are those that may work on this repository, in the server's
	// order; never empty unless there are problems.
	Backends []Backend
	// Verify are the command lines that verify an attempt; empty means that
	// there is nothing to verify by.
	Verify []string
	// Reports are the patterns of the JUnit files that these write.
	Reports []string
	// Triggers are what the repository listens to; never empty.
	Triggers []string
	// ProtectedPaths are the patterns that Protects matches; never empty.
	ProtectedPaths []string
}

// Narrow applies a repository's configuration. The repository may lower what
// the server allows and never raise it: where it tries, there is a problem,
// Effective keeps the server's value, and nothing may run.
func (c Server) Narrow(r Repo) (Effective, []Problem) {
	s := newSource(r.file, nil)
	s.places = r.places
	e := Effective{
		Policy:         c.Policy,
		Backends:       slices.Clone(c.Backends),
		Verify:         slices.Clone(r.Verify),
		Reports:        slices.Clone(r.Reports),
		Triggers:       slices.Clone(r.Triggers),
		ProtectedPaths: append(alwaysProtected(), r.ProtectedPaths...),
	}
	if len(e.Triggers) == 0 {
		e.Triggers = Triggers()
	}
	if len(r.Backends) > 0 {
		e.Backends = s.narrowBackends(c.Backends, r.Backends)
	}
	if r.AutoContinue != nil {
		if *r.AutoContinue && !c.Policy.UsageLimit.AutoContinue {
			s.add("auto_continue_on_limit_reset", "is switched off by the server; remove it, or ask the operator to switch policy.usage_limit.auto_continue_on_limit_reset on")
		}
		e.Policy.UsageLimit.AutoContinue = *r.AutoContinue && c.Policy.UsageLimit.AutoContinue
	}
	if most := r.Restarts.Max; most != nil {
		if *most > c.Policy.Restarts.Max {
			s.add("restarts.max", "%d is above the server's %d; lower it, or ask the operator to raise policy.restarts.max", *most, c.Policy.Restarts.Max)
		}
		e.Policy.Restarts.Max = min(*most, c.Policy.Restarts.Max)
	}
	return e, s.sorted()
}

func (s *source) narrowBackends(server []Backend, names []string) []Backend {
	var allowed []string
	for _, b := range server {
		allowed = append(allowed, b.Name)
	}
	for i, name := range names {
		if !slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, name) }) {
			s.add(fmt.Sprintf("backends[%d]", i), "%s is not a backend of this server; use %s", quote(name), orList(allowed))
		}
	}
	return slices.DeleteFunc(slices.Clone(server), func(b Backend) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(b.Name, name) })
	})
}
