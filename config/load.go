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

// Load reads the server configuration from a file. env looks up variables like os.LookupEnv. The error is Problems if
// the file is readable but wrong.
func Load(path string, env func(string) (string, bool)) (Server, error) { return load(path, env, true) }

// LoadWithoutApp is Load for work without GitHub; the App is optional.
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

// Parse reads the server configuration from data. Relative paths start from the folder of name.
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

// resolve makes the paths absolute.
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

// Key returns the App's private key in PEM, read from its file if necessary.
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

// keyProblem says why data is not a private key in PEM; empty if it is.
func keyProblem(data []byte) string {
	if block, _ := pem.Decode(data); block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		return "is not a private key in PEM format, which starts with -----BEGIN RSA PRIVATE KEY----- and has line breaks"
	}
	return ""
}

// Problem is an error in a configuration file, with the fields of a check-run annotation.
type Problem struct {
	File string // the name given to the parser
	Line int    // from 1; never 0
	// Column counts from 1; 0 means unknown.
	Column  int
	Key     string // the key's path, such as backends[0].name; empty for the whole file
	Message string // the problem and its remedy, without secrets
}

// String formats the problem as file:line:column: key: message.
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

// Problems is the error for a readable but wrong file: all problems in the file's order.
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
	text         string // the value before ${NAME} was replaced, safe to show
}

// source is a file being read: the places of its keys and the problems so far.
type source struct {
	file     string
	places   map[string]place
	problems []Problem
	broken   map[string]bool // keys with a problem
	// env looks up the variables of ${NAME}; nil disables them.
	env       func(string) (string, bool)
	variables map[string]string // each variable with the first key that uses it
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

// found is a key's value as written, quoted and cut. The key must not hold a secret.
func (s *source) found(key string) string { return quote(s.places[key].text) }

// quote makes foreign text safe for one line.
func quote(text string) string {
	runes := []rune(text)
	if len(runes) > 60 {
		runes = append(runes[:59], '…')
	}
	return fmt.Sprintf("%q", string(runes))
}

// add records a problem at the key, unless the key or one around it already has one: a mistake may cause others.
func (s *source) add(key, format string, args ...any) {
	for around := key; around != ""; around = parent(around) {
		if s.broken[around] {
			return
		}
	}
	s.addAlso(key, format, args...)
}

// addAlso always records a problem, at the nearest key around it in the file.
func (s *source) addAlso(key, format string, args ...any) {
	s.broken[key] = true
	var at place
	for around, found := key, false; around != "" && !found; around = parent(around) {
		at, found = s.places[around]
	}
	s.addAt(at, key, format, args...)
}

// addAt records a problem at a place; the zero place is the first line.
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

// child is the path of a key inside another. It quotes names that cannot be Pawl keys, so they cannot look like a path
// or break a line.
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

// addIf adds a problem if wrong. Only the first one of a key counts.
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

// orList joins words: a, b or c.
func orList(words []string) string { return listed(words, "or") }

// listed joins words with commas, the last two with by.
func listed(words []string, by string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + by + " " + words[last]
}

// Secrets lists a configuration's secrets by the paths of their keys.
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
		switch v.Kind() {
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
