package config

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
)

// hidden replaces secrets in output.
const hidden = "[hidden]"

// Secret hides its value in logs, pages and errors. The zero value is empty.
type Secret struct {
	value    string
	variable string // environment variable; empty if the file holds the value
}

func NewSecret(value string) Secret { return Secret{value: value} }

// SecretOf returns the secret of an environment variable.
func SecretOf(variable, value string) Secret { return Secret{value, variable} }

// Variable returns the environment variable, or empty if the file holds the value.
func (s Secret) Variable() string { return s.variable }

// Reveal returns the value. Do not print it or put it on a command line.
func (s Secret) Reveal() string { return s.value }

func (s Secret) Empty() bool { return s.value == "" }

// Equal compares configurations. Authentication needs constant time instead.
func (s Secret) Equal(other Secret) bool { return s.value == other.value }

func (s Secret) String() string { return hidden }

// Format hides the value from every fmt verb, including %#v.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, hidden) }

// MarshalText hides the value from JSON, YAML, zerolog and slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

func (s *Secret) UnmarshalText(text []byte) error {
	s.value = string(text)
	return nil
}

func (s *Secret) setVariable(name string) { s.variable = name }

func (d *Database) setVariable(name string) { d.URL.setVariable(name) }

// secret returns the address if it has a password.
func (d Database) secret() Secret {
	u, err := url.Parse(d.URL.Reveal())
	if err != nil || u.User == nil {
		return Secret{}
	}
	if _, password := u.User.Password(); !password {
		return Secret{}
	}
	return d.URL
}

func (s Secret) secret() Secret { return s }

// LiteralSecrets lists the keys, such as github.app.webhook_secret, whose secrets are written in the file itself.
func (c *Server) LiteralSecrets() (keys []string) {
	eachSecret("", reflect.ValueOf(*c), func(key string, s Secret) {
		if s.variable == "" {
			keys = append(keys, key)
		}
	})
	return keys
}

// SecretVariables lists the environment variables that hold secrets or that agents, setups and the judge get.
func (c *Server) SecretVariables() (names []string) {
	eachSecret("", reflect.ValueOf(*c), func(_ string, s Secret) {
		if s.variable != "" {
			names = append(names, s.variable)
		}
	})
	names = append(names, c.Policy.Learning.JudgeEnv...)
	for _, group := range c.Setup.Secrets {
		names = append(names, group.Env...)
	}
	for _, b := range c.Backends {
		names = append(names, b.Env...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func eachSecret(key string, v reflect.Value, f func(key string, s Secret)) {
	one, isSecret := v.Interface().(interface{ secret() Secret })
	switch {
	case isSecret:
		if s := one.secret(); !s.Empty() {
			f(key, s)
		}
	case v.Kind() == reflect.Struct:
		keys, index := fields(v.Type())
		for _, k := range keys {
			eachSecret(child(key, k), v.FieldByIndex(index[k]), f)
		}
	case areGroups(v.Type()):
		for i := range v.Len() {
			eachSecret(fmt.Sprintf("%s[%d]", key, i), v.Index(i), f)
		}
	}
}
