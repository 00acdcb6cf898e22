package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/testrig"
)

// ward is a clinic whose App is installed on a repository with these files.
func ward(t *testing.T, files map[string]string) *clinic {
	c := newClinic(t, nil)
	c.Must(c.World.AddRepo(t.Context(), testrig.Repo, files))
	c.Must(c.World.Install(testrig.Repo))
	c.env = append(c.env, "TMPDIR="+t.TempDir())
	return c
}

func TestDoctorTriesARepository(t *testing.T) {
	t.Parallel()
	// Scripts print what go test prints: real runs would compile the standard library anew for each case.
	red, green := `printf -- '--- FAIL: TestOne (0.00s)\nFAIL\nFAIL\tw\t0.01s\n'; exit 1`, `printf -- '--- PASS: TestOne (0.00s)\nPASS\nok  \tw\t0.01s\n'`
	for _, tc := range []struct {
		name  string
		files map[string]string
		code  int
		lines []string // each begins like a line of the report, up to the third column, and is in it
	}{
		{"whose file is wrong", map[string]string{config.RepoFile: "verify: 3\nwrong: 1\n"}, exitFailed,
			[]string{"failed|pawl.yml|.github/pawl.yml:1: verify", "failed|pawl.yml|.github/pawl.yml:2: wrong"}},
		{"without a file and a setup", map[string]string{"package-lock.json": "{}\n"}, exitDone,
			[]string{"warning|pawl.yml|is not on the default branch", "warning|setup|npm ci is the usual command for package-lock.json", "warning|verify|no verify commands"}},
		{"whose setup fails", map[string]string{config.RepoFile: "environment: {setup: [\"echo no network; exit 3\"]}\nverify: [\"true\"]\n"}, exitFailed,
			[]string{"ok|pawl.yml|no error", "failed|setup|exit code 3; it printed no network"}},
		{"whose verify command cannot work", map[string]string{config.RepoFile: "verify: [no-such-tool]\n"}, exitFailed,
			[]string{"failed|verify|no-such-tool cannot work here: exit code 127"}},
		{"that is red", map[string]string{"test.sh": red, "go.mod": "module w\n\ngo 1.26\n", config.RepoFile: "verify: [sh test.sh]\n"}, exitDone,
			[]string{"warning|setup|go mod download is the usual command for go.mod", "warning|verify|sh test.sh fails on the default branch with exit code 1: w TestOne"}},
		{"that is well", map[string]string{"test.sh": green, "go.mod": "module w\n\ngo 1.26\n", config.RepoFile: "environment: {setup: [\"test -f go.mod\"]}\nverify: [sh test.sh]\n"}, exitDone,
			[]string{"ok|repository|acme/widgets is fetched", "ok|setup|1 command ended with exit code 0", "ok|verify|sh test.sh ended with exit code 0", "ok|verify|1 test ran"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := ward(t, tc.files)
			code, out, errs := c.doctor("--repo", testrig.Repo)
			if code != tc.code {
				t.Errorf("exit %d, want %d", code, tc.code)
			}
			for _, want := range tc.lines {
				part := strings.SplitN(want, "|", 3)
				found := false
				for line := range strings.Lines(out) {
					f := strings.Fields(line)
					found = found || len(f) > 2 && f[0] == part[0] && f[1] == part[1] && strings.Contains(line, part[2])
				}
				if !found {
					t.Errorf("no line %s", want)
				}
			}
			left, err := filepath.Glob(filepath.Join(strings.TrimPrefix(c.env[len(c.env)-1], "TMPDIR="), "*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %q %v", left, err)
			}
			if kept, err := os.ReadDir(filepath.Join(c.Dir, "data")); err != nil || len(kept) > 0 {
				t.Errorf("the server's data directory was used: %v %v", kept, err)
			}
			if t.Failed() {
				t.Logf("%s%s", out, errs)
			}
		})
	}
}

func TestDoctorTriesNoRepositoryThatItCannotReach(t *testing.T) {
	t.Parallel()
	c := ward(t, map[string]string{"a.txt": "one\n"})
	c.Must(c.World.AddRepo(t.Context(), "other/widgets", map[string]string{"a.txt": "one\n"}))
	c.Must(c.World.Uninstall("other/widgets"))
	if code, out, _ := c.doctor("--repo", "other/widgets"); code != exitFailed || !strings.Contains(out, "install the App on other/widgets") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	for _, bad := range []string{"", "widgets", "a/b/c", "/", "acme/"} {
		if code, _, errs := c.doctor("--repo", bad); code != exitUsage || !strings.Contains(errs, "--repo takes OWNER/NAME") {
			t.Errorf("--repo %q: exit %d, %s", bad, code, errs)
		}
	}
	if code, out, _ := c.doctor("--repo", "acme/..%2Fwidgets"); code != exitFailed || !strings.Contains(out, "not a name that GitHub gives") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}
