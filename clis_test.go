package pawl_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent/clis"
)

// Each row of config's table must be in the files that are not generated from it: documents, the image, the chart, and the
// installation of the CLIs for tests.
func TestEveryConfiguredCLIIsDocumented(t *testing.T) {
	var titles []string
	for _, kind := range config.CLIs() {
		row := config.CLIOf(kind)
		titles = append(titles, row.Title)
		adapter, err := clis.For(kind, "")
		if err != nil {
			t.Error(err)
		}
		if adapter.Credential == "" {
			t.Errorf("internal/agent/%s: Adapter.Credential is empty; set it to the file of the CLI's login below HOME", kind)
		}
		key := "one of these"
		if protocol := config.ProtocolOf(kind); protocol != "" {
			key = "`" + config.VendorOf(protocol).KeyVariable + "`"
		}
		pinned := row.Package
		if kind == config.OpenCode {
			pinned = "opencode-linux-x64" // see the description of the file
		}
		for file, wants := range map[string][]string{
			"README.md":                                  {fmt.Sprintf("| `%s` | `%s` | %s |\n", kind, adapter.Version.Install(), key)},
			"Dockerfile":                                 {kind + ") package=" + row.Package + "@" + row.Version + " ;;"},
			"docs/configuration.md":                      {kind + " " + row.Version, "`" + adapter.Credential + "`"},
			"docs/security.md":                           {"\n| `" + kind + "` |"},
			"testdata/clis/package.json":                 {fmt.Sprintf("%q: %q", pinned, row.Version)},
			"config/deploy/README.md":                    {"`" + kind + "`"},
			".ci/setup":                                  {kind},
			"internal/agent/" + kind + "/":               nil,
			"testdata/agents/" + kind:                    nil,
			"config/deploy/helm/pawl/values.schema.json": {fmt.Sprintf("%q", kind)},
		} {
			if len(wants) == 0 {
				if _, err := os.Stat(filepath.FromSlash(file)); err != nil {
					t.Error(err)
				}
			}
			for _, want := range wants {
				if !strings.Contains(string(read(t, file)), want) {
					t.Errorf("%s does not name %s: it lacks %q", file, row.Title, want)
				}
			}
		}
	}
	readme := strings.Join(strings.Fields(string(read(t, "README.md"))), " ")
	for _, want := range []string{
		"`inspect` reads the streams of " + inWords(titles, "and") + ".",
		"`bin/pawl demo --agent codex` (or `" + strings.Join(config.CLIs()[1:], "`, `") + "`)",
	} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md lacks %q", want)
		}
	}
	either := inWords(config.CLIs(), "or")
	for file, want := range map[string]string{
		"Dockerfile":                          "use none, " + either + `"`,
		"config/example.yml":                  "kind: codex # " + strings.Join(config.CLIs(), ", ") + " or command",
		"config/deploy/helm/pawl/values.yaml": either,
	} {
		if !strings.Contains(string(read(t, file)), want) {
			t.Errorf("%s lacks %q", file, want)
		}
	}
}

// package-lock.json pins each CLI of testdata/clis/package.json at its version there.
func TestPackageLockPinsTheCLIs(t *testing.T) {
	type wants struct{ Dependencies, OptionalDependencies map[string]string }
	var asked wants
	var lock struct {
		Packages map[string]struct {
			wants
			Version string
		}
	}
	for file, into := range map[string]any{"package.json": &asked, "package-lock.json": &lock} {
		if err := json.Unmarshal(read(t, "testdata/clis/"+file), into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if d := cmp.Diff(asked, lock.Packages[""].wants); d != "" {
		t.Errorf("testdata/clis/package-lock.json belongs to another package.json: %s", d)
	}
	for _, packages := range []map[string]string{asked.Dependencies, asked.OptionalDependencies} {
		for name, version := range packages {
			if locked := lock.Packages["node_modules/"+name].Version; locked != version {
				t.Errorf("testdata/clis/package-lock.json has version %q of %s; package.json requires %s", name, locked, version)
			}
		}
	}
}

func inWords(list []string, last string) string {
	return strings.Join(list[:len(list)-1], ", ") + " " + last + " " + list[len(list)-1]
}
