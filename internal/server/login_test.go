package server_test

import (
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// withLogin gives the App an OAuth client, and the pages a public address on which nothing listens.
func (r *rig) withLogin() {
	r.T.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	r.Must(err)
	r.Must(free.Close())
	at := free.Addr().String()
	id, secret := r.World.OAuthClient()
	r.World.SetCallbacks("http://" + at + "/login/callback")
	r.Edit = strings.NewReplacer(`pages: "127.0.0.1:0"`, `pages: "`+at+`", public_url: "http://`+at+`", operators: [olga], metrics_token: `+metricsToken,
		"private_key_file: app.pem", "private_key_file: app.pem, client_id: "+id+", client_secret: "+secret)
}

// browser is a user's browser, signed in to GitHub.
type browser struct {
	*rig
	http.Client
}

func (r *rig) browserOf(login string) *browser {
	r.T.Helper()
	jar, err := cookiejar.New(nil)
	r.Must(err)
	github, err := url.Parse(r.World.WebURL() + "/login/oauth/authorize")
	r.Must(err)
	if login != "" {
		jar.SetCookies(github, []*http.Cookie{{Name: fakegithub.SignedInCookie, Value: login, Path: "/"}})
	}
	return &browser{r, http.Client{Jar: jar, Timeout: testrig.Patience}}
}

func (b *browser) page(path string) (status int, text string) {
	b.T.Helper()
	if strings.HasPrefix(path, "/") {
		path = "http://" + b.Pages + path
	}
	answer, err := b.Client.Get(path)
	b.Must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	b.Must(err)
	return answer.StatusCode, string(body)
}

func TestUsersSignInAndSeeReadableRepositories(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	const hidden = "acme/hidden"
	r.Must(r.World.AddRepo(t.Context(), hidden, map[string]string{"a.txt": "one\n"}))
	r.Must(r.World.Install(hidden))
	r.Must(r.World.SetRole(hidden, testrig.Writer, "write"))
	r.Must(r.World.AddUser("olga", 1003, nil))
	r.Must(r.World.AddUser("stranger", 1004, nil))
	r.withLogin()
	r.Start()
	_, pull := r.Solved()
	secret, err := r.World.OpenIssue(hidden, testrig.Writer, "What nobody else shall know", "Add a line.")
	r.Must(err)
	_, err = r.World.Comment(hidden, secret, testrig.Writer, "/pawl solve")
	r.Must(err)
	r.Over(hidden + "#1")

	details := r.Check(r.Head(pull), "pawl").DetailsURL
	status, body := r.browserOf("").page(details)
	if status != http.StatusUnauthorized || !strings.HasPrefix(details, "http://"+r.Pages+"/threads/") || strings.Contains(body, "second line") {
		t.Errorf("details_url %s: %d\n%s", details, status, body)
	}
	mallory := r.browserOf(testrig.Reader)
	status, body = mallory.page("/login/github?next=/threads/acme/widgets/1")
	if status != http.StatusOK || !strings.Contains(body, "signed in as mallory") || !strings.Contains(body, "url=/threads/acme/widgets/1") {
		t.Fatalf("the login: %d\n%s", status, body)
	}
	readable := func(when string) {
		t.Helper()
		if status, body := mallory.page(details); status != http.StatusOK || !strings.Contains(body, "A second line") {
			t.Errorf("the page of a repository that ada may read, %s: %d\n%s", when, status, body)
		}
	}
	readable("after the login")
	ada, olga := r.browserOf(testrig.Writer), r.browserOf("olga")
	for b, want := range map[*browser][2]int{
		ada:     {http.StatusOK, http.StatusNotFound},
		olga:    {http.StatusOK, http.StatusOK}, // an operator
		mallory: {http.StatusNotFound, http.StatusNotFound},
	} {
		b.page("/login/github")
		page, _ := b.page("/threads/acme/hidden/1")
		metrics, _ := b.page("/metrics")
		if got := [2]int{page, metrics}; got != want {
			t.Errorf("a page of acme/hidden, and /metrics: %d, want %d", got, want)
		}
	}
	// The login stores no token, and the public listener has no page.
	r.World.RevokeUserTokens()
	readable("after GitHub ended the token of the login")
	for _, path := range []string{"/", "/threads/acme/widgets/1", "/metrics", "/readyz", "/login/github", "/debug/pprof/"} {
		if status, _ := mallory.page(r.URL(path)); status != http.StatusNotFound {
			t.Errorf("%s at the webhook's listener: %d", path, status)
		}
	}
	_, client := r.World.OAuthClient()
	if log := r.Log.String(); strings.Contains(log, client) || strings.Contains(log, "ghu_") {
		t.Error("a secret of the login is in the log")
	}
	// The session key is in the database, so sessions survive a restart.
	r.Stop(syscall.SIGTERM)
	r.Start()
	readable("after a restart")
	// Revoking the authorization ends that user's sessions at once, and no others.
	for n, login := range []string{"stranger", testrig.Reader} {
		readable("before she revoked")
		r.Must(r.World.Revoke(login))
		r.Await("the revocation", func() bool { return strings.Count(r.Log.String(), `"note":"signed out"`) == n+1 })
	}
	if status, body := mallory.page("/"); status != http.StatusUnauthorized || !strings.Contains(body, "Sign in") {
		t.Errorf("after ada revoked the authorization: %d\n%s", status, body)
	}
	if status, _ := ada.page("/"); status != http.StatusOK {
		t.Errorf("ada is signed out too: %d", status)
	}
	mallory.page("/login/github")
	readable("after a new login")
}
