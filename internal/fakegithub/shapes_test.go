package fakegithub_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// shapes maps the name of each object that GitHub documents to its keys and types. testdata/shapes.txt explains the
// notation and names its sources.
type shapes map[string]map[string]field

type field struct {
	kind     string
	optional bool
}

func readShapes(t *testing.T) shapes {
	t.Helper()
	text, err := os.ReadFile("testdata/shapes.txt")
	must(t, err)
	all := shapes{}
	var current map[string]field
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		if !strings.HasPrefix(line, " ") {
			current = map[string]field{}
			name, rest, _ := strings.Cut(line, ":")
			all[name], line = current, rest
		}
		for _, entry := range strings.Fields(line) {
			key, kind, _ := strings.Cut(entry, ":")
			plain, optional := strings.CutSuffix(key, "?")
			current[plain] = field{kind, optional}
		}
	}
	return all
}

// check returns why a value is not of the given kind, or nil.
func (all shapes) check(path string, v any, kind string) []string {
	var first []string
	for _, one := range alternatives(kind) {
		problems := all.checkOne(path, v, one)
		if len(problems) == 0 {
			return nil
		}
		if first == nil || len(first) == 1 {
			first = problems
		}
	}
	return first
}

// alternatives splits at the bars outside brackets.
func alternatives(kind string) []string {
	var out []string
	depth, start := 0, 0
	for i, c := range kind {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '|' && depth == 0:
			out = append(out, kind[start:i])
			start = i + 1
		}
	}
	return append(out, kind[start:])
}

func (all shapes) checkOne(path string, v any, kind string) []string {
	wrong := []string{fmt.Sprintf("%s is %.60v (%T), documented as %s", path, v, v, kind)}
	holds := func(ok bool) []string {
		if ok {
			return nil
		}
		return wrong
	}
	text, isText := v.(string)
	number, isNumber := v.(json.Number)
	switch {
	case kind == "any":
		return nil
	case kind == "null":
		return holds(v == nil)
	case kind == "string":
		return holds(isText)
	case kind == "time":
		_, err := time.Parse(time.RFC3339, text)
		return holds(isText && err == nil)
	case kind == "number":
		return holds(isNumber)
	case kind == "int":
		return holds(isNumber && !strings.ContainsAny(number.String(), ".eE"))
	case kind == "bool":
		_, ok := v.(bool)
		return holds(ok)
	case kind == "object":
		_, ok := v.(map[string]any)
		return holds(ok)
	case strings.HasPrefix(kind, "'"):
		return holds(isText && text == strings.Trim(kind, "'"))
	case strings.HasPrefix(kind, "["):
		list, ok := v.([]any)
		if !ok {
			return wrong
		}
		var problems []string
		for i, item := range list {
			problems = append(problems, all.check(fmt.Sprintf("%s[%d]", path, i), item, kind[1:len(kind)-1])...)
		}
		return problems
	}
	object, ok := v.(map[string]any)
	if !ok {
		return wrong
	}
	return all.checkObject(path, object, kind)
}

func (all shapes) checkObject(path string, object map[string]any, name string) []string {
	shape, known := all[name]
	if !known {
		return []string{fmt.Sprintf("%s: testdata/shapes.txt has no %q", path, name)}
	}
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(shape)) {
		value, there := object[key]
		switch {
		case key == "*":
		case there:
			problems = append(problems, all.check(path+"."+key, value, shape[key].kind)...)
		case !shape[key].optional:
			problems = append(problems, fmt.Sprintf("%s.%s is missing, %s requires it", path, key, name))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if _, documented := shape[key]; documented {
			continue
		}
		if rest, open := shape["*"]; open {
			problems = append(problems, all.check(path+"."+key, object[key], rest.kind)...)
			continue
		}
		problems = append(problems, fmt.Sprintf("%s.%s is not documented for %s", path, key, name))
	}
	return problems
}

func decodeExactly(t *testing.T, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %.200s", err, raw)
	}
	return v
}

// wire makes one REST call and returns the raw answer.
func (h *house) wire(client *http.Client, method, path, body string) (*http.Response, []byte) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.ctx, method, strings.TrimSuffix(h.APIURL(), "/")+path, strings.NewReader(body))
	must(h.t, err)
	resp, err := client.Do(req)
	must(h.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	must(h.t, err)
	return resp, raw
}
