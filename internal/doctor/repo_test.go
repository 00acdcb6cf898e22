package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
)

const widgets = "acme/widgets"

// newWard makes a clinic that also examines a repository with these files, where the App is installed.
func newWard(t *testing.T, files map[string]string) *clinic {
	t.Helper()
	c := newClinic(t, nil)
	c.must(c.github.AddRepo(t.Context(), widgets, files))
	c.must(c.github.Install(widgets))
	c.must(os.Mkdir(c.path("tmp"), 0o700))
	t.Setenv("TMPDIR", c.path("tmp"))
	c.repo = widgets
	return c
}

func TestRepositoryFindings(t *testing.T) {
	// Scripts print what go test prints: real runs would compile the standard library for each case.
	const (
		red   = `printf -- '--- FAIL: TestOne (0.00s)\nFAIL\nFAIL\tw\t0.01s\n'; exit 1`
		green = `printf -- '--- PASS: TestOne (0.00s)\nPASS\nok  \tw\t0.01s\n'`
		gomod = "module w\n\ngo 1.26\n"
	)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string // findings, as state|check|words
	}{
		{"an invalid file", map[string]string{config.RepoFile: "verify: 3\nwrong: 1\n"},
			[]string{"failed|pawl.yml|.github/pawl.yml:1: verify", "failed|pawl.yml|.github/pawl.yml:2: wrong"}},
		{"neither a file nor a setup", map[string]string{"package-lock.json": "{}\n"}, []string{
			"warning|pawl.yml|is not on the default branch",
			"warning|setup|npm ci is the usual command for package-lock.json",
			"warning|verify|no verify commands",
		}},
		{"a failing setup",
			map[string]string{config.RepoFile: "environment: {setup: [\"echo no network; exit 3\"]}\nverify: [\"true\"]\n"},
			[]string{"ok|pawl.yml|no error", "failed|setup|exit code 3; it printed no network"}},
		{"a verify command that cannot work", map[string]string{config.RepoFile: "verify: [no-such-tool]\n"},
			[]string{"failed|verify|no-such-tool cannot work here: exit code 127"}},
		{"a failing default branch", map[string]string{"test.sh": red, "go.mod": gomod, config.RepoFile: "verify: [sh test.sh]\n"}, []string{
			"warning|setup|go mod download is the usual command for go.mod",
			"warning|verify|sh test.sh fails on the default branch with exit code 1: w TestOne",
		}},
		{"no problem", map[string]string{"test.sh": green, "go.mod": gomod,
			config.RepoFile: "environment: {setup: [\"test -f go.mod\"]}\nverify: [sh test.sh]\n"}, []string{
			"ok|repository|acme/widgets is fetched",
			"ok|setup|1 command ended with exit code 0",
			"ok|verify|sh test.sh ended with exit code 0",
			"ok|verify|1 test ran",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ward := newWard(t, c.files)
			all := ward.examine()
			for _, want := range c.want {
				part := strings.SplitN(want, "|", 3)
				if !slices.ContainsFunc(all, func(f Finding) bool {
					return f.State == part[0] && f.Check == part[1] && strings.Contains(f.Text, part[2])
				}) {
					t.Errorf("no finding %s in %+v", want, all)
				}
			}
			for _, dir := range []string{"tmp", "data"} { // the check's own folder, and the server's
				if left, err := filepath.Glob(ward.path(dir + "/*")); err != nil || len(left) > 0 {
					t.Errorf("left behind: %q %v", left, err)
				}
			}
		})
	}
}

func TestRepositoryThatNeedsAnotherServerIsReported(t *testing.T) {
	c := newWard(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "environment: {runs_on: [gpu]}\n"})
	c.repo = "acme/widgets"
	c.finds(Failed, "runs_on", "no running server takes attempts that need the labels gpu", "start a server with these node.labels")
}

func TestUnreachableRepositoryIsReported(t *testing.T) {
	c := newWard(t, map[string]string{"a.txt": "one\n"})
	c.must(c.github.AddRepo(t.Context(), "other/widgets", map[string]string{"a.txt": "one\n"}))
	c.must(c.github.Uninstall("other/widgets"))
	c.repo = "other/widgets"
	c.finds(Failed, "repository", "", "install the App on other/widgets")
	c.repo = "acme/widgets"
	c.github.Inject(fakegithub.Fault{Route: "GET /repos/{owner}/{repo}", Status: 403, Times: 1,
		Message: "Although you appear to have the correct authorization credentials, the `acme` organization has an IP allow list enabled, and your IP address is not permitted to access this resource."})
	c.finds(Failed, "repository", "IP allow list", "let this server's address into the organization's IP allow list")
	c.repo = "acme/..%2Fwidgets"
	c.finds(Failed, "repository", "not a valid GitHub name", "or correct the name")
}
