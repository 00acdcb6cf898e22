package fakegithub_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// According to docs.github.com, a GitHub App's login code is valid once, for ten minutes, with its redirect_uri and
// verifier. The token belongs to the user.
func TestLoginGivesTheUsersToken(t *testing.T) {
	now := time.Now()
	gh, err := fakegithub.New(fakegithub.Options{Now: func() time.Time { return now }})
	must(t, err)
	t.Cleanup(func() { gh.Close() })
	must(t, gh.AddUser("ada", 1001, nil))
	const callback = "http://127.0.0.1:1/login/callback"
	gh.SetCallbacks(callback)
	id, secret := gh.OAuthClient()
	c := &oauth2.Config{ClientID: id, ClientSecret: secret, RedirectURL: callback, Endpoint: oauth2.Endpoint{
		AuthURL: gh.WebURL() + "/login/oauth/authorize", TokenURL: gh.WebURL() + "/login/oauth/access_token", AuthStyle: oauth2.AuthStyleInParams}}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	asks := func(address, login string) (int, *url.URL) {
		t.Helper()
		r, err := http.NewRequest(http.MethodGet, address, nil)
		must(t, err)
		if login != "" {
			r.AddCookie(&http.Cookie{Name: fakegithub.SignedInCookie, Value: login})
		}
		answer, err := client.Do(r)
		must(t, err)
		answer.Body.Close()
		back, err := url.Parse(answer.Header.Get("Location"))
		must(t, err)
		return answer.StatusCode, back
	}
	verifier := oauth2.GenerateVerifier()
	address := c.AuthCodeURL("a state", oauth2.S256ChallengeOption(verifier))
	if status, back := asks(address, ""); status != http.StatusFound || back.Path != "/login" {
		t.Errorf("not signed in: %d to %s", status, back)
	}
	other := *c
	other.RedirectURL = callback + "/../else"
	if status, back := asks(other.AuthCodeURL("s"), "ada"); status != http.StatusBadRequest || back.String() != "" {
		t.Errorf("another callback: %d to %s", status, back)
	}
	code := func() string {
		status, back := asks(address, "ada")
		if status != http.StatusFound || back.Host != "127.0.0.1:1" || back.Query().Get("state") != "a state" {
			t.Fatalf("%d to %s", status, back)
		}
		return back.Query().Get("code")
	}
	first := code()
	token, err := c.Exchange(t.Context(), first, oauth2.VerifierOption(verifier))
	if err != nil || token.RefreshToken == "" || token.Expiry.IsZero() {
		t.Fatalf("%+v, %v", token, err)
	}
	for name, code := range map[string]string{"again": first, "a guess": "x"} {
		if _, err := c.Exchange(t.Context(), code, oauth2.VerifierOption(verifier)); err == nil {
			t.Errorf("%s: a token", name)
		}
	}
	if _, err := c.Exchange(t.Context(), code(), oauth2.VerifierOption("another")); err == nil {
		t.Error("without the verifier: a token")
	}
	wrong := *c
	wrong.ClientSecret = "x"
	if _, err := wrong.Exchange(t.Context(), code(), oauth2.VerifierOption(verifier)); err == nil {
		t.Error("without the secret: a token")
	}
	late := code()
	now = now.Add(10*time.Minute + time.Second)
	if _, err := c.Exchange(t.Context(), late, oauth2.VerifierOption(verifier)); err == nil {
		t.Error("after ten minutes: a token")
	}
	var user struct{ Login string }
	answer, err := c.Client(t.Context(), token).Get(gh.APIURL() + "user")
	must(t, err)
	defer answer.Body.Close()
	if must(t, json.NewDecoder(answer.Body).Decode(&user)); user.Login != "ada" {
		t.Errorf("GET /user: %s %+v", answer.Status, user)
	}
	must(t, gh.Revoke("ada"))
	again, err := c.Client(t.Context(), token).Get(gh.APIURL() + "user")
	must(t, err)
	defer again.Body.Close()
	all := gh.Deliveries()
	if last := all[len(all)-1]; again.StatusCode != http.StatusUnauthorized || last.Event != "github_app_authorization" || last.Action != "revoked" || !strings.Contains(string(last.Payload), `"login":"ada"`) {
		t.Errorf("after she revoked: %s, %s %s %s", again.Status, last.Event, last.Action, last.Payload)
	}
}
