package config

import (
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Load reads the server configuration from a file. env is os.LookupEnv or the like. The error is Problems when
// the file can be read and is wrong.
func Load(path string, env func(string) (string, bool)) (Server, error) { return load(path, env, true) }

// LoadWithoutApp reads a configuration for work without GitHub, in which the App need not be.
func LoadWithoutApp(path string, env func(string) (string, bool)) (Server, error) {
	return load(path, env, false)
}

func load(path string, env func(string) (string, bool), needsApp bool) (Server, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Server{}, fmt.Errorf("read configuration: %w (run pawl setup, or copy config/example.yml there)", err)
	}
	if err != nil {
		return Server{}, fmt.Errorf("read configuration: %w (the user that runs Pawl must be able to read it)", err)
	}
	return Parse(path, data, env, needsApp)
}

// Parse reads the server configuration from data. Relative paths in it start from the folder of the name.
func Parse(name string, data []byte, env func(string) (string, bool), needsApp bool) (Server, error) {
	s := newSource(name, env)
	c := Default()
	if s.read(data, &c) {
		for i := range c.Backends {
			c.Backends[i].complete(func(key string) bool { return s.set(fmt.Sprintf("backends[%d].%s", i, key)) })
		}
		s.validateServer(&c)
		if needsApp || c.GitHub.App != (App{}) {
			s.validateApp(c.GitHub)
		}
		s.validateBackends(c.Backends, c.Providers)
		s.validatePolicy(c.Policy, c.Providers)
		s.validateEnv("policy.learning", "judge_env", c.Policy.Learning.JudgeEnv)
	}
	if len(s.problems) > 0 {
		return Server{}, Problems(s.sorted())
	}
	base, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return Server{}, fmt.Errorf("find the folder of %s: %w", name, err)
	}
	c.resolve(base)
	for i := range c.Backends {
		b := &c.Backends[i]
		if p, _ := c.Provider(b.Provider); b.Model == "" {
			b.Model = DefaultModel(b.Kind, p.Protocol)
		}
	}
	return c, nil
}

// resolve makes the paths absolute, so that they mean the same in another directory.
func (c *Server) resolve(base string) {
	c.DataDir = under(base, c.DataDir)
	c.Database.Path = under(base, c.Database.Path)
	c.GitHub.App.PrivateKeyFile = under(base, c.GitHub.App.PrivateKeyFile)
	c.GitHub.App.SigningKeyFile = under(base, c.GitHub.App.SigningKeyFile)
	for i := range c.Sandbox.ReadOnly {
		c.Sandbox.ReadOnly[i] = under(base, c.Sandbox.ReadOnly[i])
	}
	program := func(argv []string) {
		// A bare program name is looked up in PATH.
		if len(argv) > 0 && strings.ContainsRune(argv[0], '/') {
			argv[0] = under(base, argv[0])
		}
	}
	program(c.Policy.Learning.Judge)
	for i := range c.Backends {
		c.Backends[i].CredentialFile = under(base, c.Backends[i].CredentialFile)
		program(c.Backends[i].Argv)
	}
}

func under(base, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// Key gives the App's private key in PEM, reading its file if it stands in one.
func (a App) Key() (Secret, error) {
	if !a.PrivateKey.Empty() {
		return a.PrivateKey, nil
	}
	data, err := os.ReadFile(a.PrivateKeyFile)
	if err != nil {
		return Secret{}, fmt.Errorf("read the App's private key: %w (github.app.private_key_file must name the .pem file from the App's settings)", err)
	}
	if problem := keyProblem(data); problem != "" {
		return Secret{}, fmt.Errorf("read the App's private key: %s %s", a.PrivateKeyFile, problem)
	}
	return NewSecret(string(data)), nil
}

// keyProblem says why data is not a private key in PEM; empty when it is one.
func keyProblem(data []byte) string {
	if block, _ := pem.Decode(data); block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		return "is not a private key in PEM format; it starts with -----BEGIN RSA PRIVATE KEY----- and keeps its line breaks"
	}
	return ""
}

// Problem is one thing that is wrong with a configuration file, as a check-run annotation needs it.
type Problem struct {
	File string // the name that the file was parsed under
	// Line counts from 1. It is never 0.
	Line int
	// Column counts from 1; 0 means that it is not known.
	Column int
	Key    string // the key's path, such as backends[0].name; empty when the file as a whole is wrong
	// Message says what is wrong and what to do. It never holds a secret.
	Message string
}

// String is the problem as file:line:column: key: message.
func (p Problem) String() string {
	at := fmt.Sprintf("%s:%d", p.File, p.Line)
	if p.Column > 0 {
		at += fmt.Sprintf(":%d", p.Column)
	}
	if p.Key != "" {
		at += ": " + p.Key
	}
	return at + ": " + p.Message
}

// Problems is the error for a file that can be read but not used: all that was found, in its order.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

type place struct {
	line, column int
	text         string // the value as written, before ${NAME} was replaced, so that it can be shown
}

// source is a file that is being read: where its keys stand and what is wrong so far.
type source struct {
	file     string
	places   map[string]place
	problems []Problem
	broken   map[string]bool // the keys that have a problem already
	// env looks up the variables of ${NAME}; nil means that nothing is replaced.
	env       func(string) (string, bool)
	variables map[string]string // the names that ${NAME} used, with the first key that did
}

func newSource(file string, env func(string) (string, bool)) *source {
	return &source{
		file:      file,
		places:    map[string]place{},
		broken:    map[string]bool{},
		env:       env,
		variables: map[string]string{},
	}
}

// set reports whether the file gives the key.
func (s *source) set(key string) bool {
	_, ok := s.places[key]
	return ok
}

// found is the value of a key that holds no secret, as written, quoted and cut.
func (s *source) found(key string) string { return quote(s.places[key].text) }

// quote makes foreign text safe to show on one line.
func quote(text string) string {
	runes := []rune(text)
	if len(runes) > 60 {
		runes = append(runes[:59], '…')
	}
	return fmt.Sprintf("%q", string(runes))
}

// add records a problem at the key unless the key, or one around it, has one
// already: what follows from a mistake is not another mistake.
func (s *source) add(key, format string, args ...any) {
	for around := key; around != ""; around = parent(around) {
		if s.broken[around] {
			return
		}
	}
	s.addAlso(key, format, args...)
}

// addAlso records a problem in any case, at the nearest key around it that the file gives.
func (s *source) addAlso(key, format string, args ...any) {
	s.broken[key] = true
	var at place
	for around, found := key, false; around != "" && !found; around = parent(around) {
		at, found = s.places[around]
	}
	s.addAt(at, key, format, args...)
}

// addAt records a problem at a place of the file; the zero place is its first line.
func (s *source) addAt(at place, key, format string, args ...any) {
	s.problems = append(s.problems, Problem{
		File:    s.file,
		Line:    max(at.line, 1),
		Column:  at.column,
		Key:     key,
		Message: fmt.Sprintf(format, args...),
	})
}

// parent is the path around a key: a.b for a.b.c and for a.b[0].
func parent(key string) string {
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}

// child is the path of a key inside another. A name that no Pawl key could have
// is quoted, so that it cannot look like a path or break a line.
func child(key, name string) string {
	if len(name) > 60 || !variableName.MatchString(name) {
		name = quote(name)
	}
	if key == "" {
		return name
	}
	return key + "." + name
}

func (s *source) sorted() []Problem {
	slices.SortStableFunc(s.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return s.problems
}

// addIf adds a problem. Of several at one key the first counts.
func (s *source) addIf(wrong bool, key, format string, args ...any) {
	if wrong {
		s.add(key, format, args...)
	}
}

func (s *source) oneOf(key, value string, allowed ...string) {
	if instead, ok := removed[key+": "+value]; ok {
		s.add(key, "%s", instead)
		return
	}
	s.addIf(!slices.Contains(allowed, value), key, "%s is not known; use %s", s.found(key), orList(allowed))
}

// required is oneOf for a key without a default.
func (s *source) required(key, value string, allowed ...string) {
	s.addIf(value == "", key, "is missing; use %s", orList(allowed))
	s.oneOf(key, value, allowed...)
}

func outside[T cmp.Ordered](value, low, high T) bool { return value < low || value > high }

func between[T cmp.Ordered](s *source, key string, value, low, high T) {
	s.addIf(outside(value, low, high), key, "%v is out of range; use %v to %v", value, low, high)
}

// orList joins words as a person would: a, b or c.
func orList(words []string) string { return listed(words, "or") }

// listed joins words, the last two by another one.
func listed(words []string, by string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + by + " " + words[last]
}

// Secrets are the secrets that a configuration holds, by the path of their keys.
func (c *Server) Secrets() map[string]Secret {
	all := map[string]Secret{}
	var look func(at string, v reflect.Value)
	look = func(at string, v reflect.Value) {
		if s, ok := v.Interface().(Secret); ok {
			if !s.Empty() {
				all[strings.TrimPrefix(at, ".")] = s
			}
			return
		}
		switch v.Kind() { // a secret stands in a field, or in one of a list of them
		case reflect.Struct:
			for field, value := range v.Fields() {
				if key, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); field.IsExported() {
					look(at+"."+key, value)
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				look(fmt.Sprintf("%s[%d]", at, i), v.Index(i))
			}
		}
	}
	look("", reflect.ValueOf(*c))
	return all
}
