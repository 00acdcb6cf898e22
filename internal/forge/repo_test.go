package forge

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// byID is the repository's address by id, which a rename does not change.
func (h *hub) byID() string { return fmt.Sprintf("%srepositories/%d", h.APIURL(), h.repo.ID) }

func TestWriteToRenamedRepositoryReturnsItsNewName(t *testing.T) {
	h, c := start(t)
	h.must(h.RenameRepo(fullName, "world"))
	for _, code := range []int{301, 307, 308} {
		if code != http.StatusTemporaryRedirect { // the fake GitHub answers 307 itself
			h.fail(commentRoute, status(code, `{"message":"Moved Permanently"}`, "Location", h.byID()+"/issues/1/comments"))
		}
		_, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- m -->")
		var to *Moved
		if !errors.As(err, &to) || to.To != "octo/world" || len(h.Comments("octo/world", 1)) != 0 {
			t.Errorf("%d: err = %v", code, err)
		}
	}
}

func TestReadFollowsARename(t *testing.T) {
	h, c := start(t)
	h.must(h.RenameRepo(fullName, "world"))
	info, err := c.Repositories.Get(t.Context(), h.repo)
	want := RepoInfo{ID: h.repo.ID, FullName: "octo/world", DefaultBranch: "main"}
	if diff := cmp.Diff(want, info); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestATokenDoesNotFollowARedirectToAnotherHost(t *testing.T) {
	h, c := start(t)
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	h.fail(issueRoute, status(302, `{}`, "Location", other.URL+"/repos/octo/hello/issues/1"))
	_, err := c.Issues.Get(t.Context(), h.repo, 1)
	if !errors.Is(err, ErrUnavailable) || reached {
		t.Errorf("reached the other host: %v; err = %v", reached, err)
	}
}

func TestForeignRedirectIsUnavailable(t *testing.T) {
	for _, to := range []string{"https://login.example.com/sso?next=1", "/maintenance", "", "://"} {
		for _, route := range []string{commentRoute, mintRoute, "GET /app"} {
			for _, code := range []int{302, 303, 307} {
				h, c := start(t)
				h.fail(route, status(code, "", "Location", to), status(code, "", "Location", to))
				var err error
				if route == "GET /app" {
					_, err = c.Apps.Get(t.Context())
				} else {
					_, err = c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- m -->")
				}
				var moved *Moved
				ends := errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrUninstalled)
				if err == nil || errors.As(err, &moved) || ends {
					t.Errorf("%s answered %d to %q: %v", route, code, to, err)
				}
			}
		}
	}
}

func TestTransferredIssueIsMoved(t *testing.T) {
	h, c := start(t)
	h.fail(commentRoute, status(301, "{}", "Location", h.APIURL()+"repositories/78/issues/9/comments"))
	var moved *Moved
	if _, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- m -->"); !errors.As(err, &moved) || !strings.Contains(moved.To, "/repositories/78/") {
		t.Errorf("err = %v", err)
	}
}

func TestPermissionIsReadFromTheRoleAndFailsClosed(t *testing.T) {
	h, c := start(t)
	h.fail("GET /repos/octo/hello/collaborators/bob/permission", status(http.StatusOK, `{"permission": "read", "role_name": "security-reader"}`))
	for login, want := range map[string]string{"ann": "maintain", "bob": "read", "ghost": "none"} {
		if got, err := c.Repositories.Permission(t.Context(), h.repo, login); got != want || err != nil {
			t.Errorf("%s has %q, %v; want %q", login, got, err, want)
		}
	}
	h.fail("GET /repos/octo/hello/collaborators/ann/permission", message(403, "Resource not accessible by integration"))
	if got, err := c.Repositories.Permission(t.Context(), h.repo, "ann"); got != "none" || !errors.Is(err, ErrForbidden) {
		t.Errorf("%q, %v", got, err)
	}
	got, err := c.Repositories.Permission(t.Context(), h.repo, "../../octo/hello")
	asked := h.Requests()
	if route := asked[len(asked)-1].Route; got != "none" || route != "GET /repos/{owner}/{repo}/collaborators/{login}/permission" {
		t.Errorf("a login that leaves its path has %q, %v, and %s was asked", got, err, route)
	}
}

func TestMissingPermissionIsRetriedForLag(t *testing.T) {
	const route, repo = "GET /repos/octo/hello/collaborators/ann/permission", "GET /repos/{owner}/{repo}"
	lag := message(404, "Not Found")
	for _, tt := range []struct {
		name  string
		lags  int
		gone  bool
		want  string
		kind  error
		asked int
	}{
		{"once", 1, false, "maintain", nil, 2},
		{"always, in an existing repository", 3, false, "none", nil, 3},
		{"always, in a deleted repository", 3, true, "none", ErrUninstalled, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, c := start(t)
			for range tt.lags {
				h.fail(route, lag)
			}
			if tt.gone {
				h.fail(repo, lag)
			}
			got, err := c.Repositories.Permission(t.Context(), h.repo, "ann")
			if got != tt.want || !errors.Is(err, tt.kind) {
				t.Errorf("%q, %v; want %q and %v", got, err, tt.want, tt.kind)
			}
			asked := len(h.calls("GET /repos/{owner}/{repo}/collaborators/{login}/permission"))
			if asked != tt.asked {
				t.Errorf("asked %d times, want %d", asked, tt.asked)
			}
		})
	}
}

func TestRefusalHasAHint(t *testing.T) {
	for _, tt := range []struct {
		refused fault
		kind    error
		hint    string
	}{
		{message(403, "Although you appear to have the correct authorization credentials, the `acme` organization has an IP allow list enabled, and your IP address is not permitted to access this resource."), ErrUnavailable, "let this server's address into the organization's IP allow list"},
		{message(403, "Resource protected by organization SAML enforcement. You must grant your OAuth token access to this organization."), ErrUnavailable, "single sign-on"},
		{message(403, "Resource not accessible by integration", "X-Accepted-GitHub-Permissions", "issues=write; pull_requests=write"), ErrForbidden, "lacks a permission (issues=write; pull_requests=write)"},
		{message(403, "Resource not accessible by integration"), ErrForbidden, "compare the App's permissions with app.yml"},
		{message(403, "This installation has been suspended"), ErrUninstalled, "unsuspend it"},
		{message(403, "Sorry. Your account was suspended."), ErrUninstalled, "GitHub suspended the account"},
		{message(403, "Repository was archived so is read-only."), ErrForbidden, "unarchive it"},
		{message(403, "Unable to create comment because issue is locked."), ErrForbidden, "unlock it"},
		{message(403, "Repository access blocked"), ErrForbidden, "GitHub blocked this repository"},
		{message(451, "Repository unavailable due to DMCA takedown."), ErrForbidden, "GitHub blocked this repository"},
		{status(403, `{"message":"Sorry.","block":{"reason":"tos"}}`), ErrForbidden, "GitHub blocked this repository"},
		{message(403, "The push was blocked by a rule."), ErrForbidden, "compare the App's permissions with app.yml"},
		{message(403, "Workflows of suspended users cannot run."), ErrForbidden, "compare the App's permissions with app.yml"},
		{message(403, "Branch upgrade to-archived is unlocked."), ErrForbidden, "compare the App's permissions with app.yml"},
		{message(404, "Not Found"), ErrNotFound, "exists under this name and that the App is installed"},
	} {
		h, c := start(t)
		h.fail(issueRoute, tt.refused)
		_, err := c.Issues.Get(t.Context(), h.repo, 1)
		if !errors.Is(err, tt.kind) || !strings.Contains(fmt.Sprint(err), tt.hint) {
			t.Errorf("%v; want %v with %q", err, tt.kind, tt.hint)
		}
	}
}

func TestNamesCannotChangeThePath(t *testing.T) {
	h, c := start(t)
	for _, name := range []string{"..", ".", "", "a/b", "a?b", "a b", "a%2f", strings.Repeat("a", 101)} {
		for _, repo := range []Repo{{Owner: "octo", Name: name, Installation: h.repo.Installation}, {Owner: name, Name: "hello", Installation: h.repo.Installation}} {
			if _, err := c.Issues.Get(t.Context(), repo, 3); err == nil {
				t.Errorf("%q was accepted", repo.FullName())
			}
		}
	}
	if len(h.Requests()) != 0 {
		t.Errorf("%d requests were sent", len(h.Requests()))
	}
}

// bot is the id of the App's bot user.
func (h *hub) bot() int64 {
	h.t.Helper()
	resp, err := http.Get(h.APIURL() + "users/pawl%5Bbot%5D")
	h.must(err)
	defer resp.Body.Close()
	var user struct{ ID int64 }
	h.must(json.NewDecoder(resp.Body).Decode(&user))
	h.ResetCalls()
	return user.ID
}

func TestAppIdentityIsRead(t *testing.T) {
	h, c := start(t)
	want := App{
		ID: testApp, Slug: "pawl", BotID: h.bot(), BotLogin: "pawl[bot]", Installations: 1,
		Permissions: map[string]string{"actions": "read", "checks": "write", "contents": "write", "issues": "write", "pull_requests": "write", "metadata": "read"},
		Events: []string{"check_run", "create", "delete", "issue_comment", "issues", "pull_request", "pull_request_review",
			"pull_request_review_comment", "push", "repository"},
	}
	for range 2 {
		app, err := c.Apps.Get(t.Context())
		if diff := cmp.Diff(want, app); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}
	if len(h.Requests()) != 2 {
		t.Errorf("%d requests, want 2", len(h.Requests()))
	}
}

func TestBotLookUpUsesATokenIfAnonymousIsRefused(t *testing.T) {
	for name, refusal := range map[string]fault{
		"private mode":       message(401, "Must authenticate to access this API."),
		"hidden":             message(404, "Not Found"),
		"rate limit used up": message(403, "API rate limit exceeded for 192.0.2.1.", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1900000000"),
	} {
		t.Run(name, func(t *testing.T) {
			h, c := start(t)
			h.must(h.Suspend(fullName))
			h.must(h.AddRepo(t.Context(), "other/hello", nil))
			bot := h.bot()
			h.fail(userRoute, refusal)
			app, err := c.Apps.Get(t.Context())
			if err != nil || app.BotID != bot {
				t.Fatalf("%+v, %v", app, err)
			}
			if got := h.calls(mintRoute)[0].body; !cmp.Equal(got, map[string]any{"permissions": map[string]any{"metadata": "read"}}) {
				t.Errorf("token asked for %v", got)
			}
		})
	}
}

func TestOwnCommentsAreFoundWithoutABotUser(t *testing.T) {
	h, c := start(t)
	missing := message(404, "Not Found")
	h.fail(userRoute, missing, missing)
	app, err := c.Apps.Get(t.Context())
	if err != nil || app.BotID != 0 || app.BotLogin != "pawl[bot]" {
		t.Fatalf("%+v, %v", app, err)
	}
	h.must(h.AddBot("other[bot]", 901))
	h.comment("other[bot]", "<!-- m -->")
	own := h.comment("pawl[bot]", "<!-- m -->")
	if found, ok, err := c.Issues.FindComment(t.Context(), h.repo, 1, "<!-- m -->"); err != nil || !ok || found.ID != own {
		t.Errorf("%+v, %t, %v", found, ok, err)
	}
}

// Whatever GitHub answers about the App itself, the error must not end a thread.
func TestRefusedAppLookUpEndsNoRun(t *testing.T) {
	users := userRoute
	for _, tt := range []struct {
		name   string
		faults map[string]fault
		kind   error
	}{
		{"an App that GitHub does not know", map[string]fault{"GET /app": message(404, "Integration not found")}, ErrUnauthorized},
		{"an App that is forbidden", map[string]fault{"GET /app": message(403, "Sorry. Your account was suspended.")}, ErrUnauthorized},
		{"a user that is forbidden", map[string]fault{users: message(403, "Resource not accessible by integration")}, ErrUnavailable},
		{"a deleted installation", map[string]fault{users: message(404, "Not Found"), mintRoute: message(404, "Not Found")}, ErrUnavailable},
	} {
		h, c := start(t)
		for route, f := range tt.faults {
			h.fail(route, f, f)
		}
		_, err := c.Apps.Get(t.Context())
		if !errors.Is(err, tt.kind) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrUninstalled) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestBadKeyIsReportedNotShown(t *testing.T) {
	good := Config{WebURL: "https://github.com", APIURL: "https://api.github.com", AppID: 1, PrivateKey: testKey()}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	bad := good
	bad.PrivateKey = []byte("-----BEGIN RSA PRIVATE KEY-----\nsecret\n")
	if _, err := New(bad); err == nil || !strings.Contains(err.Error(), "github.app.private_key") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestCloneURLHasNoCredentials(t *testing.T) {
	c, err := New(Config{WebURL: "https://ghe.example/", APIURL: "https://ghe.example/api/v3", AppID: 1, PrivateKey: testKey()})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.CloneURL(Repo{Owner: "octo", Name: "hello"}); got != "https://ghe.example/octo/hello.git" {
		t.Error(got)
	}
}

var testKey = sync.OnceValue(func() []byte {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
})
