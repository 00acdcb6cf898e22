package config

import (
	"encoding"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

var durationType = reflect.TypeFor[time.Duration]()

// decodeScalar writes one value. It reads the text as written, whatever type
// YAML would give it, so that a secret of digits stays the digits it is.
func (s *source) decodeScalar(node *yaml.Node, into reflect.Value, key string) {
	if isNull(node) {
		s.add(key, "has no value; give it one or remove the key")
		return
	}
	if node.Kind != yaml.ScalarNode {
		s.add(key, "must be a single value, not a list or a group of keys")
		return
	}
	text, ok := s.expand(node.Value, key)
	if !ok {
		return
	}
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			s.add(key, "%s", err)
		}
		return
	}
	if wanted := setScalar(into, text); wanted != "" {
		s.add(key, "%s is not %s", s.found(key), wanted)
	}
}

// setScalar parses the text into the value. It returns what was wanted when the
// text is something else.
func setScalar(into reflect.Value, text string) string {
	switch {
	case into.Type() == durationType:
		d, err := time.ParseDuration(text)
		if err != nil {
			return "a duration; write a number with a unit, such as 90s, 15m or 6h"
		}
		into.SetInt(int64(d))
	case into.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return "a switch; write true or false"
		}
		into.SetBool(text == "true")
	case into.CanInt():
		n, err := strconv.ParseInt(text, 10, into.Type().Bits())
		if err != nil {
			return "a whole number; write digits only"
		}
		into.SetInt(n)
	case into.CanFloat():
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return "a number; write it like 0.85"
		}
		into.SetFloat(f)
	default:
		into.SetString(text)
	}
	return ""
}

// expand replaces each ${NAME} by the variable's value and each $${ by ${. It
// reports false after recording what cannot be replaced.
func (s *source) expand(text, key string) (string, bool) {
	if s.env == nil {
		return text, true
	}
	var out strings.Builder
	ok := true
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			out.WriteString(text)
			return out.String(), ok
		}
		if i > 0 && text[i-1] == '$' {
			out.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		out.WriteString(text[:i])
		name, rest, closed := strings.Cut(text[i+2:], "}")
		if !closed {
			s.add(key, "opens ${ and does not close it; write ${NAME}, or $${ for a literal ${")
			return "", false
		}
		value, found := s.variable(name, key)
		ok = ok && found
		out.WriteString(value)
		text = rest
	}
}

func (s *source) variable(name, key string) (string, bool) {
	if !validVariable(name) {
		s.addAlso(key, "%s is not the name of an environment variable; write ${NAME}, or $${ for a literal ${", quote(name))
		return "", false
	}
	if _, ok := s.variables[name]; !ok {
		s.variables[name] = key
	}
	value, ok := s.env(name)
	if !ok {
		s.addAlso(key, "environment variable %s is not set; set it before starting Pawl, or write the value here", name)
	}
	return value, ok
}

// validVariable reports whether name is a name that a POSIX shell can export.
func validVariable(name string) bool {
	for i, c := range []byte(name) {
		switch {
		case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return name != ""
}
