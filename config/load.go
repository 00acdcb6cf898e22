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

// Load reads the server configuration. env looks up variables. The error is Problems if the file can be read but is
// invalid.
func Load(path string, env func(string) (string, bool)) (Server, error) { return load(path, env, true) }

// LoadWithoutApp is Load with an optional App.
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

// Parse reads the server configuration from data. Relative paths are relative to name's folder.
func Parse(name string, data []byte, env func(string) (string, bool), needsApp bool) (Server, error) {
	s := newSource(name, env)
	c := Default()
	if s.read(data, &c) {
		for i := range c.Backends {
			c.Backends[i].complete(func(key string) bool { return s.set(fmt.Sprintf("backends[%d].%s", i, key)) })
		}
		s.validateServer(&c)
		if needsApp || c.GitHub.App != (App{}) {
			s.validateApp(c.GitHub.App, c.HTTP.Address != "" && c.GitHub.Receive == ReceiveWebhook)
		}
		s.validateAccounts(c)
		s.validateBackends(c)
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
	c.relay()
	for i := range c.Backends {
		b := &c.Backends[i]
		if p, _ := c.Provider(c.OnAccount(*b, b.Account).Provider); b.Model == "" {
			b.Model = DefaultModel(b.Kind, p.Protocol)
		}
	}
	return c, nil
}

func (c *Server) resolve(base string) {
	c.DataDir = under(base, c.DataDir)
	c.Database.Path = under(base, c.Database.Path)
	c.GitHub.App.PrivateKeyFile = under(base, c.GitHub.App.PrivateKeyFile)
	c.GitHub.App.SigningKeyFile = under(base, c.GitHub.App.SigningKeyFile)
	c.Gateway.CertFile = under(base, c.Gateway.CertFile)
	c.Gateway.KeyFile = under(base, c.Gateway.KeyFile)
	for i := range c.Sandbox.ReadOnly {
		c.Sandbox.ReadOnly[i] = under(base, c.Sandbox.ReadOnly[i])
	}
	program := func(argv []string) {
		// A program name without a slash is found in PATH.
		if len(argv) > 0 && strings.ContainsRune(argv[0], '/') {
			argv[0] = under(base, argv[0])
		}
	}
	program(c.Policy.Learning.Judge)
	for i := range c.Accounts {
		c.Accounts[i].CredentialFile = under(base, c.Accounts[i].CredentialFile)
	}
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

// Key returns the App's private key in PEM, from its file if necessary.
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

// keyProblem returns why data is not a private key in PEM, or empty.
func keyProblem(data []byte) string {
	if block, _ := pem.Decode(data); block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		return "is not a private key in PEM format, which starts with -----BEGIN RSA PRIVATE KEY----- and has line breaks"
	}
	return ""
}

// Problem is an error in a configuration file, with fields like a check-run annotation's.
type Problem struct {
	File string // the name given to the parser
	Line int    // from 1
	// Column counts from 1; 0 means unknown.
	Column  int
	Key     string // such as backends[0].name; empty for the whole file
	Message string // problem and remedy, without secrets
}

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

// Problems holds a file's problems in order.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

type position struct {
	line, column int
	text         string // before expansion, safe to show
}

// source tracks key positions and problems of a file.
type source struct {
	file      string
	positions map[string]position
	problems  []Problem
	broken    map[string]bool // keys with a problem
	// env looks up variables; nil disables ${NAME}.
	env       func(string) (string, bool)
	variables map[string]string // the first key that uses each variable
}

func newSource(file string, env func(string) (string, bool)) *source {
	return &source{
		file:      file,
		positions: map[string]position{},
		broken:    map[string]bool{},
		env:       env,
		variables: map[string]string{},
	}
}

func (s *source) set(key string) bool {
	_, ok := s.positions[key]
	return ok
}

// found quotes a key's value as written. The key must not hold a secret.
func (s *source) found(key string) string { return quote(s.positions[key].text) }

// quote makes untrusted text safe for one line. It shortens the text to 60 characters.
func quote(text string) string {
	runes := []rune(text)
	if len(runes) > 60 {
		runes = append(runes[:59], '…')
	}
	return fmt.Sprintf("%q", string(runes))
}

// add records a problem at a key. It does nothing if the key or an enclosing key has a problem, which may be the cause.
func (s *source) add(key, format string, args ...any) {
	for around := key; around != ""; around = parent(around) {
		if s.broken[around] {
			return
		}
	}
	s.addAlso(key, format, args...)
}

// addAlso always records a problem. Its position is the key's, or the nearest enclosing key's if the file lacks the
// key.
func (s *source) addAlso(key, format string, args ...any) {
	s.broken[key] = true
	var at position
	for around, found := key, false; around != "" && !found; around = parent(around) {
		at, found = s.positions[around]
	}
	s.addAt(at, key, format, args...)
}

// addAt records a problem; the zero position means the first line.
func (s *source) addAt(at position, key, format string, args ...any) {
	s.problems = append(s.problems, Problem{
		File:    s.file,
		Line:    max(at.line, 1),
		Column:  at.column,
		Key:     key,
		Message: fmt.Sprintf(format, args...),
	})
}

// parent returns the path of the enclosing key: a.b for a.b.c and a.b[0].
func parent(key string) string {
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}

// child returns the path of a name inside a key. It quotes long or unusual names.
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

// addIf adds a problem if wrong is true. Like add, it records only the first problem of a key.
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

func listed(words []string, by string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + by + " " + words[last]
}

// Secrets maps key paths to secrets.
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
				derived := field.Type == reflect.TypeFor[Relay]() // its token is gateway.token
				if key, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); field.IsExported() && !derived {
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
