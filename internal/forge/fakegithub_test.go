package forge

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

const (
	testApp  = 4711
	fullName = "octo/hello"
)

// Routes that many tests use, as requests and as fakegithub names them.
const (
	issueRoute   = "GET /repos/octo/hello/issues/1"
	commentRoute = "POST /repos/octo/hello/issues/1/comments"
	listRoute    = "GET /repos/octo/hello/issues/1/comments"
	reactRoute   = "POST /repos/octo/hello/issues/1/reactions"
	checkRoute   = "POST /repos/octo/hello/check-runs"
	updateRoute  = "PATCH /repos/{owner}/{repo}/check-runs/{id}"
	editRoute    = "PATCH /repos/{owner}/{repo}/issues/comments/{id}"
	pullRoute    = "POST /repos/octo/hello/pulls"
	mintRoute    = "POST /app/installations/{id}/access_tokens"
	userRoute    = "GET /users/{login}"
)

// hub is the fake GitHub with the tests' repository and issue 1 by its maintainer ann. The repository has no commits
// until branch is called.
type hub struct {
	*fakegithub.Server
	t     *testing.T
	clock *clock
	repo  Repo
}

// newHub starts the server with the test's clock, or with real time if it is nil.
func newHub(t *testing.T, clock *clock) *hub {
	t.Helper()
	options := fakegithub.Options{AppID: testApp}
	if clock != nil {
		options.Now = clock.Now
	}
	gh, err := fakegithub.New(options)
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{Server: gh, t: t, clock: clock}
	h.must(gh.AddUser("ann", 31, nil))
	h.must(gh.AddRepo(t.Context(), fullName, nil))
	h.must(gh.SetRole(fullName, "ann", "maintain"))
	_, err = gh.OpenIssue(fullName, "ann", "Broken", "It is.")
	h.must(err)
	h.repo = h.installed(fullName)
	return h
}

func (h *hub) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// installed returns the repository as a webhook names it.
func (h *hub) installed(full string) Repo {
	h.t.Helper()
	owner, name, _ := strings.Cut(full, "/")
	id, err := h.InstallationID(full)
	h.must(err)
	return Repo{Owner: owner, Name: name, ID: h.RepoID(full), Installation: id}
}

// start returns a hub over HTTP and a client, with a clock that moves only when the client sleeps. Connections are not
// reused, because Go itself repeats a GET on a reused connection.
func start(t *testing.T) (*hub, *Client) {
	t.Helper()
	h := newHub(t, &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)})
	t.Cleanup(func() { h.must(h.Close()) })
	return h, h.newClient(Config{Transport: &http.Transport{DisableKeepAlives: true}, Now: h.clock.Now, Sleep: h.clock.Sleep})
}

// bubble runs a test in virtual time with a hub in the same process, whose answers take 100 ms, and a client. The server
// starts outside the bubble, because it listens. It is closed inside, where its requests were made.
func bubble(t *testing.T, test func(t *testing.T, h *hub, c *Client)) {
	t.Helper()
	h := newHub(t, nil)
	synctest.Test(t, func(t *testing.T) {
		h.t = t
		t.Cleanup(func() { h.must(h.Close()) })
		test(t, h, h.node())
	})
}

// node returns another client in the bubble.
func (h *hub) node() *Client {
	h.t.Helper()
	return h.newClient(Config{Transport: inside{h.Server, func() time.Duration { return 50 * time.Millisecond }}})
}

func (h *hub) newClient(c Config) *Client {
	h.t.Helper()
	c.WebURL, c.APIURL, c.AppID, c.PrivateKey, c.UserAgent = h.WebURL(), h.APIURL(), testApp, h.PrivateKeyPEM(), "pawl-test"
	client, err := New(c)
	h.must(err)
	client.maxWait = 90 * time.Second
	return client
}

// token lets a client get the repository's token, so that later requests need not.
func (h *hub) token(c *Client) {
	h.t.Helper()
	_, err := c.Apps.Token(h.t.Context(), h.repo)
	h.must(err)
}

// fail makes the next requests to a route fail, each with the next fault.
func (h *hub) fail(route string, faults ...fault) {
	for _, f := range faults {
		f.Route = route
		h.Inject(f)
	}
}

// seen is a request that the hub received.
type seen struct{ body map[string]any }

// calls returns the requests to a route, in order.
func (h *hub) calls(route string) (list []seen) {
	for _, r := range h.Requests() {
		if route == r.Route || route == r.Method+" "+r.Path {
			var s seen
			_ = json.Unmarshal([]byte(r.Body), &s.body) // a GET has none
			list = append(list, s)
		}
	}
	return list
}

// tokens counts the requested tokens.
func (h *hub) tokens() int { return len(h.calls(mintRoute)) }

func (h *hub) comments() []fakegithub.Comment { return h.Comments(fullName, 1) }

func (h *hub) checks() []fakegithub.CheckRun { return h.CheckRuns(fullName) }

func (h *hub) pulls() []fakegithub.Issue { return h.Pulls(fullName) }

// branch pushes a commit to main and one to pawl/issue-1, and returns the latter.
func (h *hub) branch() string {
	h.t.Helper()
	h.push("main", "a\n")
	return h.push("pawl/issue-1", "b\n")
}

func (h *hub) push(branch, text string) string {
	h.t.Helper()
	sha, err := h.PushCommit(h.t.Context(), fullName, "ann", fakegithub.Commit{Branch: branch, Message: "Change", Files: map[string]string{"a.txt": text}})
	h.must(err)
	return sha
}

// madeCheck is a check run with its commit.
type madeCheck struct {
	CheckRunRef
	HeadSHA string
}

// checkRun lets another client of the App make a check run, so that calls does not show its requests.
func (h *hub) checkRun() madeCheck {
	h.t.Helper()
	c := h.newClient(Config{Transport: inside{h.Server, func() time.Duration { return 0 }}})
	sha := h.branch()
	run, err := c.Checks.Create(h.t.Context(), h.repo, CheckRun{Name: "pawl", HeadSHA: sha, Status: "in_progress", Output: Output{Title: "T", Summary: "S"}})
	h.must(err)
	h.ResetCalls()
	return madeCheck{run, sha}
}

// comment writes a comment as a user.
func (h *hub) comment(as, body string) int64 {
	h.t.Helper()
	id, err := h.Comment(fullName, 1, as, body)
	h.must(err)
	return id
}

// fault describes how one request fails.
type fault = fakegithub.Fault

// status answers with a fixed status and body.
func status(code int, body string, headers ...string) fault {
	return fault{Answer: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}}
}

// message refuses as GitHub does.
func message(code int, text string, headers ...string) fault {
	f := fault{Status: code, Message: text, Header: http.Header{}}
	for i := 0; i+1 < len(headers); i += 2 {
		f.Header.Set(headers[i], headers[i+1])
	}
	return f
}

var (
	// abortBefore closes the connection without doing the work.
	abortBefore = fault{AbortBefore: true}
	// abortAfter does the work and loses the answer.
	abortAfter = fault{AbortAfter: true}
	// badGatewayAfter does the work and answers 502.
	badGatewayAfter = fault{Answer: func(w http.ResponseWriter, r *http.Request, github http.Handler) {
		github.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusBadGateway)
	}}
	// cutAfter does the work and sends half of the answer.
	cutAfter = fault{Answer: func(w http.ResponseWriter, r *http.Request, github http.Handler) {
		rec := httptest.NewRecorder()
		github.ServeHTTP(rec, r)
		w.Header().Set("Content-Length", strconv.Itoa(rec.Body.Len()))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
		panic(http.ErrAbortHandler)
	}}
)

// clock moves only in Sleep and move.
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

// move moves the clock forward or back.
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

// counted reads one of the client's counters by its label values.
func (c *Client) counted(t *testing.T, name string) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c.Metrics()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if f.GetName() == name {
				got[strings.Join(labels, " ")] = m.GetCounter().GetValue()
			}
		}
	}
	return got
}
