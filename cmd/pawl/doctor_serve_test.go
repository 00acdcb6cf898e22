package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/doctor"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/setup"
	"github.com/pawlbot/pawl/internal/testrig"
)

// serves starts pawl serve where it must not start, and returns what it says.
func (c *clinic) refusesToServe(words ...string) {
	c.T.Helper()
	path := filepath.Join(c.Dir, "pawl.yml")
	c.Must(os.WriteFile(path, []byte(c.text), 0o644))
	cmd := exec.Command(c.exe, "serve", "--config", path, "--listen", "127.0.0.1:0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env, cmd.Dir = &out, &out, c.env, c.Dir
	_ = cmd.Run() // its exit code tells
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || strings.Contains(out.String(), "pawl serves") {
		c.T.Fatalf("exit %d:\n%s", code, out.String())
	}
	for _, w := range words {
		if !strings.Contains(out.String(), w) {
			c.T.Errorf("it does not say %q:\n%s", w, out.String())
		}
	}
}

func TestAServerRefusesToStartWhereNoAttemptCould(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit  func(*clinic)
		words []string
	}{
		"an old git": {func(c *clinic) {
			dir := c.tools("sh", "cat")
			c.Must(os.Rename(c.cli("git", "git version 2.37.7", 0), filepath.Join(dir, "git")))
			c.env = []string{"PATH=" + dir}
		}, []string{"git version 2.37.7 is too old", "install git 2.38 or newer"}},
		"a path of the sandbox that is missing": {func(c *clinic) { c.replace("{mode: none}", "{mode: none, read_only: [/none/agents]}") }, []string{"/none/agents", "correct the path or remove it"}},
		"the only agent is missing":             {func(c *clinic) { c.replace(filepath.Join(c.Dir, "mine"), "/none/codex") }, []string{"no backend can work", "npm install --global @openai/codex@"}},
		"the only agent does not start":         {func(c *clinic) { c.cli("mine", "no", 3) }, []string{"no backend can work", "exit status 3"}},
		"the only agent has no login": {func(c *clinic) {
			c.Must(os.Mkdir(filepath.Join(c.Dir, "bin"), 0o755))
			c.Must(os.Rename(c.cli("codex", "codex-cli 0.169.0", 0), filepath.Join(c.Dir, "bin/codex")))
			c.env = []string{"PATH=" + filepath.Join(c.Dir, "bin") + ":" + os.Getenv("PATH")}
			c.text = strings.Replace(c.text, `, argv: ["`+filepath.Join(c.Dir, "mine")+`"]`, "", 1)
		}, []string{"no backend can work", "has no way to sign in", "name a provider"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clinic := newClinic(t, nil)
			c.edit(clinic)
			clinic.refusesToServe(c.words...)
		})
	}
}

// What is wrong with one of two backends, and at others, is said and does not keep a server from its work.
func TestAServerWarnsOfTheRest(t *testing.T) {
	t.Parallel()
	r := newRigAt(t, nil, time.Now, func(o *fakegithub.Options) {
		o.Permissions = setup.AppPermissions()
		o.Permissions["workflows"] = "write"
	})
	r.Agent("echo two >> a.txt\n", "")
	r.Config += "  - {name: gone, kind: codex, argv: [/none/codex]}\n"
	r.Start()
	for _, words := range []string{"/none/codex", "npm install --global @openai/codex@", `"check":"backend gone"`, "sandbox.mode is none: agents can read and write"} {
		if !strings.Contains(r.Log.String(), words) {
			t.Errorf("the log has no %q", words)
		}
	}
	r.Await("the look at GitHub", func() bool { return strings.Contains(r.Log.String(), "the App has the permission workflows") })
	if s := r.Over(testrig.ThreadName(r.Solve("A second line", "Please add a second line to a.txt."))); s.State != "done" {
		t.Errorf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
}

func TestDoctorLooksWhereGitHubSendsDeliveries(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	hook := http.NewServeMux()
	hook.HandleFunc("/api/github/hook", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	server := httptest.NewServer(hook)
	t.Cleanup(server.Close)
	address := server.URL
	c := newClinic(t, func(o *fakegithub.Options) { o.WebhookURL = address + "/api/github/hook" })
	c.finds(doctor.Warning, "installed", "the App is installed nowhere", "/apps/pawl/installations/new")
	c.finds(doctor.OK, "hook", "has sent none in three days", "")
	c.finds(doctor.OK, "clock", "agrees with GitHub's", "")
	c.finds(doctor.OK, "disk", "GiB are free below", "")
	c.Must(c.World.AddRepo(t.Context(), testrig.Repo, map[string]string{"a.txt": "one\n"}))
	c.Must(c.World.Install(testrig.Repo))
	c.Must(c.World.WaitDelivered(t.Context()))
	c.finds(doctor.OK, "installed", "installed on 1 account", "")
	c.finds(doctor.OK, "hook", "the last delivery to "+address+"/api/github/hook arrived", "")
	status = http.StatusUnauthorized
	c.World.Ping()
	c.Must(c.World.WaitDelivered(t.Context()))
	c.finds(doctor.Warning, "hook", "1 of the last 2 deliveries", "whether the secret there is webhook_secret")
	c.World.SetWebhookURL("")
	c.finds(doctor.Failed, "hook", `GitHub sends deliveries to ""`, "set github.receive to poll")
	c.replace("github:\n", "github:\n  receive: poll\n")
	c.finds(doctor.OK, "hook", "the server asks GitHub for its deliveries", "")
}
