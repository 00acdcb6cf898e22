package git

import (
	"encoding/base64"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/render"
)

// sh runs git in dir as a user would, to build test data.
func sh(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/dev/null", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// write creates files below dir. A name that ends in a slash creates a directory.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// repository returns a new repository with one commit of files on main.
func repository(t testing.TB, files map[string]string) (dir, commit string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "origin")
	sh(t, "/", "init", "-q", "-b", "main", dir)
	write(t, dir, files)
	sh(t, dir, "add", "-A", "-f")
	sh(t, dir, "commit", "-q", "-m", "first")
	return dir, sh(t, dir, "rev-parse", "HEAD")
}

// open returns a cache in a new directory.
func open(t testing.TB) *Cache {
	t.Helper()
	c, err := Open(t.Context(), filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkout returns a workspace of a repository with these files.
func checkout(t testing.TB, files map[string]string) *Workspace {
	t.Helper()
	dir, commit := repository(t, files)
	c := open(t)
	if _, err := c.Fetch(t.Context(), Remote{URL: dir}, "main"); err != nil {
		t.Fatal(err)
	}
	w, err := c.Checkout(t.Context(), CheckoutSpec{Commit: commit, Dir: filepath.Join(t.TempDir(), "attempt")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// snapshot takes a snapshot that must succeed. It returns the snapshot and its changes since the start.
func snapshot(t testing.TB, w *Workspace) (Snapshot, []string) {
	t.Helper()
	s, err := w.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changes, err := w.changes(t.Context(), w.StartTree, s.Tree)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		what, none := "modified", strings.Repeat("0", 40)
		switch none {
		case c.oldID:
			what = "added"
		case c.newID:
			what = "deleted"
		}
		lines = append(lines, what+" "+c.path)
	}
	return s, lines
}

// spec returns the spec of Pawl's commit of tree.
func spec(tree string, parents ...string) CommitSpec {
	return CommitSpec{Tree: tree, Parents: parents, Subject: render.Subject("work", 72), Name: "pawl[bot]", Email: "1+pawl[bot]@users.noreply.github.com",
		When: time.Date(2025, 11, 21, 9, 0, 0, 0, time.UTC)}
}

// server serves the repositories below dir over smart HTTP to clients with the token.
func server(t testing.TB, dir, token string) *httptest.Server {
	t.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(sh(t, "/", "--exec-path"), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=/dev/null", "LC_ALL=C",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true"},
		InheritEnv: []string{"PATH"},
		Stderr:     os.Stderr,
	}
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+token))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token != "" && r.Header.Get("Authorization") != want {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}
