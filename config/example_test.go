package config

import (
	"encoding"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// leaves lists the keys that hold a value, with [] for a list's index.
func leaves(of reflect.Type, key string) (all []string) {
	_, text := reflect.New(of).Interface().(encoding.TextUnmarshaler)
	switch {
	case text:
	case of.Kind() == reflect.Pointer:
		return leaves(of.Elem(), key)
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct:
		if below := leaves(of.Elem(), key+"[]"); len(below) > 1 {
			return below
		}
	case of.Kind() == reflect.Struct:
		names, index := fields(of)
		for _, name := range names {
			all = append(all, leaves(of.FieldByIndex(index[name]).Type, strings.TrimPrefix(key+"."+name, "."))...)
		}
		return all
	}
	return []string{key}
}

// given adds the paths of the keys that a YAML node gives.
func given(node *yaml.Node, key string, into map[string]bool) {
	into[key] = true
	switch node.Kind {
	case yaml.DocumentNode:
		given(node.Content[0], key, into)
	case yaml.SequenceNode:
		for _, item := range node.Content {
			given(item, key+"[]", into)
		}
	case yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			given(node.Content[i+1], strings.TrimPrefix(key+"."+node.Content[i].Value, "."), into)
		}
	}
}

func TestExamplesHaveEveryKey(t *testing.T) {
	for file, of := range map[string]reflect.Type{
		"example.yml":      reflect.TypeFor[Server](),
		"repo-example.yml": reflect.TypeFor[Repo](),
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		given(&doc, "", keys)
		for _, key := range leaves(of, "") {
			name := key[strings.LastIndexByte(key, '.')+1:]
			// A rare key may be in a comment: "# key: …" or "# key, another: …".
			comment := regexp.MustCompile(`#.*\b` + name + `(, \w+)*: `)
			if !keys[key] && !comment.Match(data) {
				t.Errorf("%s has no line for %s", file, key)
			}
		}
	}
}
