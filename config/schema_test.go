package config

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/pawlbot/pawl/internal/goldentest"
	"github.com/pawlbot/pawl/policy"
)

// schemaAt is the URL from which editors read the schemas.
const schemaAt = "https://raw.githubusercontent.com/pawlbot/pawl/main/config/"

// row is a row of reference.yml: keys that share a meaning.
type row struct {
	keys    []string
	meaning string
}

// sectionsOf reads the sections of one file's keys in reference.yml, in their order.
func sectionsOf(t *testing.T, file string) (names []string, sections map[string][]row) {
	t.Helper()
	data, err := os.ReadFile("reference.yml")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]yaml.Node
	if err := yaml.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	sections = map[string][]row{}
	for name, section := range pairs(all[file]) {
		names = append(names, name.Value)
		for keys, meaning := range pairs(*section) {
			sections[name.Value] = append(sections[name.Value], row{fullKeys(keys.Value), meaning.Value})
		}
	}
	return names, sections
}

// pairs yields the keys and values of a YAML group in the order of the file.
func pairs(group yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(*yaml.Node, *yaml.Node) bool) {
		for i := 0; i+1 < len(group.Content); i += 2 {
			if !yield(group.Content[i], group.Content[i+1]) {
				return
			}
		}
	}
}

// fullKeys splits the keys of a row. A key without a dot belongs to the group of the first one.
func fullKeys(text string) []string {
	keys := strings.Fields(text)
	group := keys[0][:strings.LastIndex(keys[0], ".")+1]
	for i, key := range keys {
		if !strings.Contains(key, ".") {
			keys[i] = group + strings.TrimPrefix(key, group)
		}
	}
	return keys
}

// choices lists keys with few possible values. TestLoaderAcceptsEveryChoiceOfTheSchema tries them.
var choices = map[string][]string{
	"sandbox.mode":         {SandboxAuto, SandboxPod, SandboxNone},
	"sandbox.network":      {NetworkWalled, NetworkOpen},
	"log.level":            {"trace", "debug", "info", "warn", "error"},
	"policy.learning.mode": {string(policy.ModeAuto), string(policy.ModeFixed), string(policy.ModeShadow), string(policy.ModeLearn)},
	"providers[].protocol": {OpenAI, Anthropic, Gemini},
	"backends[].kind":      append(CLIs(), Command),
	"backends[].stream":    append(CLIs(), Plain),
	"checks.severity":      {ChecksAuto, ChecksAlways, ChecksNever},
	"checks.stagnation":    {ChecksAuto, ChecksAlways, ChecksNever},
	"watch.pulls":          {WatchCommanded, WatchLabelled, WatchOwn},
	"triggers[]":           Triggers(),
}

// link matches a Markdown link. The schemas keep its text.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// defaultOf returns a key's default as a user writes it, or empty if there is none.
func defaultOf(t *testing.T, key string) string {
	t.Helper()
	c := Default()
	c.Providers, c.Accounts, c.Backends = []Provider{{}}, []Account{{}}, []Backend{{}}
	c.Providers[0].setDefaults()
	c.Backends[0].setDefaults()
	v := reflect.ValueOf(c)
	for name := range strings.SplitSeq(key, ".") {
		name, isList := strings.CutSuffix(name, "[]")
		_, index := fields(v.Type())
		if v = v.FieldByIndex(index[name]); isList {
			v = v.Index(0)
		}
	}
	return written(v)
}

// written returns a value as a user writes it, or empty for an empty text, list or group.
func written(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case Database:
		return x.DSN()
	case Secret:
		return ""
	case Bytes:
		return strings.ReplaceAll(strings.Replace(x.String(), ".0 ", "", 1), " ", "")
	case time.Duration:
		switch {
		case x > 0 && x%time.Hour == 0:
			return fmt.Sprintf("%dh", x/time.Hour)
		case x > 0 && x%time.Minute == 0:
			return fmt.Sprintf("%dm", x/time.Minute)
		}
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return ""
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// defaults lists the defaults of the row's keys; none for required keys.
func (r row) defaults(t *testing.T) (all []string) {
	t.Helper()
	if strings.HasPrefix(r.meaning, "Required") {
		return nil
	}
	for _, key := range r.keys {
		if text := defaultOf(t, key); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// tableOf returns a section as a table of docs/configuration.md. Keys of a repository have no default column, because
// the server's values are their defaults.
func tableOf(t *testing.T, rows []row, hasDefaults bool) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("key | meaning\n--- | ---\n")
	if hasDefaults {
		b.Reset()
		b.WriteString("key | default | meaning\n--- | --- | ---\n")
	}
	for _, r := range rows {
		names := slices.Clone(r.keys)
		for i, key := range names {
			if _, inList, ok := strings.Cut(key, "[]."); ok {
				key = inList
			}
			group := r.keys[0][:strings.LastIndex(r.keys[0], ".")+1]
			if i > 0 {
				key = strings.TrimPrefix(key, group)
			}
			names[i] = "`" + key + "`"
		}
		fmt.Fprintf(&b, "%s |", strings.Join(names, ", "))
		if hasDefaults {
			fmt.Fprintf(&b, " %s |", quoted(r.defaults(t)))
		}
		fmt.Fprintf(&b, " %s\n", strings.ReplaceAll(r.meaning, "|", `\|`))
	}
	return strings.ReplaceAll(b.String(), "|  |", "| |")
}

func quoted(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return "`" + strings.Join(values, "`, `") + "`"
}

// schemaOf returns a type's schema. It deletes the descriptions that it uses from the map.
func schemaOf(t *testing.T, of reflect.Type, key string, descriptions map[string]string, expands bool) *jsonschema.Schema {
	t.Helper()
	s := &jsonschema.Schema{Description: descriptions[key]}
	delete(descriptions, key)
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	_, isText := reflect.New(of).Interface().(encoding.TextUnmarshaler)
	// also adds ${NAME}, which is allowed for every value of the server's file.
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
		s.Types = []string{"string", "number", "boolean"} // the loader accepts every value as written
	case of.Kind() == reflect.Bool:
		also(&jsonschema.Schema{Type: "boolean"})
	case of.Kind() == reflect.Float64:
		also(&jsonschema.Schema{Type: "number"})
	case of.Kind() == reflect.Slice:
		s.Type, s.Items = "array", schemaOf(t, of.Elem(), key+"[]", descriptions, expands)
	case of.Kind() == reflect.Map:
		s.Types, s.AdditionalProperties = []string{"object", "null"}, schemaOf(t, of.Elem(), key+".*", descriptions, expands)
	case of.Kind() == reflect.Struct:
		s.Types, s.AdditionalProperties = []string{"object", "null"}, &jsonschema.Schema{Not: &jsonschema.Schema{}}
		s.Properties = map[string]*jsonschema.Schema{}
		names, index := fields(of)
		for _, name := range names {
			s.Properties[name] = schemaOf(t, of.FieldByIndex(index[name]).Type, strings.TrimPrefix(key+"."+name, "."), descriptions, expands)
		}
		s.PropertyOrder = names
	default:
		also(&jsonschema.Schema{Type: "integer"})
	}
	return s
}

// configurationPage is the page that documents both files.
const configurationPage = "../docs/configuration.md"

// schemas makes the schemas of the two files, and fills the tables of configurationPage.
func schemas(t *testing.T) (made map[string]*jsonschema.Schema, page string) {
	t.Helper()
	made, page = map[string]*jsonschema.Schema{}, readText(t, configurationPage)
	for _, file := range []struct {
		name, title string
		of          reflect.Type
	}{
		{"pawl", "The configuration of a Pawl server", reflect.TypeFor[Server]()},
		{"repo", RepoFile + ", what Pawl may do in a repository", reflect.TypeFor[Repo]()},
	} {
		isServer := file.name == "pawl"
		descriptions, isDocumented := map[string]string{}, map[string]bool{}
		names, sections := sectionsOf(t, file.name)
		for _, name := range names {
			page = filled(t, page, name, tableOf(t, sections[name], isServer))
			for _, r := range sections[name] {
				for _, key := range r.keys {
					isDocumented[key], descriptions[key] = true, link.ReplaceAllString(r.meaning, "$1")
					if isServer && len(r.defaults(t)) == len(r.keys) {
						descriptions[key] += " Default: " + defaultOf(t, key)
					}
				}
			}
		}
		s := schemaOf(t, file.of, "", descriptions, isServer)
		s.Schema, s.ID, s.Title = "https://json-schema.org/draft/2020-12/schema", schemaAt+file.name+".schema.json", file.title
		for key := range descriptions {
			t.Errorf("reference.yml describes %s, which is not a key of %s", key, file.of)
		}
		undocumented(t, file.of, "", isDocumented)
		made[file.name+".schema.json"] = s
	}
	return made, page
}

// clisTable returns the documentation's table of CLIs.
func clisTable() string {
	var b strings.Builder
	b.WriteString("kind and checked version | protocol | default model | efforts | hosts of its own login\n--- | --- | --- | --- | ---\n")
	for _, kind := range CLIs() {
		c := CLIOf(kind)
		models, hosts := []string{}, slices.Clone(c.Hosts)
		for _, protocol := range append([]string{""}, c.Protocols...) {
			if m := c.Models[protocol]; m != "" {
				models = append(models, m)
			}
		}
		for _, provider := range slices.Sorted(maps.Keys(c.ModelHosts)) {
			hosts = append(hosts, "for `"+provider+"/…` "+c.ModelHosts[provider])
		}
		fmt.Fprintf(&b, "%s %s | %s | %s | %s | %s\n", kind, c.Version, strings.Join(c.Protocols, ", "),
			cmp.Or(strings.Join(models, ", "), "the CLI's"), strings.Join(c.Efforts, ", "), strings.Join(hosts, ", "))
	}
	return b.String()
}

func readText(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// filled returns a page with a table between <!-- NAME --> and <!-- end -->.
func filled(t *testing.T, page, name, table string) string {
	t.Helper()
	before, rest, ok := strings.Cut(page, "<!-- "+name+" -->\n")
	_, after, closed := strings.Cut(rest, "\n<!-- end -->")
	if !ok || !closed {
		t.Fatalf("%s lacks <!-- %s --> and <!-- end -->", configurationPage, name)
	}
	return before + "<!-- " + name + " -->\n" + table + "\n<!-- end -->" + after
}

// undocumented reports the keys that reference.yml does not describe. One row may describe all keys of a list or group.
func undocumented(t *testing.T, of reflect.Type, key string, isDocumented map[string]bool) {
	t.Helper()
	names, index := fields(of)
	for _, name := range names {
		path, typ := strings.TrimPrefix(key+"."+name, "."), of.FieldByIndex(index[name]).Type
		switch {
		case typ.Kind() == reflect.Struct && typ.NumField() > 0 && typ != reflect.TypeFor[Secret]() && typ != reflect.TypeFor[Database]():
			undocumented(t, typ, path, isDocumented)
		case isDocumented[path]:
		case areGroups(typ):
			undocumented(t, typ.Elem(), path+"[]", isDocumented)
		default:
			t.Errorf("reference.yml does not describe %s", path)
		}
	}
}

func TestSchemasAndReferenceAreUpToDate(t *testing.T) {
	made, page := schemas(t)
	for name, s := range made {
		got, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		goldentest.Compare(t, name, string(got)+"\n")
	}
	goldentest.Compare(t, configurationPage, filled(t, page, "clis", clisTable()))
}

// against validates a YAML file against a published schema, as an editor does.
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

func TestSchemasAcceptWhatTheLoaderAccepts(t *testing.T) {
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
			t.Errorf("%s does not name its schema for editors", file)
		}
	}
	if err := against(t, "pawl.schema.json", []byte(minimal)); err != nil {
		t.Error(err)
	}
	if err := against(t, "pawl.schema.json", []byte("policy:\nworkers: ${WORKERS}\nlog: {level: \"${LEVEL}\"}\nserver: {drain: 1h30m}\n")); err != nil {
		t.Error(err)
	}
}

func TestSchemasRefuseWhatTheLoaderRefuses(t *testing.T) {
	for name, c := range map[string]struct{ schema, text string }{
		"an unknown key":            {"pawl.schema.json", "sandbx: {}\n"},
		"an unknown key in a list":  {"pawl.schema.json", "backends: [{name: a, kind: codex, modell: x}]\n"},
		"text instead of a number":  {"pawl.schema.json", "workers: many\n"},
		"a duration without unit":   {"pawl.schema.json", "server: {drain: 15}\n"},
		"an unknown choice":         {"pawl.schema.json", "sandbox: {mode: docker}\n"},
		"a value instead of a list": {"repo.schema.json", "verify: go test\n"},
		"an unknown trigger":        {"repo.schema.json", "triggers: [push]\n"},
	} {
		if err := against(t, c.schema, []byte(c.text)); err == nil {
			t.Errorf("%s: the schema accepts %q", name, c.text)
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
			t.Errorf("%s: the loader accepts %q", name, c.text)
		}
	}
}

func TestLoaderAcceptsEveryChoiceOfTheSchema(t *testing.T) {
	for key, values := range choices {
		for _, v := range values {
			s := newSource("pawl.yml", nil)
			var problems []Problem
			switch key {
			case "checks.severity", "checks.stagnation", "watch.pulls":
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
				s.validateBackends(c)
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
