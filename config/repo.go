package config

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// RepoFile takes effect on the default branch only.
const RepoFile = ".github/pawl.yml"

// maxRepoBytes limits the file, which every contributor with write permission can change.
const maxRepoBytes = 64 << 10

// Ten commands of 4 KiB make a long CI job; a hundred patterns make a long CODEOWNERS.
const (
	maxVerify      = 10
	maxVerifyBytes = 4096
	maxPatterns    = 100
	maxPattern     = 512
)

// Triggers lists events that can start work.
func Triggers() []string {
	return []string{"command", "mention", "label", "assignment", "review", "comment", "description", "check_run", "base"}
}

// Repo is a repository's configuration. The zero value narrows nothing.
type Repo struct {
	Environment Environment `yaml:"environment"`

	Network RepoNetwork `yaml:"network"`

	Verify   []string `yaml:"verify"`
	Reports  []string `yaml:"reports"`  // patterns
	Triggers []string `yaml:"triggers"` // empty for all
	Backends []string `yaml:"backends"` // empty for all
	// Nil AutoContinue keeps the server's value.
	AutoContinue   *bool        `yaml:"auto_continue_on_limit_reset"`
	ProtectedPaths []string     `yaml:"protected_paths"` // patterns; see Protects
	AllowPaths     []string     `yaml:"allow_paths"`     // patterns
	AllowSecrets   []string     `yaml:"allow_secrets"`
	Restarts       RepoRestarts `yaml:"restarts"`
	Checks         RepoChecks   `yaml:"checks"`
	PullRequest    RepoPull     `yaml:"pull_request"`
	Watch          RepoWatch    `yaml:"watch"`

	// file and positions locate Narrow's problems.
	file      string
	positions map[string]position
}

type RepoRestarts struct {
	Max *int `yaml:"max"` // nil keeps the server's limit
}

// RepoPull configures verified pull requests. Nil means true.
type RepoPull struct {
	ReadyWhenVerified *bool `yaml:"ready_when_verified"`
	RequestReview     *bool `yaml:"request_review"`
}

// Ready reports whether to mark a verified pull request as ready; Review reports whether to request a review.
func (p RepoPull) Ready() bool  { return p.ReadyWhenVerified == nil || *p.ReadyWhenVerified }
func (p RepoPull) Review() bool { return p.RequestReview == nil || *p.RequestReview }

// RepoWatch configures watches. Empty Pulls means WatchCommanded; nil Rounds means DefaultRounds. The server's
// policy.unattended also limits the rounds.
type RepoWatch struct {
	Pulls  string `yaml:"pulls"`
	Rounds *int   `yaml:"rounds"`
}

// What begins a watch, in addition to a command and to adding the label.
const (
	WatchCommanded = "commanded" // nothing else
	WatchLabelled  = "labelled"  // a labelled pull request that is reopened or leaves draft
	WatchOwn       = "own"       // a pull request that Pawl opens
)

// DefaultRounds is our choice: as many as policy.unattended allows by default.
const DefaultRounds = 5

// RepoChecks configures the optional check runs. Empty means ChecksAuto.
type RepoChecks struct {
	Severity   string `yaml:"severity"`
	Stagnation string `yaml:"stagnation"`
}

// When to create a check run. Existing ones are always updated.
const (
	ChecksAuto   = "auto" // if there is something to report
	ChecksNever  = "never"
	ChecksAlways = "always"
)

// ParseRepo reads a repository's configuration. If there is a problem, Pawl must run nothing.
func ParseRepo(name string, data []byte) (Repo, []Problem) {
	s := newSource(name, nil)
	r := Repo{file: name, positions: s.positions}
	if len(data) > maxRepoBytes {
		s.addAt(position{}, "", "has %d bytes; a repository's configuration may have %d", len(data), maxRepoBytes)
	} else if s.read(data, &r) {
		s.validateRepo(r)
	}
	if len(s.problems) > 0 {
		return Repo{}, s.sorted()
	}
	return r, nil
}

// CheckRepo lists the problems in a repository's configuration. With a server, it also checks what the server allows.
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
		"names no trigger; remove the key to allow all, or uninstall the App from this repository",
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
		"names no backend; remove the key to allow all of the server's",
	)
	if r.Restarts.Max != nil && *r.Restarts.Max < 0 {
		s.add("restarts.max", "%d is below 0; use 0 for no restarts", *r.Restarts.Max)
	}
	for key, when := range map[string]string{"checks.severity": r.Checks.Severity, "checks.stagnation": r.Checks.Stagnation} {
		if when != "" {
			s.oneOf(key, when, ChecksAuto, ChecksNever, ChecksAlways)
		}
	}
	if r.Watch.Pulls != "" {
		s.oneOf("watch.pulls", r.Watch.Pulls, WatchCommanded, WatchLabelled, WatchOwn)
	}
	if r.Watch.Rounds != nil && *r.Watch.Rounds < 1 {
		s.add("watch.rounds", "%d is below 1; use 1 for one round", *r.Watch.Rounds)
	}
	s.validatePatterns("protected_paths", r.ProtectedPaths)
	s.validatePatterns("allow_paths", r.AllowPaths)
	s.validatePatterns("reports", r.Reports)
	for i, f := range r.AllowSecrets {
		s.addIf(
			!fingerprint.MatchString(f),
			fmt.Sprintf("allow_secrets[%d]", i),
			"is not a fingerprint; use the 16 hexadecimal digits of a check run",
		)
	}
}

// fingerprint matches the digits by which check runs identify a secret.
var fingerprint = regexp.MustCompile(`^[0-9a-fA-F]{16}$`)

func validateCommands(s *source, list string, commands []string) {
	s.addIf(
		len(commands) > maxVerify,
		list,
		"has %d commands; use at most %d, or a script",
		len(commands),
		maxVerify,
	)
	for i, command := range commands {
		key := fmt.Sprintf("%s[%d]", list, i)
		s.addIf(strings.TrimSpace(command) == "", key, "is empty; write a command line or remove it")
		s.addIf(
			len(command) > maxVerifyBytes,
			key,
			"has %d bytes; use at most %d, or a script",
			len(command),
			maxVerifyBytes,
		)
		s.addIf(strings.ContainsRune(command, 0), key, "holds a NUL byte; remove it")
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

// Effective is a server's configuration narrowed by a repository's.
type Effective struct {
	Policy Policy // with the repository's limits
	// Backends keep the server's order; never empty without problems.
	Backends       []Backend
	Environment    Environment
	Network        Network
	Verify         []string
	Reports        []string
	Triggers       []string // never empty
	ProtectedPaths []string // apply despite AllowPaths; never empty
	AllowPaths     []string
	AllowSecrets   []string
	WatchPulls     string // what begins a watch; never empty
	WatchRounds    int    // rounds of a watch without a new remark by a user
}

// Narrow applies a repository's configuration, which can only lower limits. Raising a limit is a problem. If there is a
// problem, Pawl must run nothing.
func (c Server) Narrow(r Repo) (Effective, []Problem) {
	s := newSource(r.file, nil)
	s.positions = r.positions
	e := Effective{
		Policy: c.Policy, Backends: slices.Clone(c.Backends), Verify: slices.Clone(r.Verify), Reports: slices.Clone(r.Reports),
		Environment: r.Environment, Triggers: slices.Clone(r.Triggers), ProtectedPaths: append([]string{RepoFile}, r.ProtectedPaths...), // the configuration decides Pawl's permissions
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
			c.Sandbox.Bare() && path.IsAbs(p),
			fmt.Sprintf("environment.paths[%d]", i),
			"%s is outside HOME and the work tree, which needs the sandbox, and this server has none; remove it",
			quote(p),
		)
	}
	if image := r.Environment.Image; image != "" {
		c.Images.allow(s, image, c.Sandbox)
	}
	if on := &e.Policy.UsageLimit.AutoContinue; r.AutoContinue != nil {
		s.addIf(
			*r.AutoContinue && !*on,
			"auto_continue_on_limit_reset",
			"is off on this server; remove it, or ask the operator to set policy.usage_limit.auto_continue_on_limit_reset",
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
	e.WatchPulls, e.WatchRounds = cmp.Or(r.Watch.Pulls, WatchCommanded), c.narrowRounds(s, r.Watch.Rounds)
	return e, s.sorted()
}

func (c Server) narrowRounds(s *source, rounds *int) int {
	most := c.Policy.Unattended.MaxAttempts
	if rounds == nil {
		return min(DefaultRounds, most)
	}
	s.addIf(
		*rounds > most,
		"watch.rounds",
		"%d is above the server's %d; lower it, or ask the operator to raise policy.unattended.max_attempts",
		*rounds,
		most,
	)
	return min(*rounds, most)
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

// protectedByDefault lists files that run with secrets or on users' machines, choose reviewers, configure agents, or
// choose package sources.
func protectedByDefault() []string {
	return append(configuresCLIs(),
		".github/workflows", ".github/actions", "CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS", ".github/dependabot.yml", ".github/dependabot.yaml",
		"**/.mcp.json", "**/.husky", "**/.devcontainer", "**/.devcontainer.json", "**/.vscode/tasks.json", "**/.gitattributes", ".gitmodules", ".lfsconfig",
		"**/.npmrc", "**/.yarnrc", "**/.yarnrc.yml", "**/.pnpmfile.cjs", "**/.pypirc", "**/pip.conf", "**/.cargo/config", "**/.cargo/config.toml",
		"**/pip.ini", "**/uv.toml", "**/bunfig.toml", "**/.bundle/config", "**/.gemrc", "**/.mvn", "**/nuget.config", "**/.condarc",
	)
}

// Protects reports whether a slash-separated path from the repository's root is protected. Patterns match from the
// root like path.Match; ** matches any number of parts, and a folder includes its contents. Case is ignored.
func (e Effective) Protects(file string) bool {
	if matched(e.ProtectedPaths, file) {
		return true
	}
	return matched(protectedByDefault(), file) && !matched(e.AllowPaths, file)
}

// Reported returns a matcher for report files, or nil without patterns.
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

// matches reports whether the pattern matches the parts or a parent folder. It backtracks to the last ** only, which
// limits the cost to pattern × parts.
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
			// validatePatterns refused malformed patterns.
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

// patternProblem returns why a pattern is invalid, or empty.
func patternProblem(pattern string) string {
	parts := strings.Split(strings.TrimSuffix(pattern, "/"), "/")
	if len(pattern) > maxPattern {
		return "is too long; use a ** pattern for many paths"
	}
	for _, part := range parts {
		switch part {
		case "", ".", "..":
			return "is not a path from the repository's root; write it like docs/** or go.mod"
		}
		if _, err := path.Match(part, ""); err != nil {
			return "is not a valid pattern; close every [ and escape with a backslash"
		}
	}
	return ""
}
