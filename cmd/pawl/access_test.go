package main

import (
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// withLogin gives the App a client, and the pages a public address, at which nothing listens yet.
func (r *rig) withLogin() (file string) {
	r.T.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	r.Must(err)
	r.Must(free.Close())
	at := free.Addr().String()
	id, secret := r.World.OAuthClient()
	r.World.SetCallbacks("http://" + at + "/login/callback")
	path := r.File()
	text, err := os.ReadFile(path)
	r.Must(err)
	changed := strings.NewReplacer(`pages: "127.0.0.1:0"`, `pages: "`+at+`", public_url: "http://`+at+`", operators: [olga], metrics_token: "a token of metrics"`,
		"private_key_file: app.pem", "private_key_file: app.pem, client_id: "+id+", client_secret: "+secret).Replace(string(text))
	r.Must(os.WriteFile(path, []byte(changed), 0o600))
	return path
}

// person is somebody's browser, which is signed in at GitHub.
type person struct {
	*rig
	browser *http.Client
}

func (r *rig) browserOf(login string) person {
	r.T.Helper()
	jar, err := cookiejar.New(nil)
	r.Must(err)
	github, err := url.Parse(r.World.WebURL() + "/login/oauth/authorize")
	r.Must(err)
	if login != "" {
		jar.SetCookies(github, []*http.Cookie{{Name: fakegithub.SignedInCookie, Value: login, Path: "/"}})
	}
	return person{r, &http.Client{Jar: jar, Timeout: testrig.Patience}}
}

func (p person) get(address string) (int, string) {
	p.T.Helper()
	answer, err := p.browser.Get(address)
	p.Must(err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	p.Must(err)
	return answer.StatusCode, string(b)
}

func TestPeopleSignInWithGitHubAndSeeWhatTheyMayRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	const hidden = "acme/hidden"
	r.Must(r.World.AddRepo(t.Context(), hidden, map[string]string{"a.txt": "one\n"}))
	r.Must(r.World.Install(hidden))
	r.Must(r.World.SetRole(hidden, testrig.Writer, "write"))
	r.Must(r.World.AddUser("olga", 1003, nil))
	r.StartWith(r.withLogin())
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Over(testrig.ThreadName(n))
	secret, err := r.World.OpenIssue(hidden, testrig.Writer, "What nobody else shall know", "Add a line.")
	r.Must(err)
	_, err = r.World.Comment(hidden, secret, testrig.Writer, "/pawl solve")
	r.Must(err)
	r.Over(hidden + "#1")
	base := "http://" + r.Pages

	// The check run leads to a page which asks for a login.
	details := ""
	for _, c := range r.World.CheckRuns(testrig.Repo) {
		if c.Name == "pawl" {
			details = c.DetailsURL
		}
	}
	nobody := r.browserOf("")
	if status, body := nobody.get(details); !strings.HasPrefix(details, base+"/threads/") || status != http.StatusUnauthorized || strings.Contains(body, "second line") {
		t.Errorf("details_url %s: %d\n%s", details, status, body)
	}
	mallory := r.browserOf(testrig.Reader)
	if status, body := mallory.get(base + "/login/github?next=/threads/acme/widgets/1"); status != http.StatusOK || !strings.Contains(body, "signed in as mallory") || !strings.Contains(body, "url=/threads/acme/widgets/1") {
		t.Fatalf("the login: %d\n%s", status, body)
	}
	if status, body := mallory.get(details); status != http.StatusOK || !strings.Contains(body, "A second line") {
		t.Errorf("the page of a repository that she may read: %d\n%s", status, body)
	}
	if _, body := mallory.get(base + "/"); !strings.Contains(body, "acme/widgets#1") || strings.Contains(body, "acme/hidden") || strings.Contains(body, "nobody else") {
		t.Errorf("the list of somebody who may not read acme/hidden:\n%s", body)
	}
	here, there := "", ""
	for path, into := range map[string]*string{"/threads/acme/hidden/1": &here, "/threads/acme/nowhere/1": &there} {
		status, body := mallory.get(base + path)
		if *into = body; status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
	if here != there {
		t.Errorf("a hidden repository says %q, one that does not exist %q", here, there)
	}
	for login, want := range map[string]int{testrig.Writer: http.StatusOK, "olga": http.StatusOK, testrig.Reader: http.StatusNotFound} {
		p := r.browserOf(login)
		p.get(base + "/login/github")
		if status, _ := p.get(base + "/threads/acme/hidden/1"); status != want {
			t.Errorf("%s at a page of acme/hidden: %d, want %d", login, status, want)
		}
		status, _ := p.get(base + "/metrics")
		if operator := login == "olga"; operator != (status == http.StatusOK) {
			t.Errorf("%s at /metrics: %d", login, status)
		}
	}
	// Nothing of the login is kept, and the public listener has no page.
	r.World.RevokeUserTokens()
	if status, _ := mallory.get(details); status != http.StatusOK {
		t.Errorf("a page after GitHub ended the token of the login: %d", status)
	}
	for _, path := range []string{"/", "/threads/acme/widgets/1", "/metrics", "/readyz", "/login/github", "/debug/pprof/"} {
		if status, _ := mallory.get(r.URL(path)); status != http.StatusNotFound {
			t.Errorf("%s at the webhook's listener: %d", path, status)
		}
	}
	_, secretOfClient := r.World.OAuthClient()
	if log := r.Log.String(); strings.Contains(log, secretOfClient) || strings.Contains(log, "ghu_") {
		t.Error("a secret of the login is in the log")
	}
	// The key of the sessions is in the database, so a restart signs nobody out; who is no longer let in is gone.
	r.Stop(syscall.SIGTERM)
	r.StartWith(filepath.Join(r.Dir, "pawl.yml"))
	if status, _ := mallory.get(base + "/threads/acme/widgets/1"); status != http.StatusOK {
		t.Errorf("after a restart: %d", status)
	}
}

func TestWhoTakesBackTheAuthorizationIsSignedOutAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Must(r.World.AddUser("stranger", 1004, nil))
	r.StartWith(r.withLogin())
	base := "http://" + r.Pages
	ada, mallory := r.browserOf(testrig.Writer), r.browserOf(testrig.Reader)
	status := func(p person) int {
		code, body := p.get(base + "/")
		if code == http.StatusUnauthorized && !strings.Contains(body, "Sign in") {
			t.Errorf("what is shown asks for no login:\n%s", body)
		}
		return code
	}
	for _, p := range []person{ada, mallory} {
		if p.get(base + "/login/github"); status(p) != http.StatusOK {
			t.Fatal("nobody is signed in")
		}
	}
	// revoked waits until the nth is handled.
	revoked := func(login string, n int) {
		r.Must(r.World.Revoke(login))
		r.Await("the revocation", func() bool { return strings.Count(r.Log.String(), `"note":"signed out"`) == n })
	}
	revoked("stranger", 1)
	if a, m := status(ada), status(mallory); a != http.StatusOK || m != http.StatusOK {
		t.Errorf("after somebody revoked who never signed in: ada %d, mallory %d", a, m)
	}
	revoked(testrig.Reader, 2)
	if a, m := status(ada), status(mallory); a != http.StatusOK || m != http.StatusUnauthorized {
		t.Errorf("after mallory revoked: ada %d, mallory %d", a, m)
	}
	mallory.get(base + "/login/github")
	if got := status(mallory); got != http.StatusOK {
		t.Errorf("after a new login: %d", got)
	}
}

func TestSessionsHoldOnEveryNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.Agent(testrig.PlainAgent, "")
	a, b := c.join(), c.join()
	c.Pages = a.Pages
	if status, _ := c.Get("/"); status != http.StatusOK {
		t.Fatalf("the node that the link led to: %d", status)
	}
	link, err := exec.Command(testrig.Program, "login", "--config", filepath.Join(c.Dir, "pawl.yml")).Output()
	c.Must(err)
	at, err := url.Parse(strings.TrimSpace(string(link)))
	c.Must(err)
	var used []int
	for _, m := range []*testrig.Member{a, b, a} {
		c.Pages = m.Pages
		if status, body := c.Get("/"); status != http.StatusOK {
			t.Errorf("the node at %s does not know the session: %d\n%s", m.Pages, status, body)
		}
		at.Host = m.Pages
		status, _ := c.browserOf("").get(at.String())
		used = append(used, status)
	}
	if used[0] != http.StatusOK || used[1] != http.StatusForbidden || used[2] != http.StatusForbidden {
		t.Errorf("one link at three nodes: %v", used)
	}
}
