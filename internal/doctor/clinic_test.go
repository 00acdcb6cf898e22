package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/setup"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/web"
)

// TestMain lets the sandbox start the test binary instead of pawl.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.InsideCommand {
		fmt.Fprintln(os.Stderr, sandbox.Inside(os.Args[2:]))
		os.Exit(126)
	}
	os.Exit(m.Run())
}

const webhookSecret = "a webhook secret of some length"

// clinic is a server's configuration to examine.
type clinic struct {
	*testing.T
	github *fakegithub.Server
	dir    string
	text   string // the configuration
	repo   string // a repository that is also examined
}

// newClinic makes a configuration without failures: the fake GitHub knows the App, a database exists, and the only
// backend is a script that prints the checked version of Codex. change modifies the App.
func newClinic(t *testing.T, change func(*fakegithub.Options)) *clinic {
	t.Helper()
	o := fakegithub.Options{
		AppID:         1,
		Slug:          "pawl",
		WebhookSecret: webhookSecret,
		Events:        setup.AppEvents(),
		WebhookURL:    "http://127.0.0.1:1" + HookPath,
	}
	if change != nil {
		change(&o)
	}
	github, err := fakegithub.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { github.Close() })
	c := &clinic{T: t, github: github, dir: t.TempDir()}
	c.write("app.pem", string(github.PrivateKeyPEM()))
	c.must(os.Mkdir(c.path("data"), 0o700))
	db, err := store.Open(t.Context(), "sqlite:"+c.path("pawl.db"), store.Options{})
	c.must(err)
	c.must(db.Close())
	c.text = fmt.Sprintf(`github:
  web_url: %s
  v3_api_url: %s
  app: {integration_id: 1, webhook_secret: %q, private_key_file: app.pem}
database: sqlite:pawl.db
data_dir: data
sandbox: {mode: none}
backends:
  - {name: mine, kind: codex, argv: [%q]}
`, github.WebURL(), strings.TrimSuffix(github.APIURL(), "/"), webhookSecret, c.prints("mine", "codex-cli 0.169.0", 0))
	return c
}

func (c *clinic) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *clinic) path(name string) string { return filepath.Join(c.dir, name) }

func (c *clinic) write(name, text string) {
	c.Helper()
	c.must(os.WriteFile(c.path(name), []byte(text), 0o600))
}

// script writes a shell script and returns its path.
func (c *clinic) script(name, text string) string {
	c.Helper()
	path := c.path(name)
	c.must(os.MkdirAll(filepath.Dir(path), 0o755))
	c.must(os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
	return path
}

// prints writes a script that prints a text and exits with a code.
func (c *clinic) prints(name, text string, code int) string {
	c.Helper()
	return c.script(name, fmt.Sprintf("cat <<'E'\n%s\nE\nexit %d\n", text, code))
}

// only makes PATH contain only these programs.
func (c *clinic) only(names ...string) {
	c.Helper()
	for _, name := range names {
		path, err := exec.LookPath(name)
		c.must(err)
		c.must(os.MkdirAll(c.path("bin"), 0o755))
		c.must(os.Symlink(path, c.path("bin/"+name)))
	}
	c.Setenv("PATH", c.path("bin"))
}

func (c *clinic) replace(old, with string) {
	c.Helper()
	if !strings.Contains(c.text, old) {
		c.Fatalf("the configuration has no %q:\n%s", old, c.text)
	}
	c.text = strings.Replace(c.text, old, with, 1)
}

func (c *clinic) examine() []Finding {
	c.Helper()
	c.write("pawl.yml", c.text)
	return Examine(c.Context(), c.path("pawl.yml"), c.repo, web.Build{})
}

// finds checks that exactly one finding of a state and check contains words and the hint.
func (c *clinic) finds(state, check, words, hint string) {
	c.Helper()
	all := c.examine()
	key := strings.Split(string(c.github.PrivateKeyPEM()), "\n")[1]
	found := 0
	for _, f := range all {
		if f.State == state && f.Check == check && strings.Contains(f.Text, words) && strings.Contains(f.Hint, hint) {
			found++
		}
		if text := f.Text + f.Hint; strings.Contains(text, webhookSecret) || strings.Contains(text, key) {
			c.Errorf("a secret is shown: %s", text)
		}
		if f.State == Failed && f.Hint == "" {
			c.Errorf("no hint says what to do: %+v", f)
		}
	}
	if found != 1 {
		var list strings.Builder
		Print(&list, all)
		c.Errorf("%d findings, want one: %s %s with %q and the hint %q:\n%s", found, state, check, words, hint, &list)
	}
}

// ill is a problem and the finding that it causes.
type ill struct {
	name                      string
	edit                      func(*clinic)
	state, check, words, hint string
}

// inPod sets sandbox.mode pod, and the address of the Kubernetes API as in a pod.
func (c *clinic) inPod(host string) {
	c.Helper()
	c.Setenv("KUBERNETES_SERVICE_HOST", host)
	c.Setenv("KUBERNETES_SERVICE_PORT", "1")
	c.replace("{mode: none}", "{mode: pod}\nworkers: 1")
	c.replace("sqlite:pawl.db", "postgres://pawl:secret-of-the-database@127.0.0.1:1/pawl")
}

// find checks each row in a new clinic.
func find(t *testing.T, rows []ill) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			c := newClinic(t, nil)
			row.edit(c)
			c.finds(row.state, row.check, row.words, row.hint)
		})
	}
}
