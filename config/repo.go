package config

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// RepoFile is a repository's configuration, read from the default branch only.
const RepoFile = ".github/pawl.yml"

// maxRepoBytes bounds the repository's file, which anybody who can write there writes.
const maxRepoBytes = 64 << 10

// The bounds of its lists: ten commands of 4 KiB are a long CI job, a hundred patterns a long CODEOWNERS.
const (
	maxVerify      = 10
	maxVerifyBytes = 4096
	maxPatterns    = 100
	maxPattern     = 512
)

// Triggers are the names of everything that can ask Pawl for work, as policy calls it.
func Triggers() []string {
	return []string{"command", "mention", "label", "assignment", "review", "comment", "description", "check_run", "base"}
}

// Repo is the repository's own configuration. Zero, as without the file, narrows nothing.
type Repo struct {
	Environment Environment `yaml:"environment"`

	Network RepoNetwork `yaml:"network"`

	Verify   []string `yaml:"verify"`   // command lines, run one after another by sh -c in the sandbox; all must exit with 0
	Reports  []string `yaml:"reports"`  // patterns, as in ProtectedPaths, of JUnit XML files that the verify commands write
	Triggers []string `yaml:"triggers"` // what this repository listens to; empty means all
	Backends []string `yaml:"backends"` // the server's that may work here; empty means all
	// AutoContinue overrides the server's switch; nil leaves it as it is.
	AutoContinue *bool `yaml:"auto_continue_on_limit_reset"`
	// ProtectedPaths are patterns of files that no attempt may change, beside RepoFile. See Protects.
	ProtectedPaths []string `yaml:"protected_paths"`
	// AllowPaths are patterns of files that attempts may change although they are protected by default.
	AllowPaths []string `yaml:"allow_paths"`
	// AllowSecrets are fingerprints of what looks like a secret and may be committed, as a receipt names them.
	AllowSecrets []string     `yaml:"allow_secrets"`
	Restarts     RepoRestarts `yaml:"restarts"`
	Checks       RepoChecks   `yaml:"checks"`
	PullRequest  RepoPull     `yaml:"pull_request"`

	// file and places say where the keys stand, for Narrow's problems.
	file   string
	places map[string]place
}

// RepoRestarts lowers the server's bounds.
type RepoRestarts struct {
	// Max overrides the server's restarts.max; nil leaves it as it is.
	Max *int `yaml:"max"`
}

// RepoPull says what Pawl does with its pull request once the work is verified. Nil is true.
type RepoPull struct {
	ReadyWhenVerified *bool `yaml:"ready_when_verified"` // it is no draft any more
	RequestReview     *bool `yaml:"request_review"`      // whoever asked for the work is asked for a review
}

// Ready reports whether a verified pull request stops being a draft, Review whether a review is asked for then.
func (p RepoPull) Ready() bool  { return p.ReadyWhenVerified == nil || *p.ReadyWhenVerified }
func (p RepoPull) Review() bool { return p.RequestReview == nil || *p.RequestReview }

// RepoChecks says when the check runs beside pawl are made. Empty means ChecksAuto.
type RepoChecks struct {
	Severity   string `yaml:"severity"`
	Stagnation string `yaml:"stagnation"`
}

// When a check run is made. One that is there is kept up to date in any case.
const (
	ChecksAuto   = "auto" // where it has something to say
	ChecksNever  = "never"
	ChecksAlways = "always"
)

// ParseRepo reads a repository's configuration. With any problem the Repo is of no use and nothing may run.
func ParseRepo(name string, data []byte) (Repo, []Problem) {
	s := newSource(name, nil)
	r := Repo{file: name, places: s.places}
	if len(data) > maxRepoBytes {
		s.addAt(place{}, "", "is %d bytes long; a repository's configuration may have %d", len(data), maxRepoBytes)
	} else if s.read(data, &r) {
		s.validateRepo(r)
	}
	if len(s.problems) > 0 {
		return Repo{}, s.sorted()
	}
	return r, nil
}

// CheckRepo is what is wrong with a repository's configuration: in itself, and on a server, where one is given, which may
// not allow what it says.
func CheckRepo(server *Server, name string, data []byte) []Problem {
	r, problems := ParseRepo(name, data)
	if len(problems) == 0 && server != nil {
		_, problems = server.Narrow(r)
	}
	return problems
}

func (s *source) validateRepo(r Repo) {
	validateCommands(s, "verify", r.Verify)
	r.Environment.validate(s)
	for key, list := range map[string][]policy.HostRule{
		"setup":  r.Network.Setup,
		"agent":  r.Network.Agent,
		"verify": r.Network.Verify,
	} {
		validateHosts(s, "network."+key, list)
	}
	s.addIf(
		s.set("triggers") && len(r.Triggers) == 0,
		"triggers",
		"names no trigger; leave the key out to listen to all, or uninstall the App from this repository",
	)
	for i, trigger := range r.Triggers {
		s.addIf(
			!slices.Contains(Triggers(), trigger),
			fmt.Sprintf("triggers[%d]", i),
			"%s is not a trigger; use %s",
			quote(trigger),
			orList(Triggers()),
		)
	}
	s.addIf(
		s.set("backends") && len(r.Backends) == 0,
		"backends",
		"names no backend; leave the key out to allow all of the server's",
	)
	if r.Restarts.Max != nil && *r.Restarts.Max < 0 {
		s.add("restarts.max", "%d is below 0; use 0 for no restarts", *r.Restarts.Max)
	}
	for key, when := range map[string]string{"checks.severity": r.Checks.Severity, "checks.stagnation": r.Checks.Stagnation} {
		if when != "" {
			s.oneOf(key, when, ChecksAuto, ChecksNever, ChecksAlways)
		}
	}
	s.validatePatterns("protected_paths", r.ProtectedPaths)
	s.validatePatterns("allow_paths", r.AllowPaths)
	s.validatePatterns("reports", r.Reports)
	for i, f := range r.AllowSecrets {
		s.addIf(
			!fingerprint.MatchString(f),
			fmt.Sprintf("allow_secrets[%d]", i),
			"is no fingerprint; use the 16 hexadecimal digits that a check run names",
		)
	}
}

// fingerprint is the form of what Pawl names a secret by.
var fingerprint = regexp.MustCompile(`^[0-9a-fA-F]{16}$`)

func validateCommands(s *source, list string, commands []string) {
	s.addIf(
		len(commands) > maxVerify,
		list,
		"has %d commands; use at most %d, or put them into a script",
		len(commands),
		maxVerify,
	)
	for i, command := range commands {
		key := fmt.Sprintf("%s[%d]", list, i)
		s.addIf(strings.TrimSpace(command) == "", key, "is empty; write a command line or remove it")
		s.addIf(
			len(command) > maxVerifyBytes,
			key,
			"is %d bytes long; use at most %d, or put it into a script",
			len(command),
			maxVerifyBytes,
		)
		s.addIf(strings.ContainsRune(command, 0), key, "holds a NUL byte, which no shell accepts; remove it")
	}
}

func (s *source) validatePatterns(key string, patterns []string) {
	s.addIf(len(patterns) > maxPatterns, key, "has %d patterns; use at most %d", len(patterns), maxPatterns)
	for i, pattern := range patterns {
		if problem := patternProblem(pattern); problem != "" {
			s.add(fmt.Sprintf("%s[%d]", key, i), "%s %s", quote(pattern), problem)
		}
	}
}

// Effective is the server's configuration, narrowed by a repository's.
type Effective struct {
	Policy Policy // the server's, with the repository's lower bounds
	// Backends may work on this repository, in the server's order; never empty without problems.
	Backends       []Backend
	Environment    Environment
	Network        Network  // the server's, with the repository's shorter lists
	Verify         []string // the command lines that verify an attempt; empty: there is nothing to verify by
	Reports        []string // the patterns of the JUnit files that these write
	Triggers       []string // what the repository listens to; never empty
	ProtectedPaths []string // the patterns that Protects matches whatever AllowPaths says; never empty
	AllowPaths     []string // the patterns that are not protected by default
	AllowSecrets   []string // fingerprints of what only looks like a secret
}

// Narrow applies a repository's configuration, which may lower what the server allows and never raise it: where
// it tries, there is a problem, the server's value stays, and nothing may run.
func (c Server) Narrow(r Repo) (Effective, []Problem) {
	s := newSource(r.file, nil)
	s.places = r.places
	e := Effective{
		Policy: c.Policy, Backends: slices.Clone(c.Backends), Verify: slices.Clone(r.Verify), Reports: slices.Clone(r.Reports),
		Environment: r.Environment, Triggers: slices.Clone(r.Triggers), ProtectedPaths: append([]string{RepoFile}, r.ProtectedPaths...), // the configuration decides what Pawl may do
		AllowPaths: slices.Clone(r.AllowPaths), AllowSecrets: slices.Clone(r.AllowSecrets),
	}
	e.Network = c.Network.narrow(s, r.Network)
	if len(e.Triggers) == 0 {
		e.Triggers = Triggers()
	}
	if len(r.Backends) > 0 {
		e.Backends = s.narrowBackends(c.Backends, r.Backends)
	}
	for i, p := range r.Environment.Paths {
		s.addIf(
			c.Sandbox.Mode == SandboxNone && path.IsAbs(p),
			fmt.Sprintf("environment.paths[%d]", i),
			"%s is outside of HOME and the work tree, and this server has no sandbox that could show it there; remove it",
			quote(p),
		)
	}
	if image := r.Environment.Image; image != "" {
		c.Images.allow(s, image, c.Sandbox.Mode)
	}
	if on := &e.Policy.UsageLimit.AutoContinue; r.AutoContinue != nil {
		s.addIf(
			*r.AutoContinue && !*on,
			"auto_continue_on_limit_reset",
			"is switched off by the server; remove it, or ask the operator to switch policy.usage_limit.auto_continue_on_limit_reset on",
		)
		*on = *r.AutoContinue && *on
	}
	if most := r.Restarts.Max; most != nil {
		s.addIf(
			*most > c.Policy.Restarts.Max,
			"restarts.max",
			"%d is above the server's %d; lower it, or ask the operator to raise policy.restarts.max",
			*most,
			c.Policy.Restarts.Max,
		)
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

// protectedByDefault may attempts change only where the repository's file allows it: what runs with the
// repository's secrets, decides who reviews, runs on the machine of whoever opens the branch or configures the
// next agent, and what says where packages and submodules come from.
func protectedByDefault() []string {
	return append(configuresCLIs(),
		".github/workflows", ".github/actions", "CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS", ".github/dependabot.yml", ".github/dependabot.yaml",
		"**/.mcp.json", "**/.husky", "**/.devcontainer", "**/.devcontainer.json", "**/.vscode/tasks.json", "**/.gitattributes", ".gitmodules", ".lfsconfig",
		"**/.npmrc", "**/.yarnrc", "**/.yarnrc.yml", "**/.pnpmfile.cjs", "**/.pypirc", "**/pip.conf", "**/.cargo/config", "**/.cargo/config.toml",
		"**/pip.ini", "**/uv.toml", "**/bunfig.toml", "**/.bundle/config", "**/.gemrc", "**/.mvn", "**/nuget.config", "**/.condarc",
	)
}

// Protects reports whether a path, with slashes from the repository's root, is protected.
//
// A pattern is matched from the root, part by part as path.Match does; ** stands for any number of parts, and
// one that matches a folder protects what is in it. Case is ignored, as on some file systems.
func (e Effective) Protects(file string) bool {
	if matched(e.ProtectedPaths, file) {
		return true
	}
	return matched(protectedByDefault(), file) && !matched(e.AllowPaths, file)
}

// Reported tells report files by their names; nil without patterns.
func Reported(patterns []string) func(file string) bool {
	if len(patterns) == 0 {
		return nil
	}
	return func(file string) bool { return matched(patterns, file) }
}

func matched(patterns []string, file string) bool {
	parts := strings.Split(strings.ToLower(path.Clean(file)), "/")
	return slices.ContainsFunc(patterns, func(p string) bool {
		return matches(strings.Split(strings.ToLower(strings.TrimSuffix(p, "/")), "/"), parts)
	})
}

// matches reports whether the pattern matches the parts or a folder above them. It remembers only the last **,
// so a hostile pattern costs at most pattern × parts.
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
		switch part {
		case "", ".", "..":
			return "is not a path from the root of the repository; write it like docs/** or go.mod"
		}
		if _, err := path.Match(part, ""); err != nil {
			return "is not a valid pattern; close every [ and escape with a backslash"
		}
	}
	return ""
}
