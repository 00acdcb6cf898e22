package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/doctor"
	"github.com/pawlbot/pawl/internal/setup"
	"github.com/pawlbot/pawl/internal/testrig"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
)

// clinic is a configuration that pawl doctor looks at, with the built binary.
type clinic struct {
	*rig
	text string   // the configuration
	env  []string // of the command
	as   *syscall.Credential
	exe  string
}

// newClinic is a server that could work: the App is known to the fake GitHub, a
// database exists, and the only backend is a script that says it is the Codex that
// was checked. change makes the GitHub another.
func newClinic(t *testing.T, change func(*fakegithub.Options)) *clinic {
	t.Helper()
	o := fakegithub.Options{AppID: 1, Slug: "pawl", WebhookSecret: testrig.Secret, Events: setup.AppEvents(), WebhookURL: "http://127.0.0.1:1" + doctor.HookPath}
	if change != nil {
		change(&o)
	}
	gh, err := fakegithub.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	c := &clinic{rig: &rig{&testrig.Rig{T: t, Dir: t.TempDir(), World: gh, Log: &testrig.LogBuffer{}}}, env: []string{"PATH=" + os.Getenv("PATH")}, exe: testrig.Program}
	c.Must(os.WriteFile(filepath.Join(c.Dir, "app.pem"), gh.PrivateKeyPEM(), 0o600))
	c.Must(os.Mkdir(filepath.Join(c.Dir, "data"), 0o700))
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(c.Dir, "pawl.db"), store.Options{})
	c.Must(err)
	c.Must(db.Close())
	c.text = fmt.Sprintf(`github:
  web_url: %s
  v3_api_url: %s
  app: {integration_id: 1, webhook_secret: %q, private_key_file: app.pem}
database: sqlite:pawl.db
data_dir: data
sandbox: {mode: none}
backends:
  - {name: mine, kind: codex, argv: [%q]}
`, gh.WebURL(), strings.TrimSuffix(gh.APIURL(), "/"), testrig.Secret, c.cli("mine", "codex-cli 0.169.0", 0))
	return c
}

// cli is a script that prints something and ends with a code.
func (c *clinic) cli(name, prints string, code int) string {
	c.T.Helper()
	path := filepath.Join(c.Dir, name)
	c.Must(os.WriteFile(path, fmt.Appendf(nil, "#!/bin/sh\ncat <<'E'\n%s\nE\nexit %d\n", prints, code), 0o755))
	return path
}

// replace changes the configuration.
func (c *clinic) replace(old, with string) {
	c.T.Helper()
	if !strings.Contains(c.text, old) {
		c.T.Fatalf("the configuration has no %q:\n%s", old, c.text)
	}
	c.text = strings.Replace(c.text, old, with, 1)
}

// doctor runs the command.
func (c *clinic) doctor(args ...string) (code int, stdout, stderr string) {
	c.T.Helper()
	path := filepath.Join(c.Dir, "pawl.yml")
	c.Must(os.WriteFile(path, []byte(c.text), 0o644))
	cmd := exec.Command(c.exe, append([]string{"doctor", "--config", path}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = &out, &errs, c.env, c.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.as}
	_ = cmd.Run() // its exit code tells
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// finds checks that doctor has exactly one line of that state and check, with
// these words, and that it fails if the line does. Where hint is given, the next
// line must have it.
func (c *clinic) finds(state, check, words, hint string) {
	c.T.Helper()
	code, out, errs := c.doctor()
	want := exitDone
	if state == doctor.Failed {
		want = exitFailed
	}
	lines := strings.Split(out, "\n")
	found, hinted := 0, hint == ""
	for i, line := range lines {
		if strings.HasPrefix(line, fmt.Sprintf("%-8s %-14s ", state, check)) && strings.Contains(line, words) {
			found++
			hinted = hinted || strings.Contains(lines[i+1], "→ ") && strings.Contains(lines[i+1], hint)
		}
	}
	if found != 1 || !hinted || code != want {
		c.T.Errorf("exit %d, %d lines; want %d and one line %s %s with %q and the hint %q:\n%s%s", code, found, want, state, check, words, hint, out, errs)
	}
	if strings.Contains(out+errs, testrig.Secret) || strings.Contains(out+errs, "PRIVATE KEY---") && !strings.Contains(words, "PEM") {
		c.T.Errorf("a secret is shown:\n%s%s", out, errs)
	}
}

func TestDoctorFindsNothingWhereAllIsWell(t *testing.T) {
	t.Parallel()
	c := newClinic(t, nil)
	if _, err := sandbox.New(t.Context(), sandbox.Auto); err == nil {
		c.replace("mode: none", "mode: auto")
	} else {
		t.Logf("no sandbox works here, so none is checked: %v", err)
	}
	code, out, errs := c.doctor()
	if code != exitDone || strings.Contains(out, doctor.Failed) {
		t.Fatalf("exit %d:\n%s%s", code, out, errs)
	}
	for _, check := range []string{"configuration", "database", "data_dir", "git", "sandbox", "github", "permissions", "events", "backend mine"} {
		if !strings.Contains(out, check) {
			t.Errorf("no line for %s:\n%s", check, out)
		}
	}
}

func TestDoctorTellsTheSameAsJSON(t *testing.T) {
	t.Parallel()
	c := newClinic(t, func(o *fakegithub.Options) { o.Events = []string{"push"} })
	code, out, _ := c.doctor("--json")
	var report map[string][]map[string]string
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&report); err != nil || d.More() || code != exitFailed || len(report) != 1 {
		t.Fatalf("exit %d, %v:\n%s", code, err, out)
	}
	states := map[string]string{}
	for _, f := range report["checks"] {
		states[f["check"]] = f["state"]
		for key := range f {
			if key != "check" && key != "state" && key != "text" && key != "hint" {
				t.Errorf("an unknown key %q", key)
			}
		}
		if f["text"] == "" || f["state"] == doctor.Failed && f["hint"] == "" {
			t.Errorf("no text, or no hint of what to do: %v", f)
		}
	}
	if states["events"] != doctor.Failed || states["github"] != doctor.OK || states["sandbox"] != doctor.Warning {
		t.Errorf("states: %v", states)
	}
}

func TestDoctorNeedsAConfiguration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(*clinic)
		text string
		hint string
	}{
		{"an unknown key", func(c *clinic) { c.text += "sandbx: {}\n" }, "sandbx: is not a known key", "docs/configuration.md"},
		{"two errors", func(c *clinic) { c.text += "workers: -1\nlog: {level: loud}\n" }, "workers: -1 is out of range", "docs/configuration.md"},
		{"a variable that is not set", func(c *clinic) { c.replace("integration_id: 1", `integration_id: "${NOT_SET}"`) }, "NOT_SET is not set", "docs/configuration.md"},
		{"a database of another kind", func(c *clinic) { c.replace("sqlite:pawl.db", "mysql://pawl@host/pawl") }, "database", "docs/configuration.md"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clinic := newClinic(t, nil)
			c.edit(clinic)
			clinic.finds(doctor.Failed, "configuration", c.text, c.hint)
		})
	}
	clinic := newClinic(t, nil)
	cmd := exec.Command(testrig.Program, "doctor", "--config", filepath.Join(clinic.Dir, "none.yml"))
	out, _ := cmd.CombinedOutput() // its exit code tells
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(out), "run pawl setup") {
		t.Errorf("without a file: exit %d\n%s", cmd.ProcessState.ExitCode(), out)
	}
}
