package pawl_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pin matches third-party names in files, and has the pattern that each name must match.
type pin struct{ place, pinned *regexp.Regexp }

var pins = []pin{
	{regexp.MustCompile(`(?m)^\s*(?:- )?uses:\s*(.*)$`), regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)+$`)},
	{regexp.MustCompile(`(?m)^FROM (?:--\S+ )*(\S+)`), regexp.MustCompile(`^(?:ghcr\.io/pawlbot/pawl:\d+\.\d+\.\d+-\w+|\S+:\S+@sha256:[0-9a-f]{64})$`)},
	// Pawl's own image is a release's, or the chart's setting.
	{regexp.MustCompile(`(?m)^\s*(?:- )?image:\s*(\S*)`), regexp.MustCompile(`^(?:""|"ghcr\.io/pawlbot/pawl:\d+\.\d+\.\d+-codex"|ghcr\.io/pawlbot/pawl:\$\{PAWL_TAG:-\d+\.\d+\.\d+-codex\}|\{\{|\S+:\S+@sha256:[0-9a-f]{64})$`)},
	{regexp.MustCompile("npm (?:install|i) ([^`&|\n]*)"), regexp.MustCompile(`^(?:-\S+ |/usr/local )*(?:-g|"\$package"|\S+@\d+\.\d+\.\d+"?) ?\\?$`)},
	{regexp.MustCompile(`package=([^"\s]\S*)`), regexp.MustCompile(`^\S+@\d+\.\d+\.\d+$`)}, // the Dockerfile installs these
	{regexp.MustCompile(`(?:go run|go install|=) ?"?((?:[\w-]+\.)+[a-z]+/[\w./-]+@\S+)`), regexp.MustCompile(`@v\d+\.\d+\.\d+"?$|^github\.com/pawlbot/pawl/cmd/pawl@latest$`)},
	{regexp.MustCompile(`(?m)^\s*go-version:\s*(.*)$`), regexp.MustCompile(`^\d+\.\d+\.\d+$`)},
}

// unpinned returns the names in a text that are not pinned.
func unpinned(text string) (found []string) {
	for _, p := range pins {
		for _, m := range p.place.FindAllStringSubmatch(text, -1) {
			if name := strings.TrimSpace(m[1]); !p.pinned.MatchString(name) && !strings.HasPrefix(name, "# ") {
				found = append(found, strings.TrimSpace(m[0]))
			}
		}
	}
	return found
}

// The test reads every file that names downloads: workflows, scripts, images, examples and pages.
func TestThirdPartyArtifactsArePinned(t *testing.T) {
	looked := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if slices.Contains([]string{".git", "testdata", "bin", "dist"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		case path.Dir(name) != ".ci" && !slices.Contains([]string{".md", ".yml", ".yaml"}, path.Ext(name)) && !strings.HasPrefix(entry.Name(), "Dockerfile"):
			return nil
		case name == ".ci/clis-latest": // installs the newest versions on purpose, into a temporary folder
			return nil
		}
		looked++
		for _, what := range unpinned(string(read(t, name))) {
			t.Errorf("%s: %q names no exact version", name, what)
		}
		return nil
	})
	if err != nil || looked < 20 {
		t.Errorf("read %d files: %v", looked, err)
	}
}

func TestUnpinnedNamesAreFound(t *testing.T) {
	for _, text := range []string{
		"      - uses: actions/checkout@v4", "      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1",
		"FROM debian:bookworm-slim", "FROM debian@sha256:x AS build", "    image: postgres:17", "npm install --global @openai/codex", "npm install a@1.2.3 b",
		"go run example.org/tool@latest", "tool=example.org/tool@main", "          go-version: stable",
	} {
		if len(unpinned(text)) == 0 {
			t.Errorf("%q counts as pinned", text)
		}
	}
}

// The test reads the workflows that a pull request starts.
func TestWorkflowsGivePullRequestsNoWriteToken(t *testing.T) {
	names, err := fs.Glob(os.DirFS("."), ".github/workflows/*.yml")
	if err != nil || len(names) < 2 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text := string(read(t, name))
		if !strings.Contains(text, "\npermissions:\n  contents: read\n") {
			t.Errorf("%s: the workflow's default token may do more than read", name)
		}
		for _, bad := range []string{"pull_request_target", "workflow_run", "--privileged", "container:", "secrets.", "github.event.", "github.head_ref", "self-hosted"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s contains %s", name, bad)
			}
		}
		if strings.Contains(text, "pull_request:") && strings.Contains(text, ": write") {
			t.Errorf("%s: a pull request gets a write token", name)
		}
		if strings.Count(text, "actions/checkout@") != strings.Count(text, "persist-credentials: false") {
			t.Errorf("%s: a checkout keeps its token", name)
		}
	}
}

// The test reads the workflows of CI and of a release. .ci/lint checks their syntax with actionlint.
func TestReleasesHaveSBOMsAndProvenance(t *testing.T) {
	for name, wants := range map[string][]string{
		".github/workflows/release.yml": {"- run: .ci/release \"$GITHUB_REF_NAME\"\n", "actions/attest@", "subject-path: dist/release/*.*\n", "sbom-path: dist/release/pawl-linux-amd64.cdx.json\n", "sbom-path: dist/release/pawl-linux-arm64.cdx.json\n", "id-token: write", "attestations: write"},
		".ci/release":                   {"go run ./release", "sha256sum"},
		"lab/release/main.go":           {"cyclonedx-gomod@v"},
		".ci/run":                       {"\n.ci/vulnerabilities\n", "\nmake lint\n"},
		".ci/vulnerabilities":           {"govulncheck"},
		".ci/lint":                      {"\ngo run \"$actionlint\" "},
	} {
		for _, want := range wants {
			if !strings.Contains(string(read(t, name)), want) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
	}
}
