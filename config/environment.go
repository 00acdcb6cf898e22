package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

// Environment describes what agents need to work in a repository.
type Environment struct {
	Setup        []string          `yaml:"setup"`
	Devcontainer bool              `yaml:"devcontainer"` // opt-in: the file was written for another tool
	Image        string            `yaml:"image"`
	Paths        []string          `yaml:"paths"`
	Env          map[string]string `yaml:"env"`
	Timeout      time.Duration     `yaml:"timeout"` // per command; zero means DefaultSetupTime
	RunsOn       []string          `yaml:"runs_on"` // labels that a node must have; empty for any node
}

// DefaultSetupTime suffices for a cold install of a large project.
const (
	DefaultSetupTime = 20 * time.Minute
	maxSetupTime     = 2 * time.Hour
)

// Time returns the time limit of each setup command.
func (e Environment) Time() time.Duration { return cmp.Or(e.Timeout, DefaultSetupTime) }

// These limits exceed the needs of usual CI environments.
const (
	maxPaths = 20
	maxEnv   = 50
)

// systemFolders come from the sandbox. environment.paths must not name them.
var systemFolders = []string{"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "tmp", "usr"}

func (e Environment) validate(s *source) {
	validateCommands(s, "environment.setup", e.Setup)
	s.validateLabels("environment.runs_on", e.RunsOn)
	s.addIf(len(e.Paths) > maxPaths, "environment.paths", "has %d folders; use at most %d", len(e.Paths), maxPaths)
	for i, p := range e.Paths {
		key := fmt.Sprintf("environment.paths[%d]", i)
		first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
		s.addIf(
			!isPlainFolder(p),
			key,
			"%s is not a plain folder path; write it like /opt/sdk or build/cache",
			quote(p),
		)
		if path.IsAbs(p) {
			s.addIf(
				slices.Contains(systemFolders, first),
				key,
				"%s is a system folder; use another one, such as a folder below /opt",
				quote(p),
			)
		} else {
			s.addIf(strings.EqualFold(first, ".git"), key, "%s belongs to git; use another folder", quote(p))
		}
	}
	s.addIf(len(e.Env) > maxEnv, "environment.env", "has %d variables; use at most %d", len(e.Env), maxEnv)
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		key := child("environment.env", name)
		s.addIf(!variableName.MatchString(name), key, "is not the name of an environment variable; use letters, digits and _")
		s.addIf(isOwnVariable(name, "HOME", "PATH"), key, "is set by Pawl; use another name")
		s.addIf(
			len(e.Env[name]) > maxVerifyBytes || strings.ContainsRune(e.Env[name], 0),
			key,
			"is longer than %d bytes or holds a NUL byte",
			maxVerifyBytes,
		)
	}
	if s.set("environment.timeout") {
		between(s, "environment.timeout", e.Timeout, time.Second, maxSetupTime)
	}
}

// isPlainFolder reports whether a path is clean and not the root.
func isPlainFolder(p string) bool {
	switch p {
	case "", "/", ".":
		return false
	}
	if strings.HasPrefix(p, "..") || strings.ContainsRune(p, 0) {
		return false
	}
	return path.Clean(p) == p
}

// isOwnVariable reports whether Pawl sets a variable: one that starts with PAWL_, or one of others.
func isOwnVariable(name string, others ...string) bool {
	return strings.HasPrefix(name, "PAWL_") || slices.Contains(others, name)
}

// Images restricts the images that repositories may use.
type Images struct {
	Registries []string `yaml:"registries"` // hosts; an empty list turns images off
}

func (i Images) validate(s *source) {
	for n, host := range i.Registries {
		_, err := name.NewRegistry(host, name.StrictValidation)
		s.addIf(
			err != nil,
			fmt.Sprintf("images.registries[%d]", n),
			"%s is not a registry host; write it like docker.io or registry.example.com:5000",
			quote(host),
		)
	}
}

// allow adds a problem if the server does not allow an image.
func (i Images) allow(s *source, image string, box Sandbox) {
	ref, err := name.ParseReference(image)
	if err != nil {
		s.add(
			"environment.image",
			"%s is not an image name; write it like node:22 or registry.example.com/owner/name:1",
			quote(image),
		)
		return
	}
	s.addIf(
		box.Bare(),
		"environment.image",
		"needs the sandbox, which is off on this server; remove it, or ask the operator to set sandbox.mode to auto",
	)
	s.addIf(!slices.ContainsFunc(i.Registries, func(host string) bool {
		r, err := name.NewRegistry(host)
		return err == nil && r.RegistryStr() == ref.Context().RegistryStr()
	}), "environment.image", "%s comes from a registry that this server does not allow; remove it, or ask the operator to add %q to images.registries",
		quote(image), strings.TrimPrefix(ref.Context().RegistryStr(), "index."))
}

const DevcontainerFile = ".devcontainer/devcontainer.json"

// WithDevcontainer takes a missing image and missing setup commands from a devcontainer.json.
func (e Environment) WithDevcontainer(data []byte) (Environment, []Problem) {
	s := newSource(DevcontainerFile, nil)
	var d struct {
		Image    string          `json:"image"`
		OnCreate json.RawMessage `json:"onCreateCommand"`
		Update   json.RawMessage `json:"updateContentCommand"`
	}
	if err := json.Unmarshal(plainJSON(data), &d); err != nil {
		s.addAt(position{}, "", "cannot be read: %s", err)
		return e, s.problems
	}
	e.Image = cmp.Or(e.Image, d.Image)
	if len(e.Setup) > 0 {
		return e, nil
	}
	for _, c := range []struct {
		key string
		raw json.RawMessage
	}{{"onCreateCommand", d.OnCreate}, {"updateContentCommand", d.Update}} {
		lines, err := devcommands(c.raw)
		if err != nil {
			s.add(c.key, "%s", err)
		}
		e.Setup = append(e.Setup, lines...)
	}
	validateCommands(s, "setup", e.Setup)
	return e, s.problems
}

// devcommands returns the command lines of a devcontainer.json's shell line, argument list or group. It sorts a group
// by name.
func devcommands(raw json.RawMessage) ([]string, error) {
	var line string
	var argv []string
	var group map[string]json.RawMessage
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case json.Unmarshal(raw, &line) == nil:
		return []string{line}, nil
	case json.Unmarshal(raw, &argv) == nil:
		return []string{CommandLine(argv)}, nil
	}
	if err := json.Unmarshal(raw, &group); err != nil {
		return nil, errors.New("is neither a command line, a list of arguments nor a group of these")
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(group)) {
		if bytes.HasPrefix(group[name], []byte("{")) {
			return nil, errors.New("has a group inside a group")
		}
		more, err := devcommands(group[name])
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// notJSON matches comments and trailing commas. Its first group preserves strings.
var notJSON = regexp.MustCompile(`("(?:[^"\\]|\\.)*")|//[^\n]*|(?s:/\*.*?\*/)|,(?:\s|//[^\n]*\n|(?s:/\*.*?\*/))*([]}])`)

func plainJSON(data []byte) []byte { return notJSON.ReplaceAll(data, []byte("$1$2")) }

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

func CommandLine(argv []string) string {
	words := slices.Clone(argv)
	for i, word := range words {
		if !plainWord.MatchString(word) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
