package config

import (
	"fmt"
	"slices"
	"strings"
)

// RepoFile is where a repository keeps its configuration. It is read from the
// default branch only.
const RepoFile = ".github/pawl.yml"

// maxRepoBytes bounds the repository's file, which anybody who can write to the
// repository writes.
const maxRepoBytes = 64 << 10

// The bounds of the lists in the repository's file. Ten commands of 4 KiB are a
// long CI job; a hundred patterns a long CODEOWNERS.
const (
	maxVerify      = 10
	maxVerifyBytes = 4096
	maxPatterns    = 100
	maxPattern     = 512
)

// Triggers are the names of everything that can ask Pawl for work, in the words
// that policy uses.
func Triggers() []string {
	return []string{"command", "mention", "label", "review", "comment", "description", "check_run"}
}

// Repo is the repository's own configuration. The zero value, which is also
// that of a repository without the file, narrows nothing.
type Repo struct {
	// Verify are command lines, run one after another by sh -c inside the
	// sandbox; an attempt is verified when all of them exit with 0.
	Verify []string `yaml:"verify"`
	// Reports are patterns of JUnit XML files that the verify commands write, as
	// in ProtectedPaths; they are read beside what the commands print.
	Reports []string `yaml:"reports"`
	// Triggers are what this repository listens to; empty means all.
	Triggers []string `yaml:"triggers"`
	// Backends are the names of the server's backends that may work here; empty
	// means all.
	Backends []string `yaml:"backends"`
	// AutoContinue overrides the server's switch; nil leaves it as it is.
	AutoContinue *bool `yaml:"auto_continue_on_limit_reset"`
	// ProtectedPaths are patterns of files that no attempt may change, beside
	// those that are always protected. See Protects.
	ProtectedPaths []string     `yaml:"protected_paths"`
	Restarts       RepoRestarts `yaml:"restarts"`

	// file and places say where the keys stand, for the problems that Narrow
	// finds.
	file   string
	places map[string]place
}

// RepoRestarts lowers the server's bounds.
type RepoRestarts struct {
	// Max overrides the server's restarts.max; nil leaves it as it is.
	Max *int `yaml:"max"`
}

// ParseRepo reads a repository's configuration. With any problem the Repo is of
// no use and nothing may run.
func ParseRepo(name string, data []byte) (Repo, []Problem) {
	if len(data) > maxRepoBytes {
		return Repo{}, []Problem{{File: name, Line: 1,
			Message: fmt.Sprintf("is %d bytes long; a repository's configuration may have %d", len(data), maxRepoBytes)}}
	}
	s := newSource(name, nil)
	r := Repo{file: name, places: s.places}
	if s.read(data, &r) {
		s.validateRepo(r)
	}
	if len(s.problems) > 0 {
		return Repo{}, s.sorted()
	}
	return r, nil
}

func (s *source) validateRepo(r Repo) {
	if len(r.Verify) > maxVerify {
		s.add("verify", "has %d commands; use at most %d, or put them into a script", len(r.Verify), maxVerify)
	}
	for i, command := range r.Verify {
		key := fmt.Sprintf("verify[%d]", i)
		switch {
		case strings.TrimSpace(command) == "":
			s.add(key, "is empty; write a command line or remove it")
		case len(command) > maxVerifyBytes:
			s.add(key, "is %d bytes long; use at most %d, or put it into a script", len(command), maxVerifyBytes)
		case strings.ContainsRune(command, 0):
			s.add(key, "holds a NUL byte, which no shell accepts; remove it")
		}
	}
	s.validateTriggers(r.Triggers)
	if s.set("backends") && len(r.Backends) == 0 {
		s.add("backends", "names no backend; leave the key out to allow all of the server's")
	}
	if r.Restarts.Max != nil && *r.Restarts.Max < 0 {
		s.add("restarts.max", "%d is below 0; use 0 for no restarts", *r.Restarts.Max)
	}
	s.validatePatterns("protected_paths", r.ProtectedPaths)
	s.validatePatterns("reports", r.Reports)
}

func (s *source) validatePatterns(key string, patterns []string) {
	if len(patterns) > maxPatterns {
		s.add(key, "has %d patterns; use at most %d", len(patterns), maxPatterns)
	}
	for i, pattern := range patterns {
		if problem := patternProblem(pattern); problem != "" {
			s.add(fmt.Sprintf("%s[%d]", key, i), "%s %s", quote(pattern), problem)
		}
	}
}

func (s *source) validateTriggers(triggers []string) {
	if s.set("triggers") && len(triggers) == 0 {
		s.add("triggers", "names no trigger; leave the key out to listen to all, or uninstall the App from this repository")
	}
	for i, trigger := range triggers {
		if !slices.Contains(Triggers(), trigger) {
			s.add(fmt.Sprintf("triggers[%d]", i), "%s is not a trigger; use %s", quote(trigger), orList(Triggers()))
		}
	}
}
