package forge

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestAManifestIsConvertedOnce(t *testing.T) {
	gh, err := fakegithub.New(fakegithub.Options{AppID: testApp, WebhookSecret: "a webhook secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gh.Close() })
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.PostForm(gh.WebURL()+"/organizations/octo/settings/apps/new", url.Values{"manifest": {`{"url": "https://a.example",
		"hook_attributes": {"url": "https://a.example/hook"}, "redirect_url": "http://127.0.0.1:1/", "default_permissions": {"checks": "write"}}`}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	code := back.Query().Get("code")
	app, err := ConvertManifest(t.Context(), gh.APIURL(), "pawl-test", code)
	if err != nil || app.ID != testApp || app.Slug != "pawl" || app.Owner.Login != "octo" || app.WebhookSecret != "a webhook secret" || app.PrivateKey != string(gh.PrivateKeyPEM()) {
		t.Errorf("%+v, %v", app, err)
	}
	_, err = ConvertManifest(t.Context(), gh.APIURL(), "pawl-test", code)
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "used before or is older than an hour") {
		t.Errorf("the second time: %v", err)
	}
}

// An unused code is a credential, and it is part of the request's path.
func TestAFailedConversionNeverShowsTheCode(t *testing.T) {
	const code = "a180b1a3d263c81bc6441d7b990bae27d4c10679"
	asked := 0
	answers := map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"an empty answer":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) },
		"no App":              func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id": 0}`)) },
		"something else":      func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`<html>`)) },
		"a broken connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(answer)
			t.Cleanup(srv.Close)
			_, err := ConvertManifest(t.Context(), srv.URL, "pawl-test", code)
			if err == nil || strings.Contains(err.Error(), code) || !strings.Contains(err.Error(), "/app-manifests/{code}/conversions") {
				t.Errorf("%v", err)
			}
		})
	}
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer srv.Close()
	for _, bad := range []string{"", "../user", "a/b", "a?b", "a%2fb", strings.Repeat("a", 200)} {
		if _, err := ConvertManifest(t.Context(), srv.URL, "pawl-test", bad); err == nil || asked != 0 {
			t.Errorf("%q: %v after %d requests, want none", bad, err, asked)
		}
	}
}
