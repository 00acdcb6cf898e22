package pawl_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every owner who installed the App must accept an added permission. With the workflows permission, an agent could
// write code that runs with the repository's secrets.
func TestAppRequestsOnlyNeededPermissions(t *testing.T) {
	var app struct {
		Name        string            `yaml:"name"`
		Description string            `yaml:"description"`
		URL         string            `yaml:"url"`
		Public      bool              `yaml:"public"`
		Hook        map[string]any    `yaml:"hook_attributes"`
		Callbacks   []string          `yaml:"callback_urls"`
		Events      []string          `yaml:"default_events"`
		Permissions map[string]string `yaml:"default_permissions"`
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(read(t, "app.yml"))))
	decoder.KnownFields(true)
	if err := decoder.Decode(&app); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"actions": "read", "checks": "write", "contents": "write", "issues": "write", "pull_requests": "write", "metadata": "read"}
	if diff := cmp.Diff(want, app.Permissions); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
	events := []string{"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment",
		"check_run", "push", "delete", "repository"}
	if diff := cmp.Diff(events, app.Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	hook, _ := app.Hook["url"].(string)
	if app.Name == "" || app.Description == "" || app.URL == "" || app.Hook["active"] != true || !strings.HasSuffix(hook, "/api/github/hook") || len(app.Callbacks) != 1 {
		t.Errorf("the manifest is incomplete: %+v", app)
	}
}

// instruction is one line of a Dockerfile, with its continuations.
type instruction struct{ word, rest string }

func dockerfile(t *testing.T) [][]instruction {
	t.Helper()
	text := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(string(read(t, "Dockerfile")), "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	var stages [][]instruction
	for line := range strings.Lines(text) {
		word, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		if word == "FROM" {
			stages = append(stages, nil)
		}
		if len(stages) == 0 {
			t.Fatalf("%s before the first FROM", word)
		}
		last := len(stages) - 1
		stages[last] = append(stages[last], instruction{word, strings.Join(strings.Fields(rest), " ")})
	}
	return stages
}

func TestImageIsStaticSmallAndNotRoot(t *testing.T) {
	stages := dockerfile(t)
	if len(stages) != 2 {
		t.Fatalf("%d stages, want build and run", len(stages))
	}
	known := []string{"FROM", "WORKDIR", "COPY", "RUN", "ARG", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
	words := map[string]string{}
	for i, stage := range stages {
		for _, in := range stage {
			if !slices.Contains(known, in.word) {
				t.Errorf("unknown instruction %s", in.word)
			}
			if i == 1 && in.word == "RUN" {
				words[in.word] += in.rest + "\n"
			} else if i == 1 {
				words[in.word] = in.rest
			}
		}
	}
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(read(t, "go.mod")))
	if from := stages[0][0].rest; len(goVersion) != 2 || !strings.HasPrefix(from, "golang:"+goVersion[1]+".") {
		t.Errorf("built on %q, go.mod says %v", from, goVersion)
	}
	build := stages[0][len(stages[0])-1].rest
	for _, flag := range []string{"CGO_ENABLED=0", "-trimpath", "-X main.version=", "./cmd/pawl"} {
		if !strings.Contains(build, flag) {
			t.Errorf("the build lacks %s: %s", flag, build)
		}
	}
	if user := words["USER"]; user != "10001:10001" {
		t.Errorf("runs as %q; want a number other than 0, which an orchestrator can check", user)
	}
	for _, pkg := range []string{"bubblewrap", "ca-certificates", "git"} {
		if !strings.Contains(words["RUN"], " "+pkg+" ") {
			t.Errorf("the image lacks %s", pkg)
		}
	}
	for _, word := range []string{"ENTRYPOINT", "CMD"} {
		var argv []string
		if err := json.Unmarshal([]byte(words[word]), &argv); err != nil || len(argv) == 0 {
			t.Errorf("%s is not in exec form: %v", word, err)
		}
	}
	var check []string
	if _, list, ok := strings.Cut(words["HEALTHCHECK"], "CMD "); !ok || json.Unmarshal([]byte(list), &check) != nil || !strings.Contains(check[2], "/healthz") {
		t.Errorf("health check is %q", words["HEALTHCHECK"])
	}
	if words["VOLUME"] != "/data" {
		t.Errorf("volume is %q", words["VOLUME"])
	}
}

// .dockerignore lists the build's files, and must match the tree.
func TestBuildContextHasEveryPackageFolder(t *testing.T) {
	lines := strings.Split(string(read(t, ".dockerignore")), "\n")
	for _, room := range topLevel() {
		needed := !slices.Contains([]string{"testdata", "docs", "lab", "bin", "dist"}, room)
		if got := slices.Contains(lines, "!"+room); got != needed {
			t.Errorf("%s in the build context: %v, want %v", room, got, needed)
		}
	}
}

func TestLicenseIsApache2(t *testing.T) {
	text := string(read(t, "LICENSE"))
	for _, part := range []string{"Apache License\n", "Version 2.0, January 2004", "9. Accepting Warranty or Additional Liability.", "END OF TERMS AND CONDITIONS"} {
		if !strings.Contains(text, part) {
			t.Errorf("LICENSE lacks %q", part)
		}
	}
}
