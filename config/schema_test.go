package config

import (
	"encoding"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/pawlbot/pawl/internal/goldentest"
	"github.com/pawlbot/pawl/policy"
)

// schemaAt is where the schemas are published, which editors read them from.
const schemaAt = "https://raw.githubusercontent.com/pawlbot/pawl/main/config/"

// row is what docs/configuration.md says of one key.
type row struct{ defaults, meaning string }

// choices are the keys with few possible values. TestEveryChoiceOfTheSchemaIsTaken tries them.
var choices = map[string][]string{
	"sandbox.mode":         {SandboxAuto, SandboxNone},
	"sandbox.network":      {NetworkWalled, NetworkOpen},
	"log.level":            {"trace", "debug", "info", "warn", "error"},
	"policy.learning.mode": {string(policy.ModeAuto), string(policy.ModeFixed), string(policy.ModeShadow), string(policy.ModeLearn)},
	"providers[].protocol": {OpenAI, Anthropic, Gemini},
	"backends[].kind":      append(CLIs(), Command),
	"backends[].stream":    append(CLIs(), Plain),
	"checks.severity":      {ChecksAuto, ChecksAlways, ChecksNever},
	"checks.stagnation":    {ChecksAuto, ChecksAlways, ChecksNever},
	"triggers[]":           Triggers(),
}

var (
	link  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	coded = regexp.MustCompile("`([^`]*)`")
)

// documented reads the tables of docs/configuration.md between two headings: each key with its default and meaning.
func documented(t *testing.T, from, to string, below map[string]string) map[string]row {
	t.Helper()
	data, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "\n"+from+"\n")
	text, _, _ = strings.Cut(text, "\n"+to+"\n")
	rows, prefix, isTable := map[string]row{}, "", true
	for line := range strings.Lines(text) {
		if heading := strings.TrimSpace(line); strings.HasPrefix(heading, "##") {
			prefix, isTable = below[heading]
			continue
		}
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00"), "|")
		if !isTable || len(cells) < 5 {
			continue
		}
		names, defaults := coded.FindAllStringSubmatch(cells[1], -1), coded.FindAllStringSubmatch(cells[2], -1)
		parent := ""
		for i, name := range names {
			key := name[1]
			if i == 0 {
				parent = key[:strings.LastIndex(key, ".")+1]
			} else if !strings.Contains(key, ".") {
				key = parent + key
			}
			r := row{meaning: link.ReplaceAllString(strings.TrimSpace(strings.Join(cells[3:len(cells)-1], "|")), "$1")}
			if len(defaults) == len(names) {
				r.defaults = defaults[i][1]
			}
			rows[prefix+key] = r
		}
	}
	return rows
}

// schemaOf makes a schema of a type, and takes the rows of its keys.
func schemaOf(t *testing.T, of reflect.Type, key string, rows, used map[string]row, expands bool) *jsonschema.Schema {
	t.Helper()
	s := &jsonschema.Schema{}
	if r, ok := rows[key]; ok {
		used[key], s.Description = r, r.meaning
		if r.defaults != "" {
			s.Description += ". Default: " + r.defaults
		}
	}
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	_, isText := reflect.New(of).Interface().(encoding.TextUnmarshaler)
	// also allows ${NAME} beside a value, which the server's file may have anywhere.
	also := func(value *jsonschema.Schema) {
		s.AnyOf = []*jsonschema.Schema{value}
		if expands {
			s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Type: "string", Pattern: `\$\{`})
		}
	}
	switch {
	case choices[key] != nil:
		values := make([]any, 0, len(choices[key]))
		for _, v := range choices[key] {
			values = append(values, v)
		}
		also(&jsonschema.Schema{Enum: values})
	case of == durationType:
		s.Type, s.Pattern = "string", `^(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$|\$\{`
	case isText || of.Kind() == reflect.String:
		s.Types = []string{"string", "number", "boolean"} // the loader takes every value as it is written
	case of.Kind() == reflect.Bool:
		also(&jsonschema.Schema{Type: "boolean"})
	case of.Kind() == reflect.Float64:
		also(&jsonschema.Schema{Type: "number"})
	case of.Kind() == reflect.Slice:
		s.Type, s.Items = "array", schemaOf(t, of.Elem(), key+"[]", rows, used, expands)
	case of.Kind() == reflect.Map:
		s.Types, s.AdditionalProperties = []string{"object", "null"}, schemaOf(t, of.Elem(), key+".*", rows, used, expands)
	case of.Kind() == reflect.Struct:
		s.Types, s.AdditionalProperties = []string{"object", "null"}, &jsonschema.Schema{Not: &jsonschema.Schema{}}
		s.Properties = map[string]*jsonschema.Schema{}
		names, index := fields(of)
		for _, name := range names {
			s.Properties[name] = schemaOf(t, of.FieldByIndex(index[name]).Type, strings.TrimPrefix(key+"."+name, "."), rows, used, expands)
		}
		s.PropertyOrder = names
	default:
		also(&jsonschema.Schema{Type: "integer"})
	}
	return s
}

// schemas are the two files' schemas, made of the structs and of the tables of docs/configuration.md.
func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	made := map[string]*jsonschema.Schema{}
	for _, file := range []struct {
		name, title, from, to string
		of                    reflect.Type
		below                 map[string]string
	}{
		{"pawl.schema.json", "The configuration of a Pawl server", "## The server's file", "## The repository's file", reflect.TypeFor[Server](),
			map[string]string{"### Providers": "providers[].", "### Backends": "backends[].", "### Policy": ""}},
		{"repo.schema.json", RepoFile + ", what Pawl may do in a repository", "## The repository's file", "### Images", reflect.TypeFor[Repo](),
			map[string]string{"### Setup": "environment."}},
	} {
		rows, used := documented(t, file.from, file.to, file.below), map[string]row{}
		s := schemaOf(t, file.of, "", rows, used, file.name == "pawl.schema.json")
		s.Schema, s.ID, s.Title = "https://json-schema.org/draft/2020-12/schema", schemaAt+file.name, file.title
		for key := range rows {
			if _, ok := used[key]; !ok {
				t.Errorf("docs/configuration.md tells of %s, which %s does not have", key, file.of)
			}
		}
		undocumented(t, file.of, "", rows)
		made[file.name] = s
	}
	return made
}

// undocumented reports the keys that no table tells of. What a list or a map holds may stand in the row of its key.
func undocumented(t *testing.T, of reflect.Type, key string, rows map[string]row) {
	t.Helper()
	names, index := fields(of)
	for _, name := range names {
		path, typ := strings.TrimPrefix(key+"."+name, "."), of.FieldByIndex(index[name]).Type
		_, told := rows[path]
		switch {
		case told:
		case typ.Kind() == reflect.Struct && typ.NumField() > 0 && typ != reflect.TypeFor[Secret]():
			undocumented(t, typ, path, rows)
		case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct:
			undocumented(t, typ.Elem(), path+"[]", rows)
		default:
			t.Errorf("docs/configuration.md does not tell of %s", path)
		}
	}
}

func TestTheSchemasAreThoseOfTheKeysAndTheirDocumentation(t *testing.T) {
	for name, s := range schemas(t) {
		got, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		goldentest.Compare(t, name, string(got)+"\n")
	}
}

// against validates a YAML file by a published schema, as an editor does.
func against(t *testing.T, schema string, data []byte) error {
	t.Helper()
	text, err := os.ReadFile(schema)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return resolved.Validate(value)
}

func TestTheSchemasTakeWhatTheLoaderTakes(t *testing.T) {
	for file, schema := range map[string]string{
		"example.yml": "pawl.schema.json", "repo-example.yml": "repo.schema.json",
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := against(t, schema, data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if !strings.Contains(string(data), "# yaml-language-server: $schema="+schemaAt+schema+"\n") {
			t.Errorf("%s does not tell editors of its schema", file)
		}
	}
	if err := against(t, "pawl.schema.json", []byte(minimal)); err != nil {
		t.Error(err)
	}
	if err := against(t, "pawl.schema.json", []byte("policy:\nworkers: ${WORKERS}\nlog: {level: \"${LEVEL}\"}\nserver: {drain: 1h30m}\n")); err != nil {
		t.Error(err)
	}
}

func TestTheSchemasRefuseWhatTheLoaderRefuses(t *testing.T) {
	for name, c := range map[string]struct{ schema, text string }{
		"an unknown key":           {"pawl.schema.json", "sandbx: {}\n"},
		"an unknown key in a list": {"pawl.schema.json", "backends: [{name: a, kind: codex, modell: x}]\n"},
		"a word for a number":      {"pawl.schema.json", "workers: many\n"},
		"a duration without unit":  {"pawl.schema.json", "server: {drain: 15}\n"},
		"another choice":           {"pawl.schema.json", "sandbox: {mode: docker}\n"},
		"a value for a list":       {"repo.schema.json", "verify: go test\n"},
		"an unknown trigger":       {"repo.schema.json", "triggers: [push]\n"},
	} {
		if err := against(t, c.schema, []byte(c.text)); err == nil {
			t.Errorf("%s: the schema takes %q", name, c.text)
		}
		var problems []Problem
		if c.schema == "repo.schema.json" {
			_, problems = ParseRepo(RepoFile, []byte(c.text))
		} else {
			file := filepath.Join(t.TempDir(), "pawl.yml")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(file, testEnv)
			problems, _ = err.(Problems)
		}
		if len(problems) == 0 {
			t.Errorf("%s: the loader takes %q", name, c.text)
		}
	}
}

func TestEveryChoiceOfTheSchemaIsTaken(t *testing.T) {
	for key, values := range choices {
		for _, v := range values {
			s := newSource("pawl.yml", nil)
			var problems []Problem
			switch key {
			case "checks.severity", "checks.stagnation":
				group, name, _ := strings.Cut(key, ".")
				_, problems = ParseRepo(RepoFile, []byte(group+": {"+name+": "+v+"}\n"))
			case "triggers[]":
				_, problems = ParseRepo(RepoFile, []byte("triggers: ["+v+"]\n"))
			case "providers[].protocol", "backends[].kind", "backends[].stream":
				group, name, _ := strings.Cut(key, "[].")
				text := group + ": [{" + name + ": " + v + "}]\n"
				if name == "stream" {
					text = group + ": [{kind: command, " + name + ": " + v + "}]\n"
				}
				c := Default()
				s.read([]byte(text), &c)
				s.validateProviders(c.Providers)
				s.validateBackends(c.Backends, c.Providers)
				for _, p := range s.problems {
					if strings.HasSuffix(p.Key, "."+name) {
						problems = append(problems, p)
					}
				}
			default:
				parts := strings.Split(key, ".")
				text := parts[len(parts)-1] + ": " + v
				for i := len(parts) - 2; i >= 0; i-- {
					text = parts[i] + ": {" + text + "}"
				}
				file := filepath.Join(t.TempDir(), "pawl.yml")
				if err := os.WriteFile(file, []byte(minimal+text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				_, err := Load(file, testEnv)
				found, _ := err.(Problems)
				for _, p := range found {
					if p.Key == key {
						problems = append(problems, p)
					}
				}
			}
			if len(problems) > 0 {
				t.Errorf("%s: %s: %v", key, v, problems)
			}
		}
	}
}
