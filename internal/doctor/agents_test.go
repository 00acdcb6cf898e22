package doctor

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
)

func TestBackendFindings(t *testing.T) {
	const install = "npm install --global @openai/codex@0.169.0"
	find(t, []ill{
		{"older", func(c *clinic) { c.prints("mine", "codex-cli 0.168.9", 0) },
			Failed, "backend mine", "version 0.168.9 is older than 0.169.0", install},
		{"newer", func(c *clinic) { c.prints("mine", "codex-cli 0.170.0", 0) },
			Warning, "backend mine", "version 0.170.0 is newer than 0.169.0", "watch its first attempts"},
		{"of an unknown version", func(c *clinic) { c.prints("mine", "the best codex", 0) },
			Warning, "backend mine", `it printed "the best codex"`, "watch its first attempts"},
		{"failing", func(c *clinic) { c.prints("mine", "cannot start", 3) },
			Failed, "backend mine", "exit status 3", install},
		{"missing", func(c *clinic) { c.replace(c.path("mine"), "/none/codex") },
			Failed, "backend mine", "/none/codex", install + ", or name the program in argv"},
		{"a command that is missing", func(c *clinic) {
			c.replace("kind: codex", "kind: command")
			c.replace(c.path("mine"), "no-such-agent")
		}, Failed, "backend mine", "no-such-agent", "full path"},
		{"an effort that it does not know", func(c *clinic) { c.replace("kind: codex", "kind: codex, effort: extreme") },
			Failed, "backend mine", `"extreme" is not an effort of codex`, "correct the backend"},
		{"a model without its provider", func(c *clinic) {
			c.prints("mine", "1.18.33", 0)
			c.replace("kind: codex", "kind: opencode, model: gpt-5")
		}, Failed, "backend mine", "opencode needs its provider before the model", "correct the backend"},
		{"a login that it could pass on", func(c *clinic) {
			c.write("auth.json", "{}")
			c.replace("kind: codex", "kind: codex, credential_file: auth.json")
		}, Warning, "backend mine", "could leak it", "use a provider instead"},
		{"a login that is missing", func(c *clinic) { c.replace("kind: codex", "kind: codex, credential_file: auth.json") },
			Failed, "backend mine", "credential_file: stat", "sign the CLI in as this user"},
		{"no login", func(*clinic) {}, OK, "backend mine", "gets no login and no key", ""},
		{"a variable that it could pass on", func(c *clinic) {
			c.Setenv("MY_KEY", "a-secret")
			c.replace("kind: codex", "kind: codex, env: [MY_KEY]")
		}, Warning, "backend mine", "the agent gets MY_KEY", "use a provider instead"},
	})
}

func TestProviderFindings(t *testing.T) {
	const list, prices = `{"data": [{"id": "gpt-5-2025-08-07"}]}`, "key: sk-the-key, prices: [{model: gpt-5, input: 1, output: 2}]"
	for _, row := range []struct {
		name   string
		status int // 0 if no server answers
		body   string
		edit   func(*clinic)
		want   [4]string // state, check, words and hint
	}{
		{"a list", 200, list, nil, [4]string{OK, "provider main", "/v1 answers and accepts the key", ""}},
		{"a list without the model", 200, `{"data": [{"id": "gpt-4.1"}, {"id": "gpt-5-mini"}]}`, nil,
			[4]string{Warning, "backend mine", "provider main does not list the model gpt-5", "gpt-4.1, gpt-5-mini"}},
		{"a refusal", 401, `{}`, nil, [4]string{Failed, "provider main", "refuses the key: it answers 401", "for the key of provider main in the configuration"}},
		{"a refused key from a variable", 401, `{}`, func(c *clinic) {
			c.Setenv("MODEL_KEY", "sk-the-key")
			c.replace("key: sk-the-key", `key: "${MODEL_KEY}"`)
		}, [4]string{Failed, "provider main", "refuses the key: it answers 401", "create a new key there for MODEL_KEY (the key of provider main)"}},
		{"no list", 404, `{}`, nil,
			[4]string{Warning, "provider main", "lists no models, so the key could not be checked", "nothing to do"}},
		{"a redirect", 302, `{}`, nil, [4]string{Failed, "provider main", "302 Found", "check the URL"}},
		{"nobody", 0, "", nil, [4]string{Failed, "provider main", "connection refused", "check the URL"}},
		{"no budget", 200, list, nil, [4]string{Warning, "budget", "no attempt has a budget", "tokens_per_attempt"}},
		{"a budget without prices", 200, list,
			func(c *clinic) { c.replace("usd_per_attempt: 0", "usd_per_attempt: 5") },
			[4]string{Failed, "budget", "provider main has no prices", "add prices"}},
		{"prices", 200, list, func(c *clinic) { c.replace("key: sk-the-key", prices) },
			[4]string{OK, "backend mine", "does not get the key of provider main", ""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer sk-the-key" {
					t.Errorf("asked for %s with %q", r.URL, r.Header)
				}
				w.Header().Set("Location", "https://elsewhere.example.com/")
				w.WriteHeader(row.status)
				io.WriteString(w, row.body)
			}))
			defer api.Close()
			if row.status == 0 {
				api.Close()
			}
			c := newClinic(t, nil)
			c.replace("kind: codex", "kind: codex, model: gpt-5, provider: main")
			c.text += "providers:\n  - {name: main, protocol: openai, base_url: " + api.URL + "/v1, key: sk-the-key}\n" +
				"policy: {budget: {usd_per_attempt: 0}}\n"
			if row.edit != nil {
				row.edit(c)
			}
			c.finds(row.want[0], row.want[1], row.want[2], row.want[3])
		})
	}
}

// A CLI starts in the sandbox if npm and node are installed in the user's own prefix. It fails
// if it needs a file that agents cannot read.
func TestCLIStartsAsInAnAttempt(t *testing.T) {
	needs.All(t, "bubblewrap")
	c := newClinic(t, nil)
	const pkg = "nvm/lib/node_modules/codex"
	c.script("nvm/bin/node", "cat \"$(dirname \"$(readlink -f \"$1\")\")/version\"\n")
	c.must(os.MkdirAll(c.path(pkg), 0o755))
	c.must(os.WriteFile(c.path(pkg+"/version"), []byte("codex-cli 0.169.0\n"), 0o644))
	c.must(os.WriteFile(c.path(pkg+"/codex.js"), []byte("#!/usr/bin/env node\n"), 0o755))
	c.must(os.Symlink("../lib/node_modules/codex/codex.js", c.path("nvm/bin/codex")))
	c.Setenv("PATH", c.path("nvm/bin")+":"+os.Getenv("PATH"))
	c.Setenv("HOME", c.dir)
	c.Setenv("TOOLS", "none")
	c.replace("mode: none", "mode: auto")
	c.replace(fmt.Sprintf("kind: codex, argv: [%q]", c.path("mine")), "kind: codex, env: [TOOLS]")
	const starts = "version 0.169.0; it starts in the sandbox of an attempt"
	c.finds(OK, "backend mine", starts, "")
	c.must(os.Mkdir(c.path("elsewhere"), 0o755))
	c.must(os.Rename(c.path(pkg+"/version"), c.path("elsewhere/version")))
	c.must(os.Symlink(c.path("elsewhere/version"), c.path(pkg+"/version")))
	c.finds(Failed, "backend mine", "--version, run in the sandbox of an attempt: exit status 1", "sandbox.read_only")
	c.replace("mode: auto}", fmt.Sprintf("mode: auto, read_only: [%q]}", c.path("elsewhere")))
	c.finds(OK, "backend mine", starts, "")
}
