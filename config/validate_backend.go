package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// backendName is what can be written after /pawl use and shown in a table.
var backendName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// githubVariables hold GitHub credentials by convention. An agent that holds
// one acts as that person, past every limit of Pawl.
var githubVariables = []string{"GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN"}

func (s *source) validateBackends(backends []Backend, providers []Provider) {
	if len(backends) == 0 {
		s.add("backends", "is missing; name at least one agent, such as {name: codex, kind: codex}")
	}
	first := map[string]int{}
	for i, b := range backends {
		key := fmt.Sprintf("backends[%d]", i)
		s.validateBackend(key, b)
		s.validateAccess(key, b, providers)
		// Maintainers type the name, so case must not decide between two.
		name := strings.ToLower(b.Name)
		if j, again := first[name]; again && name != "" {
			s.add(key+".name", "%q is also the name of backends[%d]; names must differ in more than case", b.Name, j)
			continue
		}
		first[name] = i
	}
}

func (s *source) validateBackend(key string, b Backend) {
	switch {
	case b.Name == "":
		s.add(key+".name", "is missing; give each backend a name of its own")
	case !backendName.MatchString(b.Name):
		s.add(key+".name", "%s is not a name; use up to 64 letters, digits, dots, dashes and underscores", s.found(key+".name"))
	}
	if b.Kind == "" {
		s.add(key+".kind", "is missing; use codex, claude, gemini, opencode or command")
	} else {
		s.oneOf(key+".kind", b.Kind, Codex, Claude, Gemini, OpenCode, Command)
	}
	s.validateArgv(key, b)
	s.validateStream(key, b)
	for _, word := range []struct{ name, value string }{
		{"model", b.Model}, {"effort", b.Effort}, {"escalated_effort", b.EscalatedEffort}, {"account", b.Account},
	} {
		if strings.HasPrefix(word.value, "-") || strings.ContainsFunc(word.value, isControl) {
			s.add(key+"."+word.name, "%s starts with a dash or holds a control character; the agent would read it as something else", s.found(key+"."+word.name))
		}
	}
	s.validateEnv(key, "env", b.Env)
	s.validateTimeouts(key, b)
}

func (s *source) validateArgv(key string, b Backend) {
	if b.Kind == Command && len(b.Argv) == 0 {
		s.add(key+".argv", `is missing; kind command needs the program and its arguments, such as ["/usr/local/bin/my-agent"]`)
		return
	}
	for i, arg := range b.Argv {
		if strings.ContainsRune(arg, 0) || (i == 0 && arg == "") {
			s.add(fmt.Sprintf("%s.argv[%d]", key, i), "is empty or holds a NUL byte; the first item is the program, the others its arguments")
		}
	}
}

func (s *source) validateStream(key string, b Backend) {
	if b.Stream == "" || b.Stream == b.Kind && b.Kind != Command {
		return
	}
	s.oneOf(key+".stream", b.Stream, Plain, Codex, Claude, Gemini, OpenCode)
	if b.Kind != Command && s.set(key+".stream") {
		s.add(key+".stream", "differs from kind %s, which has its own stream; remove it, or use kind command", quote(b.Kind))
	}
}

func (s *source) validateEnv(key, list string, names []string) {
	for i, name := range names {
		at := fmt.Sprintf("%s.%s[%d]", key, list, i)
		switch user, own := s.variables[name]; {
		case !validVariable(name):
			s.add(at, "%s is not the name of an environment variable; list names, without values", quote(name))
		case own && holdsSecret(user):
			s.add(at, "%s is what %s is read from; an agent must not get it, so remove it here or use another variable there", name, user)
		case slices.Contains(githubVariables, name):
			s.add(at, "%s holds a GitHub credential; an agent must not get one, so remove it", name)
		case strings.HasPrefix(name, "PAWL_"), name == "HOME":
			s.add(at, "%s is set by Pawl for each attempt; remove it", name)
		}
	}
}

// holdsSecret reports whether the variable used at the key is Pawl's own
// business: the App's credentials, the database's password or a provider's key.
func holdsSecret(key string) bool {
	return strings.HasPrefix(key, "github.") || key == "database" || strings.HasPrefix(key, "providers[")
}

func (s *source) validateTimeouts(key string, b Backend) {
	if b.Timeout <= 0 || b.Timeout > maxTimeout {
		s.add(key+".timeout", "%s is out of range; use a duration up to %s", b.Timeout, maxTimeout)
		return
	}
	for _, part := range []struct {
		name  string
		value time.Duration
	}{{"idle_timeout", b.IdleTimeout}, {"startup_timeout", b.StartupTimeout}} {
		if part.value <= 0 || part.value > b.Timeout {
			s.add(key+"."+part.name, "%s is out of range; use a duration up to the timeout of %s", part.value, b.Timeout)
		}
	}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
