package main

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/doctor"
	"github.com/pawlbot/pawl/internal/testrig"
)

// tools is a folder that holds only these programs of PATH.
func (c *clinic) tools(names ...string) string {
	c.T.Helper()
	dir := c.T.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		c.Must(err)
		c.Must(os.Symlink(path, filepath.Join(dir, name)))
	}
	return dir
}

func TestDoctorTellsWhatTheMachineLacks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                      string
		edit                      func(*clinic)
		state, check, words, hint string
	}{
		{"no sandbox", func(c *clinic) {
			c.replace("mode: none", "mode: auto")
			c.env = []string{"PATH=" + c.tools("git", "sh", "cat")}
		}, doctor.Failed, "sandbox", "bwrap", "install bubblewrap"},
		{"no sandbox, on purpose", func(*clinic) {}, doctor.Warning, "sandbox", "sandbox.mode is none", "install bubblewrap"},
		{"no git", func(c *clinic) { c.env = []string{"PATH=" + c.tools("sh", "cat")} }, doctor.Failed, "git", "git", "install git"},
		{"an old git", func(c *clinic) {
			dir := c.tools("sh", "cat")
			c.Must(os.Rename(c.cli("git", "git version 2.37.7", 0), filepath.Join(dir, "git")))
			c.env = []string{"PATH=" + dir}
		}, doctor.Failed, "git", "git version 2.37.7 is too old", "2.38 or newer"},
		{"a git of its own kind", func(c *clinic) {
			dir := c.tools("sh", "cat")
			c.Must(os.Rename(c.cli("git", "jujutsu", 0), filepath.Join(dir, "git")))
			c.env = []string{"PATH=" + dir}
		}, doctor.Warning, "git", `it printed "jujutsu"`, "2.38 or newer"},
		{"no path of the sandbox", func(c *clinic) { c.replace("{mode: none}", "{mode: none, read_only: [/none/agents]}") }, doctor.Failed, "sandbox", "sandbox.read_only: stat /none/agents", "correct the path or remove it"},
		{"no database yet", func(c *clinic) { c.Must(os.Remove(filepath.Join(c.Dir, "pawl.db"))) }, doctor.OK, "database", "not created yet", ""},
		{"a file that is no database", func(c *clinic) {
			c.Must(os.WriteFile(filepath.Join(c.Dir, "pawl.db"), []byte("this is a letter to my aunt, and it is long enough"), 0o600))
		}, doctor.Failed, "database", "pawl.db", "correct database"},
		{"a folder in place of the database", func(c *clinic) {
			c.Must(os.Remove(filepath.Join(c.Dir, "pawl.db")))
			c.Must(os.Mkdir(filepath.Join(c.Dir, "pawl.db"), 0o700))
		}, doctor.Failed, "database", "pawl.db", "correct database"},
		{"the database of another program", func(c *clinic) {
			path := filepath.Join(c.Dir, "pawl.db")
			c.Must(os.Remove(path))
			db, err := sql.Open("sqlite", path)
			c.Must(err)
			_, err = db.Exec("CREATE TABLE letters (text)")
			c.Must(err)
			c.Must(db.Close())
		}, doctor.Failed, "database", "pawl.db", "correct database"},
		{"a database that another program keeps", func(c *clinic) {
			db, err := sql.Open("sqlite", filepath.Join(c.Dir, "pawl.db"))
			c.Must(err)
			db.SetMaxOpenConns(1)
			c.T.Cleanup(func() { db.Close() })
			for _, statement := range []string{"PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "CREATE TABLE letters (text)"} {
				_, err = db.Exec(statement)
				c.Must(err)
			}
		}, doctor.Failed, "database", "locked", "correct database"},
		{"no PostgreSQL there", func(c *clinic) {
			c.replace("sqlite:pawl.db", "postgres://pawl:secret-of-the-database@127.0.0.1:1/pawl")
		}, doctor.Failed, "database", "connection refused", "correct database"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clinic := newClinic(t, nil)
			c.edit(clinic)
			clinic.finds(c.state, c.check, c.words, c.hint)
		})
	}
}

func TestDoctorTellsThatAFolderCannotBeWrittenTo(t *testing.T) {
	t.Parallel()
	c := newClinic(t, nil)
	data := filepath.Join(c.Dir, "data")
	if os.Geteuid() == 0 { // who can write anywhere
		const nobody = 65534
		c.as = &syscall.Credential{Uid: nobody, Gid: nobody}
		c.exe = filepath.Join(c.Dir, "pawl")
		c.Must(os.Chmod(filepath.Dir(c.Dir), 0o755))
		copyProgram(t, c.exe)
		for _, name := range []string{".", "app.pem", "pawl.db", "mine"} {
			c.Must(os.Chown(filepath.Join(c.Dir, name), nobody, nobody))
		}
	} else {
		c.Must(os.Chmod(data, 0o500))
	}
	c.finds(doctor.Failed, "data_dir", "data cannot be written to: permission denied", "let the user that runs Pawl own it")
}

func TestDoctorTellsHowEachAgentStands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, prints       string
		code               int
		state, words, hint string
	}{
		{"older", "codex-cli 0.168.9", 0, doctor.Failed, "version 0.168.9 is older than 0.169.0", "npm install --global @openai/codex@0.169.0"},
		{"newer", "codex-cli 0.170.0", 0, doctor.Warning, "version 0.170.0 is newer than 0.169.0", "watch its first attempts"},
		{"unknown", "the best codex", 0, doctor.Warning, `it printed "the best codex"`, "watch its first attempts"},
		{"failing", "cannot start", 3, doctor.Failed, "exit status 3", "npm install --global @openai/codex@0.169.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clinic := newClinic(t, nil)
			clinic.cli("mine", c.prints, c.code)
			clinic.finds(c.state, "backend mine", c.words, c.hint)
		})
	}
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		c := newClinic(t, nil)
		c.replace(filepath.Join(c.Dir, "mine"), "/none/codex")
		c.finds(doctor.Failed, "backend mine", "/none/codex", "npm install --global @openai/codex@0.169.0, or name the program in argv")
	})
	t.Run("a command that is missing", func(t *testing.T) {
		t.Parallel()
		c := newClinic(t, nil)
		c.replace("kind: codex", "kind: command")
		c.replace(filepath.Join(c.Dir, "mine"), "no-such-agent")
		c.finds(doctor.Failed, "backend mine", "no-such-agent", "full path")
	})
}

func TestDoctorTellsWhatAnAgentCouldPassOn(t *testing.T) {
	t.Parallel()
	c := newClinic(t, nil)
	c.Must(os.WriteFile(filepath.Join(c.Dir, "auth.json"), []byte("{}"), 0o600))
	c.replace("kind: codex", "kind: codex, credential_file: auth.json")
	c.finds(doctor.Warning, "backend mine", "could pass it on", "use a provider instead")
	c.Must(os.Remove(filepath.Join(c.Dir, "auth.json")))
	c.finds(doctor.Failed, "backend mine", "credential_file: stat", "sign the CLI in as this user")
	c.replace(", credential_file: auth.json", "")
	c.finds(doctor.OK, "backend mine", "gets no login and no key", "")
	c.replace("kind: codex", "kind: codex, env: [MY_KEY]")
	c.env = append(c.env, "MY_KEY=a-secret")
	c.finds(doctor.Warning, "backend mine", "the agent gets MY_KEY", "use a provider instead")
}

func TestDoctorAsksTheProvidersForTheirModels(t *testing.T) {
	t.Parallel()
	type answer struct {
		status int
		body   string
	}
	var next atomic.Pointer[answer]
	asked := make(chan *http.Request, 100)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		a := next.Load()
		w.Header().Set("Location", "https://elsewhere.example.com/")
		w.WriteHeader(a.status)
		io.WriteString(w, a.body)
	}))
	t.Cleanup(api.Close)
	c := newClinic(t, nil)
	c.replace("kind: codex", "kind: codex, model: gpt-5, provider: main")
	c.text += "providers:\n  - {name: main, protocol: openai, base_url: " + api.URL + "/v1, key: sk-the-key}\npolicy: {budget: {usd_per_attempt: 0}}\n"
	answers := func(status int, body string) { next.Store(&answer{status, body}) }
	answers(http.StatusOK, `{"data": [{"id": "gpt-5-2025-08-07"}]}`)
	c.finds(doctor.OK, "provider main", api.URL+"/v1 answers and takes the key", "")
	if r := <-asked; r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer sk-the-key" {
		t.Errorf("asked for %s with %q", r.URL, r.Header)
	}
	answers(http.StatusOK, `{"data": [{"id": "gpt-4.1"}, {"id": "gpt-5-mini"}]}`)
	c.finds(doctor.Warning, "backend mine", "provider main does not list the model gpt-5", "gpt-4.1, gpt-5-mini")
	answers(http.StatusUnauthorized, `{}`)
	c.finds(doctor.Failed, "provider main", "refuses the key: it answers 401", "make a new key")
	answers(http.StatusNotFound, `{}`)
	c.finds(doctor.Warning, "provider main", "lists no models, so whether it takes the key is not known", "leave it so")
	answers(http.StatusFound, `{}`)
	c.finds(doctor.Failed, "provider main", "302 Found", "base_url")
	answers(http.StatusOK, `{"data": []}`)
	c.finds(doctor.Warning, "budget", "no attempt has a budget", "tokens_per_attempt")
	c.replace("usd_per_attempt: 0", "usd_per_attempt: 5")
	c.finds(doctor.Failed, "budget", "provider main has no prices", "add prices")
	c.replace("key: sk-the-key", "key: sk-the-key, prices: [{model: gpt-5, input: 1, output: 2}]")
	c.finds(doctor.OK, "backend mine", "the key of provider main stays outside", "")
	api.Close()
	c.finds(doctor.Failed, "provider main", "connection refused", "base_url")
}

// A CLI of npm below a prefix of a user's own, whose script asks for node there, starts in the sandbox as in an
// attempt; one that needs what no agent may read does not.
func TestDoctorStartsTheCLIAsAnAttemptDoes(t *testing.T) {
	t.Parallel()
	boxed(t)
	c := newClinic(t, nil)
	prefix := filepath.Join(c.Dir, "nvm")
	pkg := filepath.Join(prefix, "lib/node_modules/codex")
	c.Must(os.MkdirAll(pkg, 0o755))
	c.Must(os.MkdirAll(filepath.Join(prefix, "bin"), 0o755))
	c.Must(os.WriteFile(filepath.Join(pkg, "version"), []byte("codex-cli 0.169.0\n"), 0o644))
	c.Must(os.WriteFile(filepath.Join(pkg, "codex.js"), []byte("#!/usr/bin/env node\n"), 0o755))
	c.Must(os.WriteFile(filepath.Join(prefix, "bin/node"), []byte("#!/bin/sh\ncat \"$(dirname \"$(readlink -f \"$1\")\")/version\"\n"), 0o755))
	c.Must(os.Symlink("../lib/node_modules/codex/codex.js", filepath.Join(prefix, "bin/codex")))
	c.env = []string{"PATH=" + filepath.Join(prefix, "bin") + ":" + os.Getenv("PATH"), "HOME=" + c.Dir, "TOOLS=none"}
	c.replace("mode: none", "mode: auto")
	c.replace(fmt.Sprintf("kind: codex, argv: [%q]", filepath.Join(c.Dir, "mine")), "kind: codex, env: [TOOLS]")
	c.finds(doctor.OK, "backend mine", "version 0.169.0, as an attempt starts it", "")
	elsewhere := filepath.Join(c.Dir, "elsewhere")
	c.Must(os.Mkdir(elsewhere, 0o755))
	c.Must(os.Rename(filepath.Join(pkg, "version"), filepath.Join(elsewhere, "version")))
	c.Must(os.Symlink(filepath.Join(elsewhere, "version"), filepath.Join(pkg, "version")))
	c.finds(doctor.Failed, "backend mine", "--version, as an attempt starts it: exit status 1", "sandbox.read_only")
	c.replace("mode: auto}", fmt.Sprintf("mode: auto, read_only: [%q]}", elsewhere))
	c.finds(doctor.OK, "backend mine", "version 0.169.0, as an attempt starts it", "")
}

func TestDoctorTellsWhichEffortAndModelACLICannotTake(t *testing.T) {
	t.Parallel()
	c := newClinic(t, nil)
	c.replace("kind: codex", "kind: codex, effort: extreme")
	c.finds(doctor.Failed, "backend mine", `"extreme" is not an effort of codex`, "correct the backend")
	c = newClinic(t, nil)
	c.cli("mine", "1.18.33", 0)
	c.replace("kind: codex", "kind: opencode, model: gpt-5")
	c.finds(doctor.Failed, "backend mine", "opencode needs its provider before the model", "correct the backend")
}

// What lies below data_dir is a file system of one MiB.
func TestDoctorWarnsOfAFullDisk(t *testing.T) {
	t.Parallel()
	boxed(t)
	c := newClinic(t, nil)
	small := filepath.Join(c.Dir, "data")
	c.exe = filepath.Join(c.Dir, "small")
	c.Must(os.WriteFile(c.exe, []byte("#!/bin/sh\nexec bwrap --dev-bind / / --size 1048576 --tmpfs "+small+" "+testrig.Program+" \"$@\"\n"), 0o755))
	c.finds(doctor.Warning, "disk", "0.0 GiB are free below "+small, "make room")
}
