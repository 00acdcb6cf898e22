package git

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const token = "ghs_0123456789abcdefghijABCDEFGHIJ.0123456789"

// work commits a file in a fresh checkout and returns the commit.
func work(t *testing.T, c *Cache, parent, name, content string) string {
	t.Helper()
	w, err := c.Checkout(t.Context(), CheckoutSpec{Commit: parent, Dir: filepath.Join(t.TempDir(), "attempt")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	write(t, w.Dir, map[string]string{name: content})
	s, _ := snapshot(t, w)
	sha, err := w.Commit(t.Context(), spec(s.Tree, parent))
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

func TestPushUsesTheTokenAndMovesOnlyForward(t *testing.T) {
	origin, first := repository(t, map[string]string{"a.txt": "a\n"})
	r := Remote{URL: server(t, filepath.Dir(origin), token).URL + "/origin/.git", Token: token}
	c := open(t)
	if _, err := c.Fetch(t.Context(), r, "main"); err != nil {
		t.Fatal(err)
	}
	one := work(t, c, first, "b.txt", "one\n") // its checkout has been deleted
	two := work(t, c, one, "b.txt", "two\n")
	other := work(t, c, first, "c.txt", "other\n")

	steps := []struct {
		name, sha, old string
		want           error
	}{
		{"a new branch", one, "", nil},
		{"the same again, as after a crash", one, "", nil},
		{"forward", two, one, nil},
		{"the same again with the older expectation", two, one, nil},
		{"an existing branch, taken for new", other, "", ErrRejected},
		{"backward", one, two, ErrRejected},
		{"sideways", other, two, ErrRejected},
		{"from an expectation that is out of date", work(t, c, two, "d", "d"), one, ErrRejected},
	}
	for _, s := range steps {
		if err := c.Push(t.Context(), r, s.sha, "pawl/issue-1", s.old); !errors.Is(err, s.want) {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	if got := sh(t, origin, "rev-parse", "pawl/issue-1"); got != two {
		t.Errorf("the branch is at %s, want %s", got, two)
	}
	if got := sh(t, origin, "log", "-1", "--format=%an <%ae> %at %cn %s", two); got !=
		"pawl[bot] <1+pawl[bot]@users.noreply.github.com> 1763715600 pawl[bot] work" {
		t.Error(got)
	}
}

func TestOnlyPushAndPushSidePush(t *testing.T) {
	if err := open(t).PushSide(t.Context(), Remote{URL: "/x"}, "", "main"); !errors.Is(err, ErrInvalid) {
		t.Errorf("PushSide, which forces, takes a branch: %v", err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, f := range strings.Split(string(source), "\nfunc ")[1:] {
			if pushes := regexp.MustCompile(`\.push\(|"push"`); pushes.MatchString(f) {
				got = append(got, regexp.MustCompile(`\w+\(`).FindString(strings.TrimPrefix(f, "(c *Cache) ")))
			}
		}
	}
	if diff := cmp.Diff([]string{"Push(", "PushSide(", "push("}, got); diff != "" {
		t.Errorf("docs/security.md promises that Pawl never force-pushes; only Push and PushSide may push (-want +got):\n%s", diff)
	}
}

func TestOtherUsersCommitIsNeverLost(t *testing.T) {
	origin, first := repository(t, map[string]string{"a.txt": "a\n"})
	r := Remote{URL: origin}
	c := open(t)
	if _, err := c.Fetch(t.Context(), r, "main"); err != nil {
		t.Fatal(err)
	}
	ours := work(t, c, first, "b.txt", "ours\n")
	sh(t, origin, "checkout", "-q", "-b", "topic")
	sh(t, origin, "commit", "-q", "--allow-empty", "-m", "a person's")
	theirs := sh(t, origin, "rev-parse", "topic")
	sh(t, origin, "checkout", "-q", "main")
	if err := c.Push(t.Context(), r, ours, "topic", first); !errors.Is(err, ErrRejected) {
		t.Fatalf("push over a user's commit: %v", err)
	}
	if got := sh(t, origin, "rev-parse", "topic"); got != theirs {
		t.Errorf("the branch is at %s", got)
	}
	if _, err := c.Fetch(t.Context(), r, "topic"); err != nil {
		t.Fatal(err)
	}
	tree, conflicts, err := c.Merge(t.Context(), ours, theirs)
	if err != nil || len(conflicts) != 0 {
		t.Fatal(conflicts, err)
	}
	merged, err := c.Commit(t.Context(), spec(tree, theirs, ours))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Push(t.Context(), r, merged, "topic", theirs); err != nil {
		t.Fatal(err)
	}
	sh(t, origin, "branch", "-D", "topic")
	if err := c.Push(t.Context(), r, merged, "topic", theirs); !errors.Is(err, ErrRejected) {
		t.Errorf("push to a branch that was deleted meanwhile: %v", err)
	}
}

func TestMergeNamesTheConflicts(t *testing.T) {
	origin, first := repository(t, map[string]string{"a.txt": "a\n"})
	c := open(t)
	if _, err := c.Fetch(t.Context(), Remote{URL: origin}, "main"); err != nil {
		t.Fatal(err)
	}
	tree, conflicts, err := c.Merge(t.Context(), work(t, c, first, "a.txt", "b\n"), work(t, c, first, "a.txt", "c\n"))
	if err != nil || tree == "" {
		t.Fatal(tree, err)
	}
	if diff := cmp.Diff([]string{"a.txt"}, conflicts); diff != "" {
		t.Error(diff)
	}
}

func TestSubjectsAreLimitedToOneSideAndFile(t *testing.T) {
	origin, first := repository(t, map[string]string{"a*.txt": "a\n", "ab.txt": "b\n"})
	c := open(t)
	if _, err := c.Fetch(t.Context(), Remote{URL: origin}, "main"); err != nil {
		t.Fatal(err)
	}
	other := work(t, c, first, "ab.txt", "c\n")
	to := work(t, c, other, "a*.txt", "c\n")
	got, err := c.Subjects(t.Context(), first, to, "a*.txt", 5)
	if err != nil || len(got) != 1 || !strings.HasPrefix(got[0], to[:7]+" ") {
		t.Errorf("%q, %v; want the commit %s alone", got, err, to)
	}
	if got, err := c.Subjects(t.Context(), to, to, "a*.txt", 5); err != nil || len(got) != 0 {
		t.Errorf("%q, %v; want none", got, err)
	}
}

func TestServerRuleIsErrProtected(t *testing.T) {
	origin, first := repository(t, map[string]string{"a.txt": "a\n"})
	hook := "#!/bin/sh\necho 'GH006: Protected branch update failed' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(origin, ".git/hooks/update"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	r := Remote{URL: server(t, filepath.Dir(origin), token).URL + "/origin/.git", Token: token}
	c := open(t)
	if _, err := c.Fetch(t.Context(), r, "main"); err != nil {
		t.Fatal(err)
	}
	err := c.Push(t.Context(), r, work(t, c, first, "b", "b"), "topic", "")
	if !errors.Is(err, ErrProtected) || !strings.Contains(err.Error(), "GH006") {
		t.Error(err)
	}
}

func TestRejectionsAreClassified(t *testing.T) {
	for why, want := range map[string]error{
		"[rejected] (fetch first)":                                            ErrRejected,
		"[rejected] (stale info)":                                             ErrRejected,
		"[remote rejected] (cannot lock ref 'x': is at)":                      ErrRejected,
		"[remote rejected] (protected branch hook declined)":                  ErrProtected,
		"[remote rejected] (push declined due to repository rule violations)": ErrProtected,
		"[remote rejected] (refusing to allow a GitHub App to create or update workflow `.github/workflows/x.yml` without `workflows` permission)": ErrProtected,
		"[remote rejected] (Internal Server Error)": ErrUnavailable,
		"[new branch]": nil,
	} {
		if got := rejection(why); got != want {
			t.Errorf("%s: %v, want %v", why, got, want)
		}
	}
}

func TestServerErrorsAreClassifiedAndHideTheToken(t *testing.T) {
	origin, _ := repository(t, map[string]string{"a.txt": "a\n"})
	good := server(t, filepath.Dir(origin), token)
	status := func(code int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		t.Cleanup(s.Close)
		return s.URL + "/a/b.git"
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		url, token string
		want       error
	}{
		"wrong token": {good.URL + "/origin/.git", token + "x", ErrAuth},
		"no token":    {good.URL + "/origin/.git", "", ErrAuth},
		"forbidden":   {status(403), token, ErrAuth},
		"not found":   {status(404), token, ErrNotFound},
		"broken":      {status(502), token, ErrUnavailable},
		"too many":    {status(429), token, ErrUnavailable},
		"down":        {gone.URL + "/a/b.git", token, ErrUnavailable},
		"no path":     {"/nowhere/at/all", "", ErrNotFound},
	} {
		_, err := open(t).Fetch(t.Context(), Remote{URL: c.url, Token: c.token}, "main")
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && c.token != "" && strings.Contains(err.Error(), c.token) {
			t.Errorf("%s: the token is in %v", name, err)
		}
	}
}

func TestTokenIsNotInArgumentsEnvironmentOrDisk(t *testing.T) {
	// The server holds the request open while the test searches every child process for the token.
	asked, release := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pw, _ := r.BasicAuth(); pw == token {
			close(asked)
		}
		<-release
		w.WriteHeader(http.StatusTeapot)
	}))
	defer s.Close()
	c := open(t)
	r := Remote{URL: s.URL + "/a/b.git", Token: token}
	done := make(chan error)
	go func() {
		done <- c.fetchForTest(t.Context(), r)
	}()
	<-asked
	seen := 0
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		for _, file := range []string{"environ", "cmdline"} {
			b, _ := os.ReadFile(filepath.Join(dir, file))
			if strings.Contains(string(b), "git-remote-http") || strings.Contains(string(b), "remote-http") {
				seen++
			}
			if strings.Contains(string(b), token) || strings.Contains(string(b), r.basic()) {
				t.Errorf("the token is in %s/%s", dir, file)
			}
		}
	}
	close(release)
	if err := <-done; err == nil {
		t.Error("a teapot is not a git server")
	}
	if seen == 0 {
		t.Error("no git process was searched")
	}
	err = filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if b, _ := os.ReadFile(path); strings.Contains(string(b), token) || strings.Contains(string(b), r.basic()) {
				t.Errorf("the token is in %s", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// fetchForTest runs git ls-remote, which contacts the remote as a fetch does.
func (c *Cache) fetchForTest(ctx context.Context, r Remote) error {
	_, err := c.run(ctx, command{args: []string{"ls-remote", "--", r.URL}, remote: &r})
	return err
}

func TestCancellingEndsGitAtOnce(t *testing.T) {
	asked := make(chan struct{}, 10)
	block := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-block }))
	defer s.Close()
	defer close(block)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	c := open(t)
	go func() {
		_, err := c.Fetch(ctx, Remote{URL: s.URL + "/a"}, "main")
		done <- err
	}()
	<-asked
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
