package forge

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// hub is a GitHub on loopback that speaks the documented shapes of the few
// routes under test, and fails as a test tells it to.
type hub struct {
	*httptest.Server
	mu       sync.Mutex
	faults   map[string][]fault
	seen     []seen
	tokens   int
	valid    map[string]bool
	expires  time.Duration
	comments []map[string]any
	checks   []map[string]any
	pulls    []map[string]any
	clock    *clock
}

type seen struct {
	method, path, auth string
	body               map[string]any
}

// fault answers one request in place of the hub; next is what the hub would
// have done.
type fault func(w http.ResponseWriter, r *http.Request, next http.Handler)

func status(code int, body string, headers ...string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func message(code int, text string, headers ...string) fault {
	body, _ := json.Marshal(map[string]string{"message": text, "documentation_url": "https://docs.github.com/rest"})
	return status(code, string(body), headers...)
}

// abortBefore closes the connection and does nothing.
func abortBefore(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// abortAfter does the work and loses the answer.
func abortAfter(_ http.ResponseWriter, r *http.Request, next http.Handler) {
	next.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// badGatewayAfter does the work and answers 502.
func badGatewayAfter(w http.ResponseWriter, r *http.Request, next http.Handler) {
	next.ServeHTTP(httptest.NewRecorder(), r)
	w.WriteHeader(http.StatusBadGateway)
}

// cutAfter does the work and sends half of the answer.
func cutAfter(w http.ResponseWriter, r *http.Request, next http.Handler) {
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, r)
	w.Header().Set("Content-Length", strconv.Itoa(rec.Body.Len()))
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
	panic(http.ErrAbortHandler)
}

// clock is a clock that moves only when somebody sleeps.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// move lets time pass, or sets the clock back.
func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	return ctx.Err()
}

func (c *clock) total() (sum time.Duration) {
	for _, d := range c.slept {
		sum += d
	}
	return sum
}

var testRepo = Repo{Owner: "octo", Name: "hello", ID: 77, Installation: 5}

const testApp = 4711

func start(t *testing.T) (*hub, *Client) {
	t.Helper()
	h := &hub{
		faults: map[string][]fault{}, valid: map[string]bool{}, expires: time.Hour,
		clock: &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)},
	}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serve))
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(h.Close)
	c, err := New(Config{
		WebURL: h.URL, APIURL: h.URL, AppID: testApp, PrivateKey: testKey(), UserAgent: "pawl-test",
		Transport: transport, Now: h.clock.Now, Sleep: h.clock.Sleep, MaxWait: 90 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, c
}

var testKey = sync.OnceValue(func() []byte {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
})

func (h *hub) fail(route string, faults ...fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults[route] = append(h.faults[route], faults...)
}

// calls returns the requests to a route, in order.
func (h *hub) calls(route string) []seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	var got []seen
	for _, s := range h.seen {
		if s.method+" "+s.path == route {
			got = append(got, s)
		}
	}
	return got
}

func (h *hub) revoke() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.valid)
}

func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	var body map[string]any
	_ = json.Unmarshal(text, &body)
	route := r.Method + " " + r.URL.Path
	h.mu.Lock()
	h.seen = append(h.seen, seen{r.Method, r.URL.Path, r.Header.Get("Authorization"), body})
	var now fault
	if queue := h.faults[route]; len(queue) > 0 {
		now, h.faults[route] = queue[0], queue[1:]
	}
	h.mu.Unlock()
	real := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, body) })
	if now != nil {
		now(w, r, real)
		return
	}
	real(w, r)
}

func (h *hub) answer(w http.ResponseWriter, r *http.Request, body map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	auth := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	jwt := strings.HasPrefix(auth, "eyJ")
	appRoute := r.URL.Path == "/app" || strings.HasPrefix(r.URL.Path, "/app/")
	if appRoute != jwt || (!jwt && auth != "" && !h.valid[auth]) || (auth == "" && !strings.HasPrefix(r.URL.Path, "/users/")) {
		reply(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
		return
	}
	code, result := h.route(w, r, body)
	reply(w, code, result)
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func (h *hub) route(w http.ResponseWriter, r *http.Request, body map[string]any) (int, any) {
	bot := map[string]any{"id": 900, "login": "pawl[bot]", "type": "Bot"}
	app := map[string]any{"id": testApp, "slug": "pawl", "name": "Pawl", "permissions": map[string]string{"checks": "write", "metadata": "read"}, "events": []string{"issues"}}
	repo := map[string]any{"id": 77, "name": "hello", "full_name": "octo/hello", "owner": map[string]any{"login": "octo"}, "default_branch": "main"}
	switch path := strings.TrimPrefix(r.URL.Path, "/repos/octo/hello"); r.Method + " " + path {
	case "GET /app":
		return 200, app
	case "GET /app/installations":
		return 200, []any{map[string]any{"id": 4, "suspended_at": "2026-01-01T00:00:00Z"}, map[string]any{"id": 5}}
	case "GET /users/pawl[bot]":
		return 200, bot
	case "POST /app/installations/5/access_tokens":
		h.tokens++
		token := fmt.Sprintf("ghs_%040d", h.tokens)
		h.valid[token] = true
		return 201, map[string]any{"token": token, "expires_at": h.clock.Now().Add(h.expires).Format(time.RFC3339)}
	case "GET ", "GET /repositories/77":
		return 200, repo
	case "GET /issues/3":
		return 200, map[string]any{"number": 3, "title": "T", "state": "open", "user": bot, "labels": []any{map[string]any{"name": "pawl"}}, "pull_request": map[string]any{"url": "x"}}
	case "POST /issues/3/comments":
		c := map[string]any{"id": len(h.comments) + 1, "body": body["body"], "user": bot, "performed_via_github_app": app}
		h.comments = append(h.comments, c)
		return 201, c
	case "PATCH /issues/comments/1":
		h.comments[0]["body"] = body["body"]
		return 200, h.comments[0]
	case "GET /issues/3/comments":
		return 200, page(w, r, h.URL, h.comments)
	case "POST /check-runs":
		c := map[string]any{"id": len(h.checks) + 1, "name": body["name"], "head_sha": body["head_sha"], "external_id": body["external_id"], "status": body["status"], "app": app}
		h.checks = append(h.checks, c)
		return 201, c
	case "PATCH /check-runs/1":
		return 200, map[string]any{"id": 1, "name": body["name"], "status": body["status"], "conclusion": body["conclusion"]}
	case "GET /commits/abc/check-runs":
		return 200, map[string]any{"total_count": len(h.checks), "check_runs": page(w, r, h.URL, h.checks)}
	case "POST /pulls":
		side := func(ref any) map[string]any { return map[string]any{"ref": ref, "sha": "abc", "repo": repo} }
		for _, p := range h.pulls {
			if p["state"] == "open" && p["head"].(map[string]any)["ref"] == body["head"] {
				return 422, map[string]any{"message": "Validation Failed", "errors": []any{map[string]any{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for octo:" + body["head"].(string) + "."}}}
			}
		}
		p := map[string]any{"number": len(h.pulls) + 10, "state": "open", "title": body["title"], "draft": body["draft"], "head": side(body["head"]), "base": side(body["base"])}
		h.pulls = append(h.pulls, p)
		return 201, p
	case "GET /pulls":
		return 200, h.pulls
	case "GET /pulls/10":
		return 200, h.pulls[0]
	case "POST /issues/3/reactions", "POST /issues/comments/8/reactions", "POST /pulls/comments/9/reactions":
		return 200, map[string]any{"id": 1, "content": body["content"]}
	case "GET /collaborators/ann/permission":
		return 200, map[string]any{"permission": "write", "role_name": "maintain"}
	case "GET /collaborators/bob/permission":
		return 200, map[string]any{"permission": "read", "role_name": "security-reader"}
	case "GET /collaborators/ghost/permission":
		return 404, map[string]any{"message": "ghost is not a user"}
	}
	return 404, map[string]any{"message": "Not Found"}
}

// page cuts a list as GitHub does, with a Link header.
func page(w http.ResponseWriter, r *http.Request, base string, all []map[string]any) []map[string]any {
	n, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	n, size = max(n, 1), max(size, 1)
	last := max(1, (len(all)+size-1)/size)
	link := func(page int, rel string) string {
		return fmt.Sprintf(`<%s%s?per_page=%d&page=%d>; rel=%q`, base, r.URL.Path, size, page, rel)
	}
	if n < last {
		w.Header().Set("Link", link(n+1, "next")+", "+link(last, "last"))
	}
	return append([]map[string]any{}, all[min(len(all), (n-1)*size):min(len(all), n*size)]...)
}
