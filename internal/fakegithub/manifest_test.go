package fakegithub_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// submits sends a manifest as a browser does, and returns GitHub's status and redirect.
func submits(t *testing.T, gh *fakegithub.Server, path, manifest string) (status int, back *url.URL) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.PostForm(gh.WebURL()+path, url.Values{"manifest": {manifest}})
	must(t, err)
	resp.Body.Close()
	back, err = url.Parse(resp.Header.Get("Location"))
	must(t, err)
	return resp.StatusCode, back
}

func TestManifestIsConvertedOnceWithinAnHour(t *testing.T) {
	now := time.Now()
	gh, err := fakegithub.New(fakegithub.Options{WebhookSecret: "a secret", Now: func() time.Time { return now }})
	must(t, err)
	t.Cleanup(func() { gh.Close() })
	const manifest = `{"name": "n", "url": "https://a.example", "hook_attributes": {"url": "https://a.example/hook"}, "redirect_url": "http://127.0.0.1:1/back?x=y",
		"default_events": ["push"], "default_permissions": {"checks": "write"}}`
	status, back := submits(t, gh, "/organizations/acme/settings/apps/new?state=s1", manifest)
	if status != http.StatusFound || back.Host != "127.0.0.1:1" || back.Query().Get("state") != "s1" || back.Query().Get("x") != "y" {
		t.Fatalf("%d to %s", status, back)
	}
	convert := func(code string) (int, []byte) {
		resp, raw := (&house{t: t, Server: gh, ctx: t.Context()}).wire(http.DefaultClient, "POST", "/app-manifests/"+code+"/conversions", "")
		return resp.StatusCode, raw
	}
	code := back.Query().Get("code")
	status, raw := convert(code)
	if status != http.StatusCreated || !strings.Contains(string(raw), `"webhook_secret":"a secret"`) || !strings.Contains(string(raw), "PRIVATE KEY") {
		t.Fatalf("%d %s", status, raw)
	}
	for _, problem := range readShapes(t).check("body", decodeExactly(t, raw), "app-from-manifest") {
		t.Error(problem)
	}
	if status, _ := convert(code); status != http.StatusNotFound {
		t.Errorf("the second conversion: %d, want 404", status)
	}
	_, back = submits(t, gh, "/settings/apps/new", manifest)
	now = now.Add(time.Hour + time.Second)
	if status, _ := convert(back.Query().Get("code")); status != http.StatusNotFound {
		t.Errorf("a conversion after an hour: %d, want 404", status)
	}
	if status, _ := submits(t, gh, "/settings/apps/new", `{"name": "n"}`); status != http.StatusUnprocessableEntity {
		t.Errorf("a manifest without the required fields: %d, want 422", status)
	}
	if got := gh.Manifests(); len(got) != 2 || got[0].Org != "acme" || got[0].Hook.URL != "https://a.example/hook" || got[1].Org != "" {
		t.Errorf("manifests: %+v", got)
	}
}
