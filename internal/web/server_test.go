package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy/feedback"
)

func TestTimeoutsCutSlowClientsAndAllowLargeWebhooks(t *testing.T) {
	s := Server(http.NotFoundHandler())
	switch {
	case s.ReadHeaderTimeout <= 0, s.IdleTimeout <= 0, s.MaxHeaderBytes <= 0:
		t.Errorf("a server without timeouts: %+v", s)
	case s.ReadTimeout < 10*time.Second: // GitHub's own timeout
		t.Errorf("a webhook of 25 MiB gets only %s", s.ReadTimeout)
	case s.WriteTimeout <= s.ReadTimeout+pageTime:
		t.Errorf("an answer after a slow request gets too little time: %s", s.WriteTimeout)
	}
}

type one struct{ conns chan net.Conn }

func (l one) Accept() (net.Conn, error) {
	if c, open := <-l.conns; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l one) Close() error   { return nil }
func (l one) Addr() net.Addr { return &net.TCPAddr{} }

func TestStalledRequestsAreCutOff(t *testing.T) {
	const begun = "POST /api/github/hook HTTP/1.1\r\nHost: x\r\n"
	for name, c := range map[string]struct {
		sent string
		ends time.Duration
	}{
		"nothing": {"", headerTime},
		"headers": {begun, headerTime},
		"a body":  {begun + "Content-Length: 100\r\n\r\n{", readTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := Server(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
				client, conn := net.Pipe()
				l := one{make(chan net.Conn, 1)}
				l.conns <- conn
				served := make(chan error, 1)
				go func() { served <- s.Serve(l) }()
				began := time.Now()
				go func() { _, _ = io.WriteString(client, c.sent) }()
				_, _ = io.Copy(io.Discard, client)
				if took := time.Since(began); took < c.ends || took > c.ends+time.Second {
					t.Errorf("cut off after %s, want %s", took, c.ends)
				}
				client.Close()
				close(l.conns)
				<-served
			})
		})
	}
}

func TestButtonsNeedPermissionAndPawlsOwnPages(t *testing.T) {
	var log bytes.Buffer
	levels := map[string]string{"ada": "write", "bob": "read"}
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p, err := newPages(Options{Now: time.Now, Store: db, Log: zerolog.New(&log), Access: Access{
		URL: "https://pawl.example", Key: make([]byte, keyBytes), Operators: []string{"carol"},
		Permission: func(_ context.Context, repo string, by User) (string, error) {
			if repo == "acme/away" {
				return "", errors.New("away")
			}
			return levels[by.Login], nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	done := ""
	mux := http.NewServeMux()
	act := func(w http.ResponseWriter, r *http.Request, by User) {
		done = by.Name()
		redirect(w, http.StatusSeeOther, "/threads/acme/widgets/7")
	}
	mux.Handle("POST /threads/{owner}/{repo}/{n}/retry", p.act(feedback.Writes, act))
	mux.Handle("POST /breakers/{account}/close", p.act(nil, act))
	site := p.ownSite(mux)
	const retry, shut = "/threads/acme/widgets/7/retry", "/breakers/main/close"
	for name, c := range map[string]struct {
		method, path, login string
		header              map[string]string
		want                int
	}{
		"a user with write permission":  {"POST", retry, "ada", map[string]string{"Sec-Fetch-Site": "same-origin"}, http.StatusSeeOther},
		"an old browser":                {"POST", retry, "ada", map[string]string{"Origin": "https://pawl.example"}, http.StatusSeeOther},
		"behind a proxy":                {"POST", retry, "ada", map[string]string{"Origin": "https://pawl.example", "Host": "127.0.0.1:8081"}, http.StatusSeeOther},
		"an operator":                   {"POST", shut, "carol", nil, http.StatusSeeOther},
		"an operator on a thread":       {"POST", retry, "carol", nil, http.StatusSeeOther},
		"by a link":                     {"POST", shut, "", nil, http.StatusSeeOther},
		"a user with read permission":   {"POST", retry, "bob", nil, http.StatusNotFound},
		"a stranger":                    {"POST", retry, "mallory", nil, http.StatusNotFound},
		"a writer on the server":        {"POST", shut, "ada", nil, http.StatusNotFound},
		"GitHub is down":                {"POST", "/threads/acme/away/7/retry", "ada", nil, http.StatusServiceUnavailable},
		"an invalid name":               {"POST", "/threads/acme/..%2fx/7/retry", "ada", nil, http.StatusNotFound},
		"from another page":             {"POST", retry, "ada", map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		"from another of our hosts":     {"POST", retry, "ada", map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
		"from another origin":           {"POST", retry, "ada", map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden},
		"from a page without an origin": {"POST", retry, "ada", map[string]string{"Origin": "null"}, http.StatusForbidden},
		"under another name":            {"POST", retry, "ada", map[string]string{"Host": "evil.example"}, http.StatusMisdirectedRequest},
		"by a link in a page":           {"GET", retry, "ada", nil, http.StatusMethodNotAllowed},
		"by a form that overrides it":   {"GET", retry + "?_method=POST", "ada", map[string]string{"X-HTTP-Method-Override": "POST"}, http.StatusMethodNotAllowed},
	} {
		done = ""
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
		r.Host = "pawl.example"
		for key, value := range c.header {
			if r.Header.Set(key, value); key == "Host" {
				r.Host = value
			}
		}
		cookie, err := p.cookie(sessionCookie, session{User: User{Login: c.login, ID: 7}, Until: time.Now().Add(time.Hour)}, time.Hour, http.SameSiteStrictMode)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(cookie)
		w := httptest.NewRecorder()
		site.ServeHTTP(w, r)
		if acted := done != ""; w.Code != c.want || acted != (c.want == http.StatusSeeOther) || acted && done != (User{Login: c.login}).Name() {
			t.Errorf("%s: %d, acted as %q; want %d", name, w.Code, done, c.want)
		}
	}
	if !strings.Contains(log.String(), `"by":"ada","path":"/threads/acme/widgets/7/retry","message":"a user pressed a button"`) {
		t.Errorf("the log does not name the user: %s", &log)
	}
	w := httptest.NewRecorder()
	site.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "https://pawl.example"+retry, nil))
	if w.Code != http.StatusUnauthorized {
		t.Errorf("without a session: %d", w.Code)
	}
}

func TestRequestWaitsUntilItsClientLeaves(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	h := inLine(make(chan struct{}, 1), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-leave
	}))
	ask := func(ctx context.Context) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	}
	first, second := make(chan struct{}), make(chan struct{})
	go func() { ask(t.Context()); close(first) }()
	<-inside
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	ask(gone) // returns without a slot, because its client has left
	go func() { ask(t.Context()); close(second) }()
	leave <- struct{}{}
	<-first
	<-inside
	leave <- struct{}{}
	<-second
}
