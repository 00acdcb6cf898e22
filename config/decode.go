package config

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// read decodes a file into a struct that holds the defaults. It reports false if the file as a whole is invalid.
func (s *source) read(data []byte, into any) bool {
	node, ok := s.parseDocument(data)
	if !ok {
		return false
	}
	if node != nil {
		s.decode(node, reflect.ValueOf(into).Elem(), "")
	}
	return !s.broken[""]
}

// decode sets a value from a node. Missing keys keep their defaults.
func (s *source) decode(node *yaml.Node, into reflect.Value, key string) {
	if key != "" && !s.set(key) {
		s.positions[key] = position{node.Line, node.Column, node.Value}
	}
	kind := into.Kind()
	if _, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		kind = reflect.String // the type parses text itself
	}
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		s.add(key, "uses a YAML anchor or alias; write the value out")
	case node.Style&yaml.TaggedStyle != 0:
		s.add(key, "uses the YAML tag %q; remove it", node.Tag)
	case kind == reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		s.decode(node, into.Elem(), key)
	case kind == reflect.Struct:
		s.decodeStruct(node, into, key)
	case kind == reflect.Map:
		s.decodeMap(node, into, key)
	case kind == reflect.Slice:
		s.decodeList(node, into, key)
	default:
		s.decodeScalar(node, into, key)
	}
}

func (s *source) decodeStruct(node *yaml.Node, into reflect.Value, key string) {
	if isNull(node) {
		return // all keys are commented out
	}
	keys, index := fields(into.Type())
	if node.Kind != yaml.MappingNode {
		s.add(key, "must be a group of keys (%s)", strings.Join(keys, ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		path := child(key, name.Value)
		if line, again := seen[name.Value]; again {
			s.addAt(position{line: name.Line, column: name.Column}, path, "is given twice, first in line %d; keep one", line)
			continue
		}
		seen[name.Value] = name.Line
		s.positions[path] = position{name.Line, name.Column, value.Value}
		if field, ok := index[name.Value]; ok {
			s.decode(value, into.FieldByIndex(field), path)
		} else if instead, ok := removed[anyIndex.ReplaceAllString(path, "[]")]; ok {
			s.add(path, "%s", instead)
		} else {
			s.add(path, "is not a known key; use %s", strings.Join(keys, ", "))
		}
	}
}

// decodeMap reads a group with user-chosen names.
func (s *source) decodeMap(node *yaml.Node, into reflect.Value, key string) {
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		s.add(key, "must be a group of names with a value each, such as {NAME: value}")
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], reflect.New(into.Type().Elem()).Elem()
		path := child(key, name.Value)
		if into.MapIndex(reflect.ValueOf(name.Value)).IsValid() {
			s.addAt(position{line: name.Line, column: name.Column}, path, "is given twice; keep one")
			continue
		}
		s.decode(node.Content[i+1], value, path)
		into.SetMapIndex(reflect.ValueOf(name.Value), value)
	}
}

func (s *source) decodeList(node *yaml.Node, into reflect.Value, key string) {
	if node.Kind != yaml.SequenceNode {
		s.add(key, "must be a list; write [a, b] or one item a line after a dash")
		return
	}
	list := reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content))
	for i, item := range node.Content {
		element := list.Index(i)
		if d, ok := element.Addr().Interface().(interface{ setDefaults() }); ok {
			d.setDefaults()
		}
		s.decode(item, element, fmt.Sprintf("%s[%d]", key, i))
	}
	into.Set(list)
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Tag == "!!null"
}

// fields returns the YAML keys of a struct and its embedded structs, in order, and their field indexes.
func fields(group reflect.Type) (keys []string, index map[string][]int) {
	index = map[string][]int{}
	for _, field := range reflect.VisibleFields(group) {
		if key := field.Tag.Get("yaml"); key != "" && !field.Anonymous {
			keys, index[key] = append(keys, key), field.Index
		}
	}
	return keys, index
}

// maxBytes limits a file. A hundred backends need less than 64 KiB.
const maxBytes = 1 << 20

// yamlLine finds the line in a YAML error.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parseDocument returns a file's only document, or nil if the file is empty. ok is false after a problem.
func (s *source) parseDocument(data []byte) (_ *yaml.Node, ok bool) {
	if len(data) > maxBytes {
		s.addAt(position{}, "", "has %d bytes; a configuration may have %d", len(data), maxBytes)
		return nil, false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, true
	}
	if err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case errors.Is(err, io.EOF):
		return doc.Content[0], true
	case err == nil:
		s.addAt(position{line: second.Line, column: second.Column}, "", "starts a second YAML document; remove it with the --- before it")
	default:
		s.addSyntax(err)
	}
	return nil, false
}

func (s *source) addSyntax(err error) {
	text, line := err.Error(), 0
	if match := yamlLine.FindStringSubmatch(text); match != nil {
		text = strings.TrimPrefix(text, match[0])
		line, _ = strconv.Atoi(match[1]) // 0 without a number
	}
	s.addAt(position{line: line}, "", "is not valid YAML: %s; check the indentation, colons and quotes around this line", text)
}

var durationType = reflect.TypeFor[time.Duration]()

// decodeScalar writes one value from its text, so that a secret of digits is not read as a number.
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
		if secret, ok := u.(interface{ setVariable(name string) }); ok {
			secret.setVariable(s.variableIn(node.Value))
		}
		return
	}
	if wanted := setScalar(into, text); wanted != "" {
		s.add(key, "%s is not %s", s.found(key), wanted)
	}
}

// setScalar parses text into a value. If it cannot, it returns a description of the expected text.
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
			return "a boolean; write true or false"
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
		if err != nil || !isFinite(f) {
			return "a number; write it like 0.85"
		}
		into.SetFloat(f)
	default:
		into.SetString(text)
	}
	return ""
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

var reference = regexp.MustCompile(`\$\$\{|\$\{[^}]*\}?`)

// expand replaces ${NAME} with the variable's value and $${ with ${. It reports false after a problem.
func (s *source) expand(text, key string) (string, bool) {
	if s.env == nil {
		return text, true
	}
	ok := true
	out := reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$${" {
			return "${"
		}
		name, closed := strings.CutSuffix(found[len("${"):], "}")
		if !closed {
			s.add(key, "has an unclosed ${; write ${NAME}, or $${ for a literal ${")
			ok = false
			return ""
		}
		value, set := s.variable(name, key)
		ok = ok && set
		return value
	})
	return out, ok
}

// variableIn returns the first variable in a text, or empty.
func (s *source) variableIn(text string) string {
	if s.env == nil {
		return ""
	}
	for _, found := range reference.FindAllString(text, -1) {
		if found != "$${" {
			return strings.TrimSuffix(strings.TrimPrefix(found, "${"), "}")
		}
	}
	return ""
}

func (s *source) variable(name, key string) (string, bool) {
	if !variableName.MatchString(name) {
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

// variableName matches names that POSIX shells can export.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
