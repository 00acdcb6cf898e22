package git

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBranchNameRulesMatchGits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.SampledFrom([]rune("abé/.@{~^:?*[\\-l o\tck")), 1, 12, -1).Draw(t, "name")
		if rapid.Bool().Draw(t, "lock") {
			name += ".lock"
		}
		if name == "@" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "refs/") {
			return // Pawl refuses them as branches, although git uses them elsewhere
		}
		err := exec.Command("git", "check-ref-format", "refs/heads/"+name).Run()
		if _, got := fullRef(name); (got == nil) != (err == nil) {
			t.Fatalf("%q: allowed %v, git allows it: %v", name, got, err)
		}
	})
}

func TestDotGitNamesOfOtherSystemsAreFound(t *testing.T) {
	for name, want := range map[string]bool{
		".git": true, ".GIT": true, ".Git ": true, ".git.": true, ".git...  ": true, "git~1": true, "GIT~1": true, ".git::$INDEX_ALLOCATION": true,
		".g\u200cit": true, "\ufeff.git": true, ".git\u200f": true, `.git\config`: true,
		".gitignore": false, ".github": false, "git": false, "git~2": false, ".gitx": false, "x.git": false, "": false,
	} {
		if got := looksLikeDotGit(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestCredentialsAreRedacted(t *testing.T) {
	r := &Remote{URL: "https://github.com/a/b.git", Token: "secret-token"}
	for _, text := range []string{"x secret-token y", "Basic " + r.basic(), "ghs_0123456789abcdefghij.0123456789-abc_def", "https://me:hunter2@host/x"} {
		got := redact(text, r)
		for _, secret := range []string{"secret-token", r.basic(), "0123456789", "hunter2"} {
			if strings.Contains(got, secret) {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}
