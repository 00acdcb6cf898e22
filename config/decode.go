package config

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is where a key stands in the file.
type place struct {
	line, column int
	// text is the value as written, before ${NAME} was replaced, so that it can
	// be shown without showing what a variable holds.
	text string
}

// source is a file that is being read: where its keys stand and what is wrong
// with it so far.
type source struct {
	file     string
	places   map[string]place
	problems []Problem
	// broken are the keys that have a problem already.
	broken map[string]bool
	// env looks up the variables of ${NAME}; nil means that nothing is replaced.
	env func(string) (string, bool)
	// variables are the names that ${NAME} used, with the first key that did.
	variables map[string]string
}

func newSource(file string, env func(string) (string, bool)) *source {
	return &source{file: file, places: map[string]place{}, broken: map[string]bool{}, env: env, variables: map[string]string{}}
}

// set reports whether the file gives the key.
func (s *source) set(key string) bool {
	_, ok := s.places[key]
	return ok
}

// found is the value of a key as written, quoted and cut to a readable length.
// It must not be used for keys that hold secrets.
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

// addAlso records a problem at the key whether or not it has one. It is placed
// at the nearest key around it that the file gives.
func (s *source) addAlso(key, format string, args ...any) {
	s.broken[key] = true
	problem := Problem{File: s.file, Line: 1, Key: key, Message: fmt.Sprintf(format, args...)}
	for around := key; around != ""; around = parent(around) {
		if at, ok := s.places[around]; ok {
			problem.Line, problem.Column = at.line, at.column
			break
		}
	}
	s.problems = append(s.problems, problem)
}

// parent is the path around a key: a.b for a.b.c and for a.b[0].
func parent(key string) string {
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}

// child is the path of a key inside another. A name that no Pawl key could have
// is quoted, so that it cannot look like a path or break a line.
func child(key, name string) string {
	if len(name) > 60 || !validVariable(name) {
		name = quote(name)
	}
	if key == "" {
		return name
	}
	return key + "." + name
}

// sorted gives the problems in the order of the file.
func (s *source) sorted() []Problem {
	slices.SortStableFunc(s.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return s.problems
}

// read decodes a whole file over the struct that into points to. It reports
// false when the file is not one YAML document and checking it makes no sense.
func (s *source) read(data []byte, into any) bool {
	node, problem := parseDocument(s.file, data)
	if problem != nil {
		s.problems = append(s.problems, *problem)
		return false
	}
	if node != nil {
		s.decode(node, reflect.ValueOf(into).Elem(), "")
	}
	return !s.broken[""]
}

// decode writes a node over the value; what the node does not mention keeps its
// default.
func (s *source) decode(node *yaml.Node, into reflect.Value, key string) {
	if key != "" && !s.set(key) {
		s.places[key] = place{node.Line, node.Column, node.Value}
	}
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		s.add(key, "uses a YAML anchor or alias; write the value out")
	case node.Style&yaml.TaggedStyle != 0:
		s.add(key, "uses the YAML tag %q; remove it", node.Tag)
	case into.Kind() == reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		s.decode(node, into.Elem(), key)
	case isScalar(into):
		s.decodeScalar(node, into, key)
	case into.Kind() == reflect.Struct:
		s.decodeStruct(node, into, key)
	default:
		s.decodeList(node, into, key)
	}
}

func isScalar(v reflect.Value) bool {
	if _, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return true
	}
	return v.Kind() != reflect.Struct && v.Kind() != reflect.Slice
}

func (s *source) decodeStruct(node *yaml.Node, into reflect.Value, key string) {
	if isNull(node) {
		return // a heading whose keys are all commented out
	}
	if node.Kind != yaml.MappingNode {
		s.add(key, "must be a group of keys (%s)", strings.Join(keys(into.Type()), ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		path := child(key, name.Value)
		if line, again := seen[name.Value]; again {
			s.problems = append(s.problems, Problem{File: s.file, Line: name.Line, Column: name.Column, Key: path,
				Message: fmt.Sprintf("is given twice, first in line %d; keep one", line)})
			continue
		}
		seen[name.Value] = name.Line
		s.places[path] = place{name.Line, name.Column, value.Value}
		field, ok := fieldOf(into, name.Value)
		if !ok {
			s.add(path, "is not a known key; the keys here are %s", strings.Join(keys(into.Type()), ", "))
			continue
		}
		s.decode(value, field, path)
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

// keys are the YAML keys of a struct, in the order of its fields.
func keys(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func fieldOf(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag.Get("yaml"); tag != "" && tag == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}
