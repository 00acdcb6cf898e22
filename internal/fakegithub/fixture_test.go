package fakegithub_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

const (
	secret = "a secret for the tests"
	repo   = "acme/tools"
)

// house is a fake GitHub with one repository, three users and an App client.
type house struct {
	*fakegithub.Server
	t      *testing.T
	ctx    context.Context
	hooks  *receiver
	app    *github.Client // with a JWT
	client *github.Client // with an installation token
}

func newHouse(t *testing.T, change ...func(*fakegithub.Options)) *house {
	t.Helper()
	hooks := &receiver{t: t, status: http.StatusOK}
	target := httptest.NewServer(hooks)
	t.Cleanup(target.Close)
	opts := fakegithub.Options{AppID: 7, WebhookSecret: secret, WebhookURL: target.URL}
	for _, f := range change {
		f(&opts)
	}
	server, err := fakegithub.New(opts)
	must(t, err)
	t.Cleanup(func() { must(t, server.Close()) })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	h := &house{Server: server, t: t, ctx: ctx, hooks: hooks}
	must(t, h.AddRepo(ctx, repo, map[string]string{"README.md": "hello\n", "run.sh": "#!/bin/sh\ntrue\n", "src/a.go": "package a\n"}))
	must(t, h.AddUser("wendy", 101, map[string]string{repo: "write"}))
	must(t, h.AddUser("rita", 102, map[string]string{repo: "read"}))
	must(t, h.AddUser("noone", 103, nil))
	h.app = h.appClient()
	h.client = h.installationClient(nil)
	return h
}

func (h *house) appClient() *github.Client {
	transport, err := ghinstallation.NewAppsTransport(http.DefaultTransport, 7, h.PrivateKeyPEM())
	must(h.t, err)
	transport.BaseURL = strings.TrimSuffix(h.APIURL(), "/")
	return h.over(transport)
}

func (h *house) installationClient(permissions *github.InstallationPermissions) *github.Client {
	id, err := h.InstallationID(repo)
	must(h.t, err)
	transport, err := ghinstallation.New(http.DefaultTransport, 7, id, h.PrivateKeyPEM())
	must(h.t, err)
	transport.BaseURL = strings.TrimSuffix(h.APIURL(), "/")
	client := h.over(transport)
	if permissions != nil {
		token, _, err := h.appClient().Apps.CreateInstallationToken(h.ctx, id, &github.InstallationTokenOptions{Permissions: permissions})
		must(h.t, err)
		client = h.over(nil).WithAuthToken(token.GetToken())
		client.BaseURL, err = client.BaseURL.Parse(h.APIURL())
		must(h.t, err)
	}
	return client
}

func (h *house) userClient(login string) *github.Client {
	token, err := h.UserToken(login)
	must(h.t, err)
	client := h.over(nil).WithAuthToken(token)
	client.BaseURL, err = client.BaseURL.Parse(h.APIURL())
	must(h.t, err)
	return client
}

func (h *house) over(transport http.RoundTripper) *github.Client {
	client, err := github.NewClient(&http.Client{Transport: transport}).WithEnterpriseURLs(h.WebURL(), h.WebURL())
	must(h.t, err)
	return client
}

func (h *house) installationToken() string {
	id, err := h.InstallationID(repo)
	must(h.t, err)
	token, _, err := h.app.Apps.CreateInstallationToken(h.ctx, id, nil)
	must(h.t, err)
	return token.GetToken()
}

// settled waits for all deliveries and returns one event's; an empty event means all.
func (h *house) settled(event string) []hook {
	h.t.Helper()
	must(h.t, h.WaitDelivered(h.ctx))
	return h.hooks.of(event)
}

// hook is one delivery as it arrived.
type hook struct {
	event  string
	guid   string
	header http.Header
	raw    []byte
	body   map[string]any
}

func (k hook) action() string {
	action, _ := k.body["action"].(string)
	return action
}

// at reads a value deep inside the payload: at("issue", "user", "login").
func (k hook) at(path ...string) any {
	var v any = k.body
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

type receiver struct {
	t      *testing.T
	mu     sync.Mutex
	status int
	list   []hook
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil { // the server was closed in the middle of a delivery
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(raw)
	if got, want := r.Header.Get("X-Hub-Signature-256"), "sha256="+hex.EncodeToString(mac.Sum(nil)); got != want {
		rc.t.Errorf("signature %q, want %q", got, want)
	}
	k := hook{event: r.Header.Get("X-GitHub-Event"), guid: r.Header.Get("X-GitHub-Delivery"), header: r.Header, raw: raw}
	if err := json.Unmarshal(raw, &k.body); err != nil {
		rc.t.Error(err)
	}
	if _, err := github.ParseWebHook(k.event, raw); err != nil && k.event != "package" {
		rc.t.Errorf("go-github cannot read %s: %v", k.event, err)
	}
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.list = append(rc.list, k)
	w.WriteHeader(rc.status)
}

func (rc *receiver) of(event string) []hook {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	var out []hook
	for _, k := range rc.list {
		if event == "" || k.event == event {
			out = append(out, k)
		}
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantStatus checks that a go-github call was refused with this status and a message that contains text.
func wantStatus(t *testing.T, err error, status int, text string) {
	t.Helper()
	var got *http.Response
	switch e := err.(type) {
	case *github.ErrorResponse:
		got = e.Response
	case *github.RateLimitError:
		got = e.Response
	case *github.AbuseRateLimitError:
		got = e.Response
	default:
		t.Fatalf("got %v, want a refusal with status %d", err, status)
	}
	if got.StatusCode != status || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v, want status %d with %q", err, status, text)
	}
}

// git runs the real git against the server with a token as password.
func (h *house) git(dir, token string, args ...string) (string, error) {
	header := "http.extraHeader=Authorization: Basic " + basic("x-access-token", token)
	cmd := exec.CommandContext(h.ctx, "git", append([]string{"-c", header, "-c", "user.name=w", "-c", "user.email=w@example.com"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (h *house) clone(token string) string {
	h.t.Helper()
	dir := filepath.Join(h.t.TempDir(), "work")
	if out, err := h.git("", token, "clone", "-q", h.WebURL()+"/"+repo+".git", dir); err != nil {
		h.t.Fatalf("clone: %v: %s", err, out)
	}
	return dir
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
}

// clock is a time that the test moves.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time               { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *clock) advance(d time.Duration)      { c.offset.Add(int64(d)) }
func (c *clock) option(o *fakegithub.Options) { o.Now = c.now }
