package config

import (
	"path"
	"strings"
)

// alwaysProtected are the paths that no attempt may change on any repository:
// workflows run with the repository's secrets, and the configuration decides
// what Pawl may do.
func alwaysProtected() []string {
	return []string{".github/workflows/**", RepoFile}
}

// Protects reports whether a path is protected and by which pattern. The path
// is relative to the root of the repository, with slashes.
//
// A pattern is matched from the root, part by part as path.Match does; ** stands
// for any number of parts, and a pattern that matches a folder protects what is
// in it. Case is ignored, because a checkout on some file systems ignores it.
func (e Effective) Protects(file string) (pattern string, ok bool) {
	return matched(e.ProtectedPaths, file)
}

// Reported reports whether a file is a report of the verify commands.
func (e Effective) Reported(file string) bool {
	_, ok := matched(e.Reports, file)
	return ok
}

// matched is the first pattern that matches a file.
func matched(patterns []string, file string) (pattern string, ok bool) {
	parts := strings.Split(strings.ToLower(path.Clean(file)), "/")
	for _, p := range patterns {
		if matches(strings.Split(strings.ToLower(strings.TrimSuffix(p, "/")), "/"), parts) {
			return p, true
		}
	}
	return "", false
}

// matches reports whether the pattern matches the parts or a folder above them.
// It walks both once per **, remembering only the last one, so a hostile
// pattern costs at most pattern × parts.
func matches(pattern, parts []string) bool {
	p, i := 0, 0
	star, resume := -1, 0
	for p < len(pattern) {
		if pattern[p] == "**" {
			star, resume = p, i
			p++
			continue
		}
		if i < len(parts) {
			// A malformed pattern was refused when the file was read.
			if ok, err := path.Match(pattern[p], parts[i]); ok && err == nil {
				p, i = p+1, i+1
				continue
			}
		}
		if star < 0 || resume >= len(parts) {
			return false
		}
		resume++
		p, i = star+1, resume
	}
	return true
}

// patternProblem says why a pattern cannot protect anything; empty when it can.
func patternProblem(pattern string) string {
	parts := strings.Split(strings.TrimSuffix(pattern, "/"), "/")
	if len(pattern) > maxPattern {
		return "is too long; use a ** pattern for many paths"
	}
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return "is not a path from the root of the repository; write it like docs/** or go.mod"
		}
		if _, err := path.Match(part, ""); err != nil {
			return "is not a valid pattern; close every [ and escape with a backslash"
		}
	}
	return ""
}
