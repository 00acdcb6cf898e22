package fakegithub_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"
)

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

func (h *house) signed(claims jwt.MapClaims) string {
	key, err := jwt.ParseRSAPrivateKeyFromPEM(h.PrivateKeyPEM())
	must(h.t, err)
	text, err := jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(key)
	must(h.t, err)
	return text
}

func TestAppAuthenticatesWithAJWT(t *testing.T) {
	h := newHouse(t)
	app, _, err := h.app.Apps.Get(h.ctx, "")
	must(t, err)
	if app.GetID() != 7 || app.GetSlug() != "pawl" {
		t.Fatalf("got app %d %q", app.GetID(), app.GetSlug())
	}
	id, err := h.InstallationID(repo)
	must(t, err)
	all, _, err := h.app.Apps.ListInstallations(h.ctx, nil)
	must(t, err)
	if len(all) != 1 || all[0].GetID() != id || all[0].GetAccount().GetLogin() != "acme" {
		t.Fatalf("installations %v, of the repository %v", all, id)
	}
	bot, _, err := h.client.Users.Get(h.ctx, "pawl[bot]")
	must(t, err)
	if bot.GetType() != "Bot" || bot.GetID() == 0 {
		t.Fatalf("bot %v", bot)
	}
}

func TestBadJWTsAreRefused(t *testing.T) {
	h := newHouse(t)
	now := time.Now()
	for name, c := range map[string]struct {
		claims jwt.MapClaims
		status int
		want   string
	}{
		"good":              {jwt.MapClaims{"iss": "7", "iat": now.Unix(), "exp": now.Add(9 * time.Minute).Unix()}, 200, ""},
		"a number as iss":   {jwt.MapClaims{"iss": 7, "iat": now.Unix(), "exp": now.Add(9 * time.Minute).Unix()}, 200, ""},
		"longer than 10min": {jwt.MapClaims{"iss": "7", "iat": now.Unix(), "exp": now.Add(11 * time.Minute).Unix()}, 401, "too far in the future"},
		"expired":           {jwt.MapClaims{"iss": "7", "iat": now.Unix(), "exp": now.Add(-time.Minute).Unix()}, 401, "must be a numeric value"},
		"another app":       {jwt.MapClaims{"iss": "8", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}, 404, "Integration not found"},
		"no issuer":         {jwt.MapClaims{"iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}, 401, "issuer"},
		"from the future":   {jwt.MapClaims{"iss": "7", "iat": now.Add(5 * time.Minute).Unix(), "exp": now.Add(6 * time.Minute).Unix()}, 401, "Issued at"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := h.get("app", "Bearer "+h.signed(c.claims))
			if status != c.status || !strings.Contains(body, c.want) {
				t.Fatalf("got %d %s", status, body)
			}
		})
	}
	if status, body := h.get("app", "Bearer eyJub25zZW5zZQ.e30.x"); status != 401 || !strings.Contains(body, "could not be decoded") {
		t.Fatalf("garbage: %d %s", status, body)
	}
}

func (h *house) get(path, authorization string) (int, string) {
	h.t.Helper()
	status, _, body := h.do("GET", path, "", http.Header{"Authorization": {authorization}})
	return status, body
}

func TestTokensAreNarrowedExpireAndAreRevoked(t *testing.T) {
	var clock clock
	h := newHouse(t, clock.option)
	must(t, h.AddRepo(h.ctx, "acme/other", map[string]string{"a": "b"}))
	id, err := h.InstallationID(repo)
	must(t, err)
	tools, _, err := h.client.Repositories.Get(h.ctx, "acme", "tools")
	must(t, err)
	token, resp, err := h.app.Apps.CreateInstallationToken(h.ctx, id, &github.InstallationTokenOptions{
		RepositoryIDs: []int64{tools.GetID()}, Permissions: &github.InstallationPermissions{Contents: github.String("read")}})
	must(t, err)
	if resp.StatusCode != http.StatusCreated || !strings.HasPrefix(token.GetToken(), "ghs_") || len(token.Repositories) != 1 {
		t.Fatalf("status %d, token %v", resp.StatusCode, token)
	}
	if d := token.GetExpiresAt().Sub(clock.now()); d < 59*time.Minute || d > time.Hour {
		t.Fatalf("expires in %v", d)
	}
	auth := "Bearer " + token.GetToken()
	want := map[string]int{"repos/acme/tools": 200, "repos/acme/other": 404, "repos/acme/tools/pulls": 403}
	got := map[string]int{}
	for path := range want {
		got[path], _ = h.get(path, auth)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	_, _, err = h.app.Apps.CreateInstallationToken(h.ctx, id, &github.InstallationTokenOptions{Permissions: &github.InstallationPermissions{Workflows: github.String("write")}})
	wantStatus(t, err, 422, "not granted")
	_, _, err = h.app.Apps.CreateInstallationToken(h.ctx, id, &github.InstallationTokenOptions{RepositoryIDs: []int64{1}})
	wantStatus(t, err, 422, "does not exist or is not accessible")

	fresh := "Bearer " + h.installationToken()
	h.RevokeTokens()
	if status, body := h.get("repos/acme/tools", fresh); status != 401 || !strings.Contains(body, "Bad credentials") {
		t.Fatalf("revoked: %d %s", status, body)
	}
	fresh = "Bearer " + h.installationToken()
	clock.advance(time.Hour)
	if status, _ := h.get("repos/acme/tools", fresh); status != 401 {
		t.Fatalf("expired: %d", status)
	}
}

func TestUsersSeeWhatTheirRoleAllows(t *testing.T) {
	h := newHouse(t)
	for login, want := range map[string]string{"wendy": "write", "rita": "read", "noone": "none"} {
		level, _, err := h.client.Repositories.GetPermissionLevel(h.ctx, "acme", "tools", login)
		must(t, err)
		if level.GetPermission() != want {
			t.Errorf("%s has %s, want %s", login, level.GetPermission(), want)
		}
	}
	_, _, err := h.client.Repositories.GetPermissionLevel(h.ctx, "acme", "tools", "pawl[bot]")
	wantStatus(t, err, 404, "is not a user")
	_, _, err = h.userClient("noone").Repositories.Get(h.ctx, "acme", "tools")
	wantStatus(t, err, 404, "Not Found")
	_, _, err = h.userClient("wendy").Checks.CreateCheckRun(h.ctx, "acme", "tools", github.CreateCheckRunOptions{Name: "x", HeadSHA: h.Branches(repo)["main"]})
	wantStatus(t, err, 403, "You must authenticate via a GitHub App.")
}

func TestSuspensionAndRemovalEndAccess(t *testing.T) {
	h := newHouse(t)
	token := "Bearer " + h.installationToken()
	must(t, h.Suspend(repo))
	if status, body := h.get("repos/acme/tools", token); status != 403 || !strings.Contains(body, "suspended") {
		t.Fatalf("suspended: %d %s", status, body)
	}
	must(t, h.Unsuspend(repo))
	if status, body := h.get("repos/acme/tools", token); status != 200 {
		t.Fatalf("no longer suspended: %d %s", status, body)
	}
	must(t, h.Uninstall(repo))
	if status, _ := h.get("repos/acme/tools", token); status != 401 {
		t.Fatalf("uninstalled: %d", status)
	}
	var actions []string
	for _, k := range h.settled("installation") {
		actions = append(actions, k.action())
	}
	if diff := cmp.Diff([]string{"created", "suspend", "unsuspend", "deleted"}, actions); diff != "" {
		t.Fatal(diff)
	}
}
