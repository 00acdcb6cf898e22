package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/pawlbot/pawl/internal/web"
)

// withGitHub adds sign-in with GitHub. The OAuth code is the user's login name. c is the pages' clock.
func withGitHub(t *testing.T, c *time.Time, levels map[string]string) func(*web.Options) {
	t.Helper()
	token := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"access_token": "`+r.FormValue("code")+`", "token_type": "bearer"}`)
	}))
	t.Cleanup(token.Close)
	return func(o *web.Options) {
		people(levels)(o)
		o.Now = func() time.Time { return *c }
		o.Access.Client, o.Access.OAuth.Endpoint.TokenURL = token.Client(), token.URL
		o.Access.OAuth.Endpoint.AuthStyle = oauth2.AuthStyleInParams
		o.Access.User = func(_ context.Context, token string) (web.User, error) {
			if token == "broken" {
				return web.User{}, errors.New("401")
			}
			return web.User{Login: token, ID: int64(len(token))}, nil
		}
	}
}

// asks begins a login and returns the cookie and the state.
func (s *site) asks(next string) (*http.Cookie, string) {
	s.t.Helper()
	answer, body := s.get("/login/github?" + url.Values{"next": {next}}.Encode())
	at, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		s.t.Fatalf("%s, %v\n%s", answer.Status, err, body)
	}
	if q := at.Query(); at.Host != "github.example" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || q.Get("redirect_uri") != "https://pawl.example/login/callback" {
		s.t.Errorf("GitHub is asked with %s", at)
	}
	return answer.Cookies()[0], at.Query().Get("state")
}

func (s *site) signs(login, next string) (*http.Response, string) {
	s.t.Helper()
	s.cookie = nil
	begun, state := s.asks(next)
	s.cookie = begun
	answer, body := s.get("/login/callback?" + url.Values{"code": {login}, "state": {state}}.Encode())
	s.cookie = nil
	for _, c := range answer.Cookies() {
		if c.MaxAge >= 0 {
			s.cookie = c
		}
	}
	return answer, body
}

func TestUsersSeeOnlyReadableRepositories(t *testing.T) {
	clock, levels := now, map[string]string{"bob acme/widgets": "read"}
	s := open(t, withGitHub(t, &clock, levels))
	s.everything()
	if answer, body := s.signs("bob", "/threads/acme/widgets/7"); answer.StatusCode != http.StatusOK || !strings.Contains(body, `url=/threads/acme/widgets/7"`) {
		t.Fatalf("%s\n%s", answer.Status, body)
	}
	s.page("/threads/acme/widgets/7")
	if page := s.page("/"); !strings.Contains(page, "acme/widgets#7") || strings.Contains(page, "gadgets") || strings.Contains(page, "running") && strings.Contains(page, `class="counts"`) || strings.Contains(page, "Account main") {
		t.Errorf("a user who is not an operator sees:\n%s", page)
	}
	for _, path := range []string{"/accounts", "/backends"} {
		if answer, body := s.get(path); answer.StatusCode != http.StatusNotFound || strings.Contains(body, "main") && strings.Contains(body, "usage limit") {
			t.Errorf("%s: %s\n%s", path, answer.Status, body)
		}
	}
	hidden := []string{"/threads/acme/widgets/404", "/threads/acme/none/7", "/threads/acme/none/7/live", "/threads/acme/widgets/7/attempts/1/log", "/threads/acme/widgets/7/attempts/1/raw"}
	delete(levels, "bob acme/widgets")
	s.page("/threads/acme/widgets/7") // the pages reuse GitHub's answer for a minute
	clock = clock.Add(time.Minute)
	_, none := s.get("/threads/acme/none/7")
	for _, path := range append(hidden, "/threads/acme/widgets/7") {
		answer, body := s.get(path)
		if answer.StatusCode != http.StatusNotFound || !strings.Contains(body, "There is nothing here that you may see.") || strings.Contains(body, "Totals") {
			t.Errorf("%s: %s %q", path, answer.Status, body)
		}
		if strings.Count(path, "/") == 4 && body != none {
			t.Errorf("%s differs from a missing page", path)
		}
	}
	if answer, body := s.get("/metrics"); answer.StatusCode != http.StatusNotFound || body != "There is nothing here that you may see.\n" {
		t.Errorf("/metrics: %s %q", answer.Status, body)
	}
	if page := s.page("/"); strings.Contains(page, "acme") {
		t.Errorf("a user who lost access sees:\n%s", page)
	}
	s.signs("ada", "/") // an operator; logins are case-insensitive
	for _, path := range []string{"/threads/acme/widgets/7", "/metrics"} {
		s.page(path)
	}
	if page := s.page("/accounts"); !strings.Contains(page, "Breakers") {
		t.Error("an operator does not see the server")
	}
	clock = clock.Add(8 * time.Hour)
	if answer, _ := s.get("/"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("after 8 hours: %s", answer.Status)
	}
}

func TestSignedOutUserMustSignInAgain(t *testing.T) {
	clock := now
	s := open(t, withGitHub(t, &clock, nil))
	link := s.cookie
	signs := func(login string) *http.Cookie {
		t.Helper()
		if answer, body := s.signs(login, "/"); answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s\n%s", login, answer.Status, body)
		}
		return s.cookie
	}
	at := func(c *http.Cookie) int {
		t.Helper()
		s.cookie = c
		answer, _ := s.get("/")
		return answer.StatusCode
	}
	out := func(user int64) {
		t.Helper()
		if err := web.SignOut(t.Context(), s.store, user); err != nil {
			t.Fatal(err)
		}
	}
	bob, mallory := signs("bob"), signs("mallory") // ids 3 and 7
	out(99)
	out(3)
	again := signs("bob")
	for name, c := range map[string]struct {
		cookie *http.Cookie
		want   int
	}{"before": {bob, http.StatusUnauthorized}, "again": {again, http.StatusOK}, "another": {mallory, http.StatusOK}, "by a link": {link, http.StatusOK}} {
		if got := at(c.cookie); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	out(3)
	if got := at(again); got != http.StatusUnauthorized {
		t.Errorf("signed out once more: %d", got)
	}
	// The oldest entries are dropped, so every user with an older session must sign in again.
	again = signs("bob")
	for user := range int64(1000) {
		out(1000 + user)
	}
	if b, m, a, l := at(bob), at(mallory), at(again), at(link); b != http.StatusUnauthorized || m != http.StatusUnauthorized || a != http.StatusOK || l != http.StatusOK {
		t.Errorf("after a thousand more: before %d, another %d, the new one %d, by a link %d", b, m, a, l)
	}
	data, err := s.store.ReadShared(t.Context(), "signed out")
	if err != nil || len(data) > 80_000 || strings.Count(string(data), `"at"`) != 1000 {
		t.Errorf("%d bytes for %d users are stored, %v", len(data), strings.Count(string(data), `"at"`), err)
	}
	s.mu.Lock()
	s.clock = now.Add(17 * time.Hour)
	s.mu.Unlock()
	out(3)
	if data, err = s.store.ReadShared(t.Context(), "signed out"); err != nil || strings.Count(string(data), `"at"`) != 1 {
		t.Errorf("after all those sessions ended: %s, %v", data, err)
	}
}

func TestDamagedSignOutsEndAllSessions(t *testing.T) {
	clock := now
	s := open(t, withGitHub(t, &clock, nil))
	s.signs("bob", "/")
	damage := func(time.Time, []byte) []byte { return []byte("{") }
	if err := s.store.UpdateShared(t.Context(), "signed out", damage); err != nil {
		t.Fatal(err)
	}
	if answer, _ := s.get("/"); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a session from before the damage: %s, want 401", answer.Status)
	}
	if answer, body := s.signs("bob", "/"); answer.StatusCode != http.StatusOK {
		t.Errorf("a new session: %s, want 200\n%s", answer.Status, body)
	}
}

func TestLivePageEndsAtSignOut(t *testing.T) {
	clock := now
	s := open(t, withGitHub(t, &clock, nil))
	s.busy()
	s.signs("ada", "/")
	r := s.request(http.MethodGet, s.url+"/threads/acme/gadgets/44/live")
	r.AddCookie(s.cookie)
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", answer, err)
	}
	defer answer.Body.Close()
	if err := web.SignOut(t.Context(), s.store, 3); err != nil {
		t.Fatal(err)
	}
	if events, err := io.ReadAll(answer.Body); err != nil || !strings.HasPrefix(string(events), "id: ") { // the response would continue for 10 minutes
		t.Errorf("%q, %v", events, err)
	}
}

func TestNoAnswerFromGitHubMeansNoPermission(t *testing.T) {
	clock := now
	s := open(t, func(o *web.Options) {
		withGitHub(t, &clock, nil)(o)
		o.Access.Permission = func(context.Context, string, web.User) (string, error) { return "admin", errors.New("away") }
	})
	s.solved()
	s.signs("bob", "/")
	for _, path := range []string{"/", "/threads/acme/widgets/7", "/threads/acme/none/1"} {
		if answer, body := s.get(path); answer.StatusCode != http.StatusServiceUnavailable || strings.Contains(body, "widgets") {
			t.Errorf("%s: %s %s", path, answer.Status, body)
		}
	}
}

func TestLoginWorksOnceInTheBrowserThatBeganIt(t *testing.T) {
	clock := now
	s := open(t, withGitHub(t, &clock, nil))
	s.cookie = nil
	begun, state := s.asks("/")
	other, _ := s.asks("/")
	comes := func(c *http.Cookie, query string) *http.Response {
		t.Helper()
		s.cookie = c
		answer, _ := s.get("/login/callback?" + query)
		s.cookie = nil
		return answer
	}
	good := url.Values{"code": {"bob"}, "state": {state}}.Encode()
	for name, c := range map[string]struct {
		cookie *http.Cookie
		query  string
		status int
	}{
		"no cookie":                {nil, good, http.StatusForbidden},
		"another browser's":        {other, good, http.StatusForbidden},
		"no state":                 {begun, "code=bob", http.StatusForbidden},
		"an empty state":           {&http.Cookie{Name: begun.Name}, "code=bob&state=", http.StatusForbidden},
		"a made-up cookie":         {&http.Cookie{Name: begun.Name, Value: "e30="}, "code=bob&state=", http.StatusForbidden},
		"GitHub refuses":           {begun, "error=access_denied&error_description=%3Cb%3Eno&state=" + state, http.StatusForbidden},
		"GitHub names no user":     {begun, "code=broken&state=" + state, http.StatusBadGateway},
		"a session is not a login": {&http.Cookie{Name: begun.Name, Value: s.asOperator().Value}, "code=bob&state=", http.StatusForbidden},
		"an invalid login":         {begun, "state=" + state, http.StatusForbidden},
	} {
		if answer := comes(c.cookie, c.query); answer.StatusCode != c.status {
			t.Errorf("%s: %s, want %d", name, answer.Status, c.status)
		}
	}
	clock = clock.Add(10*time.Minute + time.Second)
	if answer := comes(begun, good); answer.StatusCode != http.StatusForbidden {
		t.Errorf("after ten minutes: %s", answer.Status)
	}
}

func TestForgedSessionsAreRefused(t *testing.T) {
	clock := now
	s := open(t, withGitHub(t, &clock, nil))
	operator := s.cookie
	if !operator.HttpOnly || operator.SameSite != http.SameSiteStrictMode || operator.Secure || operator.Name != "pawl" || operator.Path != "/" || operator.Domain != "" {
		t.Errorf("%+v", operator)
	}
	s.signs("bob", "/")
	bob := s.cookie
	if bob.Value == operator.Value {
		t.Error("a login kept the earlier session")
	}
	changed := []byte(bob.Value)
	changed[len(changed)/2] ^= 1
	begun, _ := s.asks("/")
	for name, value := range map[string]string{"changed": string(changed), "cut": bob.Value[:len(bob.Value)-4], "empty": "", "plain": "eyJsb2dpbiI6ImFkYSIsImlkIjoxfQ==", "a login": begun.Value} {
		s.cookie = &http.Cookie{Name: bob.Name, Value: value}
		if answer, _ := s.get("/"); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", name, answer.Status)
		}
	}
	for _, secret := range []string{bob.Value, operator.Value} {
		if strings.Contains(secret, "bob") || strings.Contains(s.log.String(), secret) {
			t.Error("a session is readable, or is in the log")
		}
	}
	public := open(t, func(o *web.Options) {
		withGitHub(t, &clock, nil)(o)
		o.Access.URL = "https://pawl.example"
	})
	if c := public.cookie; !c.Secure || c.Name != "__Host-pawl" {
		t.Errorf("with https: %+v", c)
	}
}

// A chat's preview fetches links. Only the button uses up a link.
func TestLoginLinkWorksOnce(t *testing.T) {
	s := open(t, nil)
	s.solved()
	s.page("/threads/acme/widgets/7")
	link := func() string {
		t.Helper()
		secret, err := web.NewLink(t.Context(), s.store)
		if err != nil {
			t.Fatal(err)
		}
		return web.LinkPath + secret
	}
	// asks returns the status, whether the page has the button, and the number of cookies.
	asks := func(method, path, site, origin string) [3]any {
		t.Helper()
		r := s.request(method, s.url+path)
		r.Header.Set("Sec-Fetch-Site", site)
		r.Header.Set("Origin", origin)
		answer, body := s.do(r)
		if policy := answer.Header.Get("Referrer-Policy"); policy != "no-referrer" && policy != "strict-origin" {
			t.Errorf("%s %s reveals its URL to other sites: %s", method, path, policy)
		}
		return [3]any{answer.StatusCode, strings.Contains(body, `<form method="post"><button>Sign in</button>`), len(answer.Cookies())}
	}
	s.cookie = nil
	first, late, gone := link(), link(), link()
	elsewhere := "https://evil.example"
	offered, refused, in := [3]any{http.StatusOK, true, 0}, [3]any{http.StatusForbidden, false, 0}, [3]any{http.StatusOK, false, 1}
	for i, c := range []struct {
		method, path, site, origin string
		want                       [3]any
	}{
		{"HEAD", first, "none", "", [3]any{http.StatusOK, false, 0}},
		{"GET", first, "none", "", offered},
		{"GET", first, "cross-site", "", offered}, // from a chat
		{"POST", first, "cross-site", elsewhere, refused},
		{"POST", first, "same-site", elsewhere, refused},
		{"POST", first, "", elsewhere, refused},
		{"POST", web.LinkPath + "AAAA", "same-origin", "", refused},
		{"GET", web.LinkPath + "AAAA", "none", "", refused},
		{"POST", first, "", s.url, in}, // a browser without Sec-Fetch-Site
		{"POST", first, "same-origin", "", refused},
		{"GET", first, "none", "", refused},
	} {
		if got := asks(c.method, c.path, c.site, c.origin); got != c.want {
			t.Errorf("%d, %s: %v, want %v", i, c.method, got, c.want)
		}
	}
	s.mu.Lock()
	s.clock = s.clock.Add(web.LinkTime)
	s.mu.Unlock()
	for _, method := range []string{"GET", "POST"} {
		if got := asks(method, late, "same-origin", ""); got != refused {
			t.Errorf("after 5 minutes, %s: %v", method, got)
		}
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	asks("GET", gone, "none", "")
	asks("POST", gone, "same-origin", "")
	for _, secret := range []string{first, late, gone} {
		if log := s.log.String(); strings.Contains(log, secret) {
			t.Errorf("a link is in the log:\n%s", log)
		}
	}
	if !strings.Contains(s.log.String(), `"path":"/login/link/"`) {
		t.Errorf("the log does not name the failure:\n%s", s.log.String())
	}
}

func TestLoginRedirectsOnlyToThisSite(t *testing.T) {
	clock := now
	s := open(t, withGitHub(t, &clock, nil))
	for next, want := range map[string]string{
		"/threads/a/b/1?x=1":      "/threads/a/b/1?x=1",
		"":                        "/",
		"threads":                 "/",
		"//evil.example":          "/",
		"///evil.example":         "/",
		"/\\evil.example":         "/",
		"\\\\evil.example":        "/",
		"/%5cevil.example":        "/",
		"/%2fevil.example":        "/",
		"https://evil.example/":   "/",
		"https:/evil.example":     "/",
		"javascript:alert(1)":     "/",
		"/\t/evil.example":        "/",
		"/\r\nSet-Cookie: a=b":    "/",
		"/a#//evil.example":       "/a",
		"/..//evil.example":       "/",
		"/a/../..//evil.example/": "/",
		"/x;url=//evil.example":   "/",
		"/x;url=evil.example":     "/x;url=evil.example",
	} {
		_, body := s.signs("bob", next)
		_, at, _ := strings.Cut(body, `content="0; url=`)
		if at, _, _ = strings.Cut(at, `"`); at != want {
			t.Errorf("%q redirects to %q, want %q", next, at, want)
		}
	}
}

func TestForeignHostNamesAreRefused(t *testing.T) {
	s := open(t, func(o *web.Options) { o.Access.URL = "http://pawl.example:8081" })
	for host, want := range map[string]int{
		"pawl.example": http.StatusOK, "PAWL.Example:8081": http.StatusOK, "pawl.example:443": http.StatusOK, "localhost:8081": http.StatusOK, "LOCALHOST": http.StatusOK,
		"127.0.0.1": http.StatusOK, "127.0.0.1:1": http.StatusOK, "[::1]:8081": http.StatusOK, "[::1]": http.StatusOK, "10.1.2.3:8081": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest, "evil.example:8081": http.StatusMisdirectedRequest, "pawl.example.evil.example": http.StatusMisdirectedRequest,
		"evil-pawl.example": http.StatusMisdirectedRequest, "localhost.evil.example": http.StatusMisdirectedRequest, "127.0.0.1.nip.io": http.StatusMisdirectedRequest,
		"1.2.3.4.5": http.StatusMisdirectedRequest, "pawl.example.": http.StatusMisdirectedRequest, "0x7f000001": http.StatusMisdirectedRequest,
	} {
		r := s.request("GET", s.url+"/")
		r.Host = host
		r.AddCookie(s.cookie)
		if answer, _ := s.do(r); answer.StatusCode != want {
			t.Errorf("%s: %s, want %d", host, answer.Status, want)
		}
		r = s.request("GET", s.url+"/metrics")
		r.Host = host
		r.AddCookie(s.cookie)
		if answer, _ := s.do(r); answer.StatusCode != want {
			t.Errorf("/metrics at %s: %s, want %d", host, answer.Status, want)
		}
	}
}

func TestForeignLinkReloadsWithTheCookie(t *testing.T) {
	s := open(t, nil)
	s.solved()
	s.cookie = nil
	r := s.request("GET", s.url+"/threads/acme/widgets/7?x=<")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if answer, body := s.do(r); answer.StatusCode != http.StatusOK || !strings.Contains(body, `content="0; url=/threads/acme/widgets/7?x=`) || strings.Contains(body, "x=<") {
		t.Errorf("%s\n%s", answer.Status, body)
	}
}

func TestMetricsToken(t *testing.T) {
	s := open(t, func(o *web.Options) { o.Access.MetricsToken = "a token of metrics" })
	s.cookie = nil
	for header, want := range map[string]int{
		"Bearer a token of metrics": http.StatusOK, "Bearer a token of metric": http.StatusUnauthorized, "Bearer ": http.StatusUnauthorized, "a token of metrics": http.StatusUnauthorized,
	} {
		r := s.request("GET", s.url+"/metrics")
		r.Host = "prometheus.internal"
		if want != http.StatusOK {
			r.Host = ""
		}
		r.Header.Set("Authorization", header)
		if answer, _ := s.do(r); answer.StatusCode != want {
			t.Errorf("%q: %s, want %d", header, answer.Status, want)
		}
		r = s.request("GET", s.url+"/")
		r.Header.Set("Authorization", header)
		if answer, _ := s.do(r); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q opens the pages: %s", header, answer.Status)
		}
	}
	none := open(t, nil)
	none.cookie = nil
	r := none.request("GET", none.url+"/metrics")
	r.Header.Set("Authorization", "Bearer ")
	if answer, _ := none.do(r); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a configured token, an empty one opens them: %s", answer.Status)
	}
}

func TestEveryMethodAndPathSpellingNeedsALogin(t *testing.T) {
	s := open(t, people(nil))
	s.solved()
	s.cookie = nil
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "PROPFIND"} {
		for _, path := range []string{
			"/", "//", "/.", "/threads/acme/widgets/7", "/threads//acme/widgets/7", "/./threads/acme/widgets/7", "/x/../threads/acme/widgets/7", "/%2e/threads/acme/widgets/7",
			"/threads/acme/widgets%2f7", "/threads/acme/widgets/7%00", "/metrics/", "/metrics?x", "//metrics", "/./metrics", "/healthz/../metrics", "/debug/pprof/", "/debug/vars",
		} {
			r := s.request(method, s.url)
			r.URL.Opaque = strings.TrimPrefix(s.url, "http:") + path
			if answer, body := s.do(r); answer.StatusCode == http.StatusOK || strings.Contains(body, "second line") || strings.Contains(body, "go_goroutines") {
				t.Errorf("%s %s: %s\n%s", method, path, answer.Status, body)
			}
		}
	}
}
