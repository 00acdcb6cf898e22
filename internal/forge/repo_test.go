package forge

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAWriteToARenamedRepositorySaysTheNewName(t *testing.T) {
	h, c := start(t)
	old := Repo{Owner: "octo", Name: "old", ID: 77, Installation: 5}
	for _, code := range []int{301, 307, 308} {
		moved := status(code, `{"message":"Moved Permanently"}`, "Location", h.URL+"/repositories/77")
		h.fail("POST /repos/octo/old/issues/3/comments", moved)
		h.fail("GET /repos/octo/old", moved)
		_, err := c.CreateComment(t.Context(), old, 3, "hello", "<!-- m -->")
		var to *Moved
		if !errors.As(err, &to) || to.To != "octo/hello" || len(h.comments) != 0 {
			t.Errorf("%d: err = %v", code, err)
		}
	}
}

func TestAReadOfARenamedRepositoryFollows(t *testing.T) {
	h, c := start(t)
	h.fail("GET /repos/octo/old", status(301, `{}`, "Location", h.URL+"/repositories/77"))
	info, err := c.RepoInfo(t.Context(), Repo{Owner: "octo", Name: "old", ID: 77, Installation: 5})
	want := RepoInfo{ID: 77, FullName: "octo/hello", DefaultBranch: "main"}
	if diff := cmp.Diff(want, info); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestATokenDoesNotFollowARedirectToAnotherHost(t *testing.T) {
	h, c := start(t)
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	h.fail(issueRoute, status(302, `{}`, "Location", other.URL+"/repos/octo/hello/issues/3"))
	_, err := c.Issue(t.Context(), testRepo, 3)
	if !errors.Is(err, ErrUnavailable) || reached {
		t.Errorf("reached the other host: %v; err = %v", reached, err)
	}
}

func TestARedirectThatIsNotGitHubsEndsNothing(t *testing.T) {
	for _, to := range []string{"https://login.example.com/sso?next=1", "/maintenance", "", "://"} {
		for _, route := range []string{commentRoute, mintRoute, "GET /app"} {
			for _, code := range []int{302, 303, 307} {
				h, c := start(t)
				h.fail(route, status(code, "", "Location", to), status(code, "", "Location", to))
				var err error
				if route == "GET /app" {
					_, err = c.App(t.Context())
				} else {
					_, err = c.CreateComment(t.Context(), testRepo, 3, "hello", "<!-- m -->")
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

func TestAnIssueThatWasTransferredIsElsewhere(t *testing.T) {
	h, c := start(t)
	h.fail(commentRoute, status(301, "{}", "Location", h.URL+"/repositories/78/issues/9/comments"))
	var moved *Moved
	if _, err := c.CreateComment(t.Context(), testRepo, 3, "hello", "<!-- m -->"); !errors.As(err, &moved) || !strings.Contains(moved.To, "/repositories/78/") {
		t.Errorf("err = %v", err)
	}
}

func TestPermissionIsReadFromTheRoleAndFailsClosed(t *testing.T) {
	h, c := start(t)
	for login, want := range map[string]string{"ann": "maintain", "bob": "read", "ghost": "none"} {
		if got, err := c.Permission(t.Context(), testRepo, login); got != want || err != nil {
			t.Errorf("%s has %q, %v; want %q", login, got, err, want)
		}
	}
	h.fail("GET /repos/octo/hello/collaborators/ann/permission", message(403, "Resource not accessible by integration"))
	if got, err := c.Permission(t.Context(), testRepo, "ann"); got != "none" || !errors.Is(err, ErrForbidden) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := c.Permission(t.Context(), testRepo, "../../octo/hello"); got != "none" || err == nil {
		t.Errorf("a login that leaves its path has %q, %v", got, err)
	}
}

func TestNamesThatLeaveTheirPathAreRefused(t *testing.T) {
	h, c := start(t)
	for _, name := range []string{"..", ".", "", "a/b", "a?b", "a b", "a%2f", strings.Repeat("a", 101)} {
		for _, repo := range []Repo{{Owner: "octo", Name: name, Installation: 5}, {Owner: name, Name: "hello", Installation: 5}} {
			if _, err := c.Issue(t.Context(), repo, 3); err == nil {
				t.Errorf("%q was accepted", repo.FullName())
			}
		}
	}
	if len(h.seen) != 0 {
		t.Errorf("%d requests were sent", len(h.seen))
	}
}

func TestTheAppKnowsItself(t *testing.T) {
	h, c := start(t)
	want := App{
		ID: testApp, Slug: "pawl", Name: "Pawl", Permissions: map[string]string{"checks": "write", "metadata": "read"},
		Events: []string{"issues"}, BotID: 900, BotLogin: "pawl[bot]",
	}
	for range 2 {
		app, err := c.App(t.Context())
		if diff := cmp.Diff(want, app); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}
	if len(h.seen) != 2 {
		t.Errorf("%d requests, want 2", len(h.seen))
	}
}

func TestTheBotUserIsLookedUpWithATokenWhereAnonymousReadsAreRefused(t *testing.T) {
	for name, refusal := range map[string]fault{
		"private mode": message(401, "Must authenticate to access this API."),
		"hidden":       message(404, "Not Found"),
		"used up":      message(403, "API rate limit exceeded for 192.0.2.1.", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1900000000"),
	} {
		t.Run(name, func(t *testing.T) {
			h, c := start(t)
			h.fail("GET /users/pawl[bot]", refusal)
			app, err := c.App(t.Context())
			if err != nil || app.BotID != 900 {
				t.Fatalf("%+v, %v", app, err)
			}
			if got := h.calls(mintRoute)[0].body; !cmp.Equal(got, map[string]any{"permissions": map[string]any{"metadata": "read"}}) {
				t.Errorf("token asked for %v", got)
			}
		})
	}
}

func TestAServerWithoutBotUsersStillKnowsWhatTheAppWrote(t *testing.T) {
	h, c := start(t)
	missing := message(404, "Not Found")
	h.fail("GET /users/pawl[bot]", missing, missing)
	app, err := c.App(t.Context())
	if err != nil || app.BotID != 0 || app.BotLogin != "pawl[bot]" {
		t.Fatalf("%+v, %v", app, err)
	}
	h.comments = append(h.comments,
		map[string]any{"id": 1, "body": "<!-- m -->", "user": map[string]any{"id": 31, "login": "other[bot]", "type": "Bot"}},
		map[string]any{"id": 2, "body": "<!-- m -->", "user": map[string]any{"id": 32, "login": "pawl[bot]", "type": "Bot"}})
	if found, ok, err := c.FindComment(t.Context(), testRepo, 3, "<!-- m -->", app.BotID); err != nil || !ok || found.ID != 2 {
		t.Errorf("%+v, %t, %v", found, ok, err)
	}
}

// Whatever GitHub answers, no thread is at fault.
func TestARefusalToSayWhoTheAppIsEndsNoRun(t *testing.T) {
	users := "GET /users/pawl[bot]"
	for _, tt := range []struct {
		name   string
		faults map[string]fault
		kind   error
	}{
		{"an App that GitHub does not know", map[string]fault{"GET /app": message(404, "Integration not found")}, ErrUnauthorized},
		{"an App that is forbidden", map[string]fault{"GET /app": message(403, "Sorry. Your account was suspended.")}, ErrUnauthorized},
		{"a user that is forbidden", map[string]fault{users: message(403, "Resource not accessible by integration")}, ErrUnavailable},
		{"an installation that is gone", map[string]fault{users: message(404, "Not Found"), mintRoute: message(404, "Not Found")}, ErrUnavailable},
	} {
		h, c := start(t)
		for route, f := range tt.faults {
			h.fail(route, f, f)
		}
		_, err := c.App(t.Context())
		if !errors.Is(err, tt.kind) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrUninstalled) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestABadSettingIsNamed(t *testing.T) {
	good := Config{WebURL: "https://github.com", APIURL: "https://api.github.com", AppID: 1, PrivateKey: testKey()}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Config){
		"github.web_url":            func(c *Config) { c.WebURL = "github.com" },
		"github.v3_api_url":         func(c *Config) { c.APIURL = "https://user:secret@api.github.com" },
		"github.app.integration_id": func(c *Config) { c.AppID = 0 },
		"github.app.private_key":    func(c *Config) { c.PrivateKey = []byte("-----BEGIN RSA PRIVATE KEY-----\nsecret\n") },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

func TestACloneAddressHoldsNoCredential(t *testing.T) {
	c, err := New(Config{WebURL: "https://ghe.example/", APIURL: "https://ghe.example/api/v3", AppID: 1, PrivateKey: testKey()})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.CloneURL(testRepo); got != "https://ghe.example/octo/hello.git" {
		t.Error(got)
	}
}
