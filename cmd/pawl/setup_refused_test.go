package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestSetupRefusesBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, want string
		args             []string
		code             int
	}{
		{"a configuration that exists", "pawl.yml", "pawl.yml exists already, and nothing is overwritten", nil, 1},
		{"a key that exists", "app.pem", "app.pem exists already, and nothing is overwritten", nil, 1},
		{"a folder that does not", "", "no such file or directory", []string{"--config", "none/pawl.yml"}, 1},
		{"a public address without TLS", "", "does not begin with https://", []string{"--url", "http://pawl.example.com"}, 2},
		{"a GitHub without TLS", "", "does not begin with https://", []string{"--github", "http://github.example.com"}, 2},
		{"a GitHub with a path", "", "name the host only", []string{"--github", "https://github.com/acme"}, 2},
		{"an address with a password", "", "without user and query", []string{"--url", "https://a:b@pawl.example.com"}, 2},
		{"an organization with a path", "", "no name of an organization", []string{"--org", "a/../b"}, 2},
		{"a long name", "", "1 to 34 characters", []string{"--name", strings.Repeat("x", 35)}, 2},
		{"an unknown agent", "", `"perl" is not one of codex, claude, gemini, opencode`, []string{"--backend", "perl"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			i := newInstaller(t)
			if c.file != "" {
				i.must(os.WriteFile(filepath.Join(i.dir, c.file), []byte("mine"), 0o644))
			}
			before := i.files()
			i.starts(c.args...)
			if code := i.ends(); code != c.code || i.page != "" || !strings.Contains(i.stderr.String(), c.want) {
				t.Errorf("exit %d, page %q, %s; want %d and %q", code, i.page, &i.stderr, c.code, c.want)
			}
			if diff := cmp.Diff(before, i.files()); diff != "" || len(i.gh.Manifests()) != 0 {
				t.Errorf("something was made: %s", diff)
			}
		})
	}
}

func TestSetupOverwritesNothingThatCameMeanwhile(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	i.starts()
	target := filepath.Join(i.dir, "elsewhere")
	i.must(os.WriteFile(target, []byte("mine"), 0o600))
	i.must(os.Symlink(target, filepath.Join(i.dir, "app.pem")))
	i.get(i.presses())
	if code := i.ends(); code != 1 || !strings.Contains(i.stderr.String(), "make a new private key and webhook secret there") {
		t.Errorf("exit %d: %s", code, &i.stderr)
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "mine" {
		t.Errorf("the file behind the link holds %q, %v", b, err)
	}
}

func TestSetupSaysWhatBecameOfTheAppWhenGitHubFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault fakegithub.Fault
		code  int
		want  string
	}{
		{"for a moment", fakegithub.Fault{Status: 502}, 0, ""},
		{"for good", fakegithub.Fault{Status: 502, Times: -1}, 1, "the App itself may exist now: delete it at"},
		{"with an answer that got lost", fakegithub.Fault{AbortAfter: true}, 1, "the code was used before or is older than an hour"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			i := newInstaller(t)
			c.fault.Route = "POST /app-manifests/*/conversions"
			i.gh.Inject(c.fault)
			i.starts()
			back, err := url.Parse(i.presses())
			i.must(err)
			i.get(back.String())
			code := i.ends()
			if said := i.stderr.String(); code != c.code || !strings.Contains(said, c.want) || strings.Contains(said, back.Query().Get("code")) {
				t.Errorf("exit %d: %s; want %d and %q, without the code", code, said, c.code, c.want)
			}
			if c.code != 0 && len(i.files()) != 0 {
				t.Errorf("files: %v, want none", i.files())
			}
		})
	}
}

func TestSetupEndsWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	i.starts()
	i.must(i.cmd.Process.Signal(os.Interrupt))
	if code := i.ends(); code != 1 || !strings.Contains(i.stderr.String(), "interrupted; nothing was made") || len(i.files()) != 0 {
		t.Errorf("exit %d, files %v: %s", code, i.files(), &i.stderr)
	}
}

func TestSetupRefusesAnAppOfSomebodyElse(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	i.starts("--org", "acme")
	back, err := url.Parse(i.presses())
	i.must(err)
	// The code of an App that another made, with the state that they learned.
	resp, err := browser().PostForm(i.gh.WebURL()+"/organizations/mallory/settings/apps/new", url.Values{"manifest": {`{"name": "n", "url": "https://m.example",
		"hook_attributes": {"url": "https://m.example/hook"}, "redirect_url": "http://127.0.0.1:1/"}`}})
	i.must(err)
	resp.Body.Close()
	theirs, err := url.Parse(resp.Header.Get("Location"))
	i.must(err)
	q := back.Query()
	q.Set("code", theirs.Query().Get("code"))
	back.RawQuery = q.Encode()
	i.get(back.String())
	if code := i.ends(); code != 1 || !strings.Contains(i.stderr.String(), `it belongs to "mallory", not to "acme"; nothing was written`) || len(i.files()) != 0 {
		t.Errorf("exit %d, files %v: %s", code, i.files(), &i.stderr)
	}
}
