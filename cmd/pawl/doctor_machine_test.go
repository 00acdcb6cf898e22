package main

import (
	"database/sql"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// tools is a folder that holds only these programs of PATH.
func (c *clinic) tools(names ...string) string {
	c.t.Helper()
	dir := c.t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		c.must(err)
		c.must(os.Symlink(path, filepath.Join(dir, name)))
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
		}, checkFail, "sandbox", "bwrap", "install bubblewrap"},
		{"no sandbox, on purpose", func(*clinic) {}, checkWarn, "sandbox", "sandbox.mode is none", "install bubblewrap"},
		{"no git", func(c *clinic) { c.env = []string{"PATH=" + c.tools("sh", "cat")} }, checkFail, "git", "git", "install git"},
		{"an old git", func(c *clinic) {
			dir := c.tools("sh", "cat")
			c.must(os.Rename(c.cli("git", "git version 2.37.7", 0), filepath.Join(dir, "git")))
			c.env = []string{"PATH=" + dir}
		}, checkFail, "git", "git version 2.37.7 is too old", "2.38 or newer"},
		{"a git of its own kind", func(c *clinic) {
			dir := c.tools("sh", "cat")
			c.must(os.Rename(c.cli("git", "jujutsu", 0), filepath.Join(dir, "git")))
			c.env = []string{"PATH=" + dir}
		}, checkWarn, "git", `it printed "jujutsu"`, "2.38 or newer"},
		{"no path of the sandbox", func(c *clinic) { c.replace("{mode: none}", "{mode: none, read_only: [/none/agents]}") }, checkFail, "sandbox", "sandbox.read_only: stat /none/agents", "correct the path or remove it"},
		{"no database yet", func(c *clinic) { c.must(os.Remove(filepath.Join(c.dir, "pawl.db"))) }, checkOK, "database", "not created yet", ""},
		{"a file that is no database", func(c *clinic) {
			c.must(os.WriteFile(filepath.Join(c.dir, "pawl.db"), []byte("this is a letter to my aunt, and it is long enough"), 0o600))
		}, checkFail, "database", "pawl.db", "correct database"},
		{"a folder in place of the database", func(c *clinic) {
			c.must(os.Remove(filepath.Join(c.dir, "pawl.db")))
			c.must(os.Mkdir(filepath.Join(c.dir, "pawl.db"), 0o700))
		}, checkFail, "database", "pawl.db", "correct database"},
		{"the database of another program", func(c *clinic) {
			path := filepath.Join(c.dir, "pawl.db")
			c.must(os.Remove(path))
			db, err := sql.Open("sqlite", path)
			c.must(err)
			_, err = db.Exec("CREATE TABLE letters (text)")
			c.must(err)
			c.must(db.Close())
		}, checkFail, "database", "pawl.db", "correct database"},
		{"a database that another program keeps", func(c *clinic) {
			db, err := sql.Open("sqlite", filepath.Join(c.dir, "pawl.db"))
			c.must(err)
			db.SetMaxOpenConns(1)
			c.t.Cleanup(func() { db.Close() })
			for _, statement := range []string{"PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "CREATE TABLE letters (text)"} {
				_, err = db.Exec(statement)
				c.must(err)
			}
		}, checkFail, "database", "locked", "correct database"},
		{"no PostgreSQL there", func(c *clinic) {
			c.replace("sqlite:pawl.db", "postgres://pawl:secret-of-the-database@127.0.0.1:1/pawl")
		}, checkFail, "database", "connection refused", "correct database"},
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
	data := filepath.Join(c.dir, "data")
	if os.Geteuid() == 0 { // who can write anywhere
		const nobody = 65534
		c.as = &syscall.Credential{Uid: nobody, Gid: nobody}
		c.exe = filepath.Join(c.dir, "pawl")
		c.must(os.Chmod(filepath.Dir(c.dir), 0o755))
		// By another process: a child that this one is just starting would hold the copy
		// open for writing, and the kernel runs no such file.
		out, err := exec.Command("cp", pawlBinary, c.exe).CombinedOutput()
		if err != nil {
			t.Fatalf("cp: %v\n%s", err, out)
		}
		for _, name := range []string{".", "app.pem", "pawl.db", "mine"} {
			c.must(os.Chown(filepath.Join(c.dir, name), nobody, nobody))
		}
	} else {
		c.must(os.Chmod(data, 0o500))
	}
	c.finds(checkFail, "data_dir", "data cannot be written to: permission denied", "let the user that runs Pawl own it")
}

func TestDoctorTellsHowEachAgentStands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, prints       string
		code               int
		state, words, hint string
	}{
		{"older", "codex-cli 0.168.9", 0, checkFail, "version 0.168.9 is older than 0.169.0", "npm install --global @openai/codex@0.169.0"},
		{"newer", "codex-cli 0.170.0", 0, checkWarn, "version 0.170.0 is newer than 0.169.0", "watch its first attempts"},
		{"unknown", "the best codex", 0, checkWarn, `it printed "the best codex"`, "watch its first attempts"},
		{"failing", "cannot start", 3, checkFail, "exit status 3", "npm install --global @openai/codex@0.169.0"},
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
		c.replace(filepath.Join(c.dir, "mine"), "/none/codex")
		c.finds(checkFail, "backend mine", "/none/codex", "npm install --global @openai/codex@0.169.0, or name the program in argv")
	})
	t.Run("a command that is missing", func(t *testing.T) {
		t.Parallel()
		c := newClinic(t, nil)
		c.replace("kind: codex", "kind: command")
		c.replace(filepath.Join(c.dir, "mine"), "no-such-agent")
		c.finds(checkFail, "backend mine", "no-such-agent", "full path")
	})
}

func TestDoctorTellsWhatAnAgentCouldPassOn(t *testing.T) {
	t.Parallel()
	c := newClinic(t, nil)
	c.must(os.WriteFile(filepath.Join(c.dir, "auth.json"), []byte("{}"), 0o600))
	c.replace("kind: codex", "kind: codex, credential_file: auth.json")
	c.finds(checkWarn, "backend mine", "could pass it on", "use a provider instead")
	c.must(os.Remove(filepath.Join(c.dir, "auth.json")))
	c.finds(checkFail, "backend mine", "credential_file: stat", "sign the CLI in as this user")
	c.replace("credential_file: auth.json", "env: [MY_KEY]")
	c.env = append(c.env, "MY_KEY=a-secret")
	c.finds(checkWarn, "backend mine", "the agent gets MY_KEY", "use a provider instead")
}

func TestDoctorAsksTheProvidersWithoutTheirKeys(t *testing.T) {
	t.Parallel()
	asked := make(chan *http.Request, 10)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	t.Cleanup(api.Close)
	c := newClinic(t, nil)
	c.replace("kind: codex", "kind: codex, provider: main")
	c.text += "providers:\n  - {name: main, protocol: openai, base_url: " + api.URL + ", key: sk-the-key}\npolicy: {budget: {usd_per_attempt: 0}}\n"
	c.finds(checkOK, "provider main", api.URL+" answers", "")
	r := <-asked
	for name, values := range r.Header {
		for _, value := range values {
			if value == "sk-the-key" || value == "Bearer sk-the-key" {
				t.Errorf("the key was sent as %s", name)
			}
		}
	}
	c.finds(checkWarn, "budget", "no attempt has a budget", "tokens_per_attempt")
	c.replace("usd_per_attempt: 0", "usd_per_attempt: 5")
	c.finds(checkFail, "budget", "provider main has no prices", "add prices")
	c.replace("key: sk-the-key", "key: sk-the-key, prices: [{model: gpt-5, input: 1, output: 2}]")
	c.finds(checkOK, "backend mine", "the key of provider main stays outside", "")
	api.Close()
	c.finds(checkFail, "provider main", "connection refused", "base_url")
}
