package main

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/secret"
	"github.com/pawlbot/pawl/internal/testrig"
)

// searcher is an agent that searches for secrets. It writes everything it finds to a file of the checkout and to its
// output. It replaces its own token, because Pawl does not commit work that contains the token.
const searcher = `#!/bin/sh
exec 2>/dev/null
cat > prompt.txt
{
	echo "== environment"; env; set; export -p; cat /proc/self/environ /proc/*/environ /proc/*/task/*/environ | tr '\0' '\n'
	echo "== arguments"; cat /proc/*/cmdline | tr '\0' '\n'
	echo "== open files"; for p in /proc/[0-9]*; do ls -l $p/fd $p/cwd $p/root $p/exe; for f in $p/fd/*; do [ -f "$f" ] && head -c 100000 "$f"; done; cat $p/maps $p/mountinfo $p/status; done
	echo "== files"; find "$HOME" . /tmp /run /var/tmp /dev/shm /etc /root /home /srv /opt /mnt -xdev -type f ! -name found.txt ! -path '*/node_modules/*' -size -2000k -exec head -c 100000 {} +
	echo "== git"; git log -p --all; git config --list --show-origin; git remote -v; git stash list; cat .git .git/config .git/credentials "$HOME/.netrc" "$HOME/.git-credentials"
	echo "== above"; d=$PWD; while [ "$d" != / ]; do d=$(dirname "$d"); ls -la "$d"; cat "$d"/*.yml "$d"/*.pem "$d"/*.db "$d"/.env; done
	echo "== keys"; cat /proc/keys /proc/key-users
} | LC_ALL=C sed -E 's/pawl-[A-Za-z0-9_-]{43}/its own token/g' > found.txt
cat found.txt
`

// planted holds a server's secrets by their descriptions. env sets the secrets that are not in the configuration.
type planted struct {
	secrets map[string]string
	env     []string
}

func plant(keyPEM []byte) planted {
	p := planted{secrets: map[string]string{"provider key": testrig.ProviderKey, "webhook secret": testrig.Secret}}
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PAWL_WEBHOOK_SECRET", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "DATABASE_URL"} {
		p.secrets[name] = "planted-" + strings.ToLower(rand.Text())
		p.env = append(p.env, name+"="+p.secrets[name])
	}
	// One line from the middle identifies the App's key.
	if lines := strings.Split(string(keyPEM), "\n"); len(lines) > 6 {
		p.secrets["private key of the App"] = lines[4]
	}
	return p
}

// check reports the secrets in a text, in every encoding that internal/secret knows.
func (p planted) check(t *testing.T, what, text string) {
	t.Helper()
	for name := range p.secrets {
		value := secret.New([]string{name}, func(string) (string, bool) { return p.secrets[name], true })
		// Ignore text that only looks like a key.
		if leak, ok := value.Find("", text); ok && leak.Kind == "a value that Pawl gave" {
			t.Errorf("%s contains the %s", what, name)
		}
	}
}

// below checks every file below a folder and returns their number.
func (p planted) below(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		n++
		text, err := os.ReadFile(path)
		p.check(t, path, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// boxed skips a test if no sandbox works, because the agent would search the whole machine.
func boxed(t *testing.T) {
	t.Helper()
	needs.Program(t, "bwrap")
	if _, err := sandbox.New(t.Context(), sandbox.Auto); err != nil {
		t.Skipf("no sandbox works here: %v", err)
	}
}

// TestNoAgentFindsASecret runs the real CLIs, and a script that searches harder, with planted secrets. They
// search their environment, files and processes, and must find none of these secrets.
func TestNoAgentFindsASecret(t *testing.T) {
	t.Parallel()
	modules(t)
	boxed(t)
	for _, cli := range append(realCLIs(), realCLI{kind: "command", protocol: "openai", model: "mock-model"}) {
		t.Run(cli.kind, func(t *testing.T) {
			t.Parallel()
			s := newCLIRig(t, cli, "leak")
			var key strings.Builder
			key.WriteString("-----BEGIN RSA PRIVATE KEY-----\n")
			for range 26 {
				key.WriteString(rand.Text() + rand.Text() + "\n")
			}
			key.WriteString("-----END RSA PRIVATE KEY-----\n")
			s.write("app.pem", key.String())
			p := plant([]byte(key.String()))
			s.env = p.env
			left := "leak.txt"
			if cli.kind == "command" {
				s.write("search.sh", searcher)
				if err := os.Chmod(filepath.Join(s.dir, "search.sh"), 0o700); err != nil {
					t.Fatal(err)
				}
				s.backend, left = fmt.Sprintf("argv: [%q]", filepath.Join(s.dir, "search.sh")), "found.txt"
			}
			r := s.run()
			work := s.git("show", r.Branch+":"+left)
			if !strings.Contains(work, "HOME=/pawl/home") || !strings.Contains(work, "TERM=dumb") {
				t.Errorf("the agent searched too little: %.2000s", work)
			}
			p.check(t, "the commit", s.git("log", "-p", "--format=full", r.Branch))
			if n := p.below(t, r.Transcripts); n < 3 {
				t.Errorf("%d files in %s, want at least 3", n, r.Transcripts)
			}
			for _, q := range s.requests() {
				p.check(t, "a request to the provider", string(q.Body))
			}
		})
	}
}

// TestNoAgentFindsAGitHubToken runs the searcher on a server that has the App's private key and installation tokens.
func TestNoAgentFindsAGitHubToken(t *testing.T) {
	boxed(t)
	t.Parallel()
	r := newRig(t, nil)
	script := filepath.Join(r.Dir, "search.sh")
	r.Must(os.WriteFile(script, []byte(searcher), 0o700))
	r.Config = fmt.Sprintf("sandbox: {mode: auto}\nproviders:\n  - {name: fake, protocol: openai, base_url: \"http://127.0.0.1:9/v1\", key: %q}\n"+
		"backends:\n  - {name: mine, kind: command, argv: [%q], provider: fake}\n", testrig.ProviderKey, script)
	p := plant(r.World.PrivateKeyPEM())
	tokens, _ := r.startBehindProxy(p.env)
	n := r.Solve("A greeting", "Please add a greeting.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	for i, token := range tokens() {
		p.secrets[fmt.Sprintf("credential %d", i)] = token
	}
	work, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "found.txt")
	r.Must(err)
	if !strings.Contains(work, "PAWL_THREAD="+testrig.ThreadName(n)) || !slices.ContainsFunc(tokens(), func(s string) bool { return strings.HasPrefix(s, "ghs_") }) {
		t.Errorf("the agent, with %d secrets to find, searched too little: %.2000s", len(p.secrets), work)
	}
	p.check(t, "the commit", work)
	p.check(t, "the log of the server", r.Log.String())
	p.below(t, filepath.Join(r.Dir, "data"))
	for _, c := range r.World.Comments(testrig.Repo, n) {
		p.check(t, "a comment", c.Body)
	}
}

// startBehindProxy starts the server with additional environment variables and a proxy in front of the fake GitHub.
// tokens returns the credentials in all requests so far; ofGit returns only the credentials in git's requests.
func (r *rig) startBehindProxy(env []string) (tokens, ofGit func() []string) {
	r.T.Helper()
	target, err := url.Parse(r.World.WebURL())
	r.Must(err)
	var mu sync.Mutex
	seen, basic := map[string]bool{}, map[string]bool{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, token, _ := strings.Cut(q.Header.Get("Authorization"), " ")
		_, password, git := q.BasicAuth()
		if git {
			token = password
		}
		mu.Lock()
		seen[token], basic[token] = len(token) > 20, basic[token] || git
		mu.Unlock()
		proxy.ServeHTTP(w, q)
	}))
	r.T.Cleanup(front.Close)
	path := r.File()
	text, err := os.ReadFile(path)
	r.Must(err)
	r.Must(os.WriteFile(path, []byte(strings.ReplaceAll(string(text), r.World.WebURL(), front.URL)), 0o600))
	cmd := exec.Command(testrig.Program, "serve", "--config", path)
	cmd.Env = append(os.Environ(), env...)
	r.Server = r.Launch(cmd, r.Log)
	r.Addr, r.Pages = r.Server.Addr, r.Server.Pages
	r.World.SetWebhookURL(r.URL("/api/github/hook"))
	of := func(kind map[string]bool) func() []string {
		return func() (all []string) {
			mu.Lock()
			defer mu.Unlock()
			for token, is := range kind {
				if is {
					all = append(all, token)
				}
			}
			return all
		}
	}
	return of(seen), of(basic)
}
