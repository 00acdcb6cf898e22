package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

const metricsToken = "0123456789abcdef"

// prey returns a running server with a finished thread. Tests attack its pages.
func prey(t *testing.T) (r *rig, page string) {
	t.Helper()
	r = newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Must(r.World.AddUser("olga", 1003, nil))
	r.withLogin()
	r.Start()
	n, _ := r.Solved()
	return r, fmt.Sprintf("/threads/%s/%d", testrig.Repo, n)
}

// sends sends a request that no browser would send. Its header may name another host.
func (b *browser) sends(method, path string, header map[string]string) (answer *http.Response, text string) {
	b.T.Helper()
	return b.sendsTo(b.Pages, method, path, header)
}

// sendsTo sends such a request to another listener of the server.
func (b *browser) sendsTo(at, method, path string, header map[string]string) (answer *http.Response, text string) {
	b.T.Helper()
	q, err := http.NewRequestWithContext(b.T.Context(), method, "http://"+at, nil)
	b.Must(err)
	q.URL.Opaque = "//" + at + path // sends the path unchanged; the server then reads the host from Opaque
	for name, v := range header {
		q.Header.Set(name, v)
	}
	if host := header["Host"]; host != "" { // Go's cookie jar uses Host
		q.Host = host
		q.URL.Opaque, q.URL.Path = "", path
		for _, c := range b.Jar.Cookies(&url.URL{Scheme: "http", Host: at}) {
			q.AddCookie(c)
		}
	}
	client := b.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err = client.Do(q)
	b.Must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	b.Must(err)
	return answer, string(body)
}

// authorized starts a login, and returns the address to which GitHub then redirects the browser.
func (b *browser) authorized() *url.URL {
	b.T.Helper()
	client := b.Client
	client.CheckRedirect = func(q *http.Request, _ []*http.Request) error {
		if q.URL.Path == "/login/callback" {
			return http.ErrUseLastResponse
		}
		return nil
	}
	answer, err := client.Get("http://" + b.Pages + "/login/github")
	b.Must(err)
	defer answer.Body.Close()
	at, err := answer.Location()
	b.Must(err)
	return at
}

// signedIn reports whether the browser has a session.
func (b *browser) signedIn() bool {
	status, _ := b.page("/")
	return status == http.StatusOK
}

func TestLoginCannotBeMovedToAnotherBrowser(t *testing.T) {
	t.Parallel()
	r, _ := prey(t)
	mallory, ada := r.browserOf(testrig.Reader), r.browserOf(testrig.Writer)
	hers, his := ada.authorized(), mallory.authorized()
	if status, _ := ada.page(his.String()); status != http.StatusForbidden || ada.signedIn() {
		t.Errorf("ada's browser was signed in as mallory: %d", status)
	}
	stolen := *his // Mallory's state, with the code that GitHub gave for Ada
	query := his.Query()
	query.Set("code", hers.Query().Get("code"))
	stolen.RawQuery = query.Encode()
	if status, _ := mallory.page(stolen.String()); status == http.StatusOK || mallory.signedIn() {
		t.Errorf("a stolen code without its verifier signed in: %d", status)
	}
	if hers.Query().Get("state") == his.Query().Get("state") {
		t.Error("two logins have the same state")
	}
}

func TestLoginReplacesAPlantedSession(t *testing.T) {
	t.Parallel()
	r, _ := prey(t)
	ada := r.browserOf(testrig.Writer)
	pages, err := url.Parse("http://" + r.Pages)
	r.Must(err)
	ada.Jar.SetCookies(pages, []*http.Cookie{{Name: "pawl", Value: "planted", Path: "/"}})
	back := ada.authorized()
	answer, _ := ada.sends("GET", "/login/callback?"+back.RawQuery, nil)
	var session *http.Cookie
	for _, c := range answer.Cookies() {
		if c.Name == "pawl" {
			session = c
		}
		if c.Path != "/" || c.Domain != "" || !c.HttpOnly {
			t.Errorf("cookie %s: %+v", c.Name, c)
		}
	}
	if session == nil || session.Value == "planted" || session.SameSite != http.SameSiteStrictMode {
		t.Fatalf("%s: session %+v", answer.Status, session)
	}
	for value, want := range map[string]int{"planted": http.StatusUnauthorized, session.Value: http.StatusOK} {
		if answer, _ := r.browserOf("").sends("GET", "/", map[string]string{"Cookie": "pawl=" + value}); answer.StatusCode != want {
			t.Errorf("session %.8s…: %s, want %d", value, answer.Status, want)
		}
	}
}

func TestPostsFromOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	r, page := prey(t)
	olga := r.browserOf("olga") // an operator, who may use every control
	olga.page("/login/github")
	posts := []string{page + "/steer", "/logout", "/login/link/x", "/accounts/main/close", "/deliveries/x/retry"}
	for _, c := range policy.Commands {
		if c.Page != "" {
			posts = append(posts, page+"/"+c.Name)
		}
	}
	before := len(r.State(1).Controls)
	for name, header := range map[string]map[string]string{
		"another site":         {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
		"another of our hosts": {"Sec-Fetch-Site": "same-site", "Origin": "https://evil.example"},
		"an old browser":       {"Origin": "https://evil.example"},
		"a sandboxed page":     {"Origin": "null"},
		"a rebound name":       {"Host": "evil.example", "Origin": "http://evil.example"},
	} {
		for _, path := range posts {
			if answer, _ := olga.sends("POST", path, header); answer.StatusCode != http.StatusForbidden && answer.StatusCode != http.StatusMisdirectedRequest {
				t.Errorf("%s: POST %s: %s", name, path, answer.Status)
			}
		}
	}
	if got := len(r.State(1).Controls); got != before || !olga.signedIn() {
		t.Errorf("%d controls instead of %d, signed in: %t", got, before, olga.signedIn())
	}
}

func TestPagesAnswerOnlyToTheirHostAndPath(t *testing.T) {
	t.Parallel()
	r, page := prey(t)
	ada, nobody := r.browserOf(testrig.Writer), r.browserOf("")
	ada.page("/login/github")
	for _, host := range []string{"evil.example", "localhost.evil.example", "127.0.0.1.nip.io"} {
		if answer, text := ada.sends("GET", page, map[string]string{"Host": host}); answer.StatusCode != http.StatusMisdirectedRequest || strings.Contains(text, "second line") {
			t.Errorf("host %s: %s", host, answer.Status)
		}
	}
	public := strings.TrimPrefix(r.URL(""), "http://")
	for _, path := range []string{
		page, "/" + page, page + "/", page + "%2f", page + "%00", "/x/.." + page, "/%2e" + page, "/static/../.." + page, "/login/.." + page, "/healthz/../metrics", "/..%2f..%2fetc/passwd",
		"/%2e%2e/%2e%2e/etc/passwd", "/login/github?next=/../../etc/passwd", "//metrics", "/metrics/", "/METRICS",
	} {
		for _, at := range []string{r.Pages, public} {
			answer, text := nobody.sendsTo(at, "GET", path, nil)
			if strings.Contains(text, "second line") || strings.Contains(text, "go_goroutines") || strings.Contains(text, "root:") {
				t.Errorf("GET %s at %s without a login: %s", path, at, answer.Status)
			}
		}
	}
}

func TestMetricsTokenOpensNothingElse(t *testing.T) {
	t.Parallel()
	r, page := prey(t)
	nobody := r.browserOf("")
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/metrics", metricsToken, http.StatusOK},
		{"/metrics", metricsToken[1:], http.StatusUnauthorized},
		{"/metrics", "", http.StatusUnauthorized},
		{page, metricsToken, http.StatusUnauthorized},
		{"/", metricsToken, http.StatusUnauthorized},
	} {
		if answer, _ := nobody.sends("GET", c.path, map[string]string{"Authorization": "Bearer " + c.token}); answer.StatusCode != c.want {
			t.Errorf("%s with %q: %s, want %d", c.path, c.token, answer.Status, c.want)
		}
	}
	if answer, _ := nobody.sends("POST", page+"/retry", map[string]string{"Authorization": "Bearer " + metricsToken}); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a command with the metrics token: %s", answer.Status)
	}
}
