package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/pawlbot/pawl/internal/web"
)

// people sets these permission levels. All other levels are none.
func people(levels map[string]string) func(*web.Options) {
	return func(o *web.Options) {
		o.Access.Operators = []string{"Ada"}
		o.Access.OAuth = &oauth2.Config{ClientID: "Iv1.x", RedirectURL: "https://pawl.example/login/callback", Endpoint: oauth2.Endpoint{AuthURL: "https://github.example/login/oauth/authorize"}}
		o.Access.Permission = func(_ context.Context, repo string, by web.User) (string, error) {
			if level := levels[by.Login+" "+repo]; level != "" {
				return level, nil
			}
			return "none", nil
		}
	}
}

func TestPagesShowNothingBeforeSignIn(t *testing.T) {
	s := open(t, people(nil))
	s.solved()
	s.cookie = nil
	for _, path := range []string{"/", "/threads/acme/widgets/7", "/threads/acme/other/1", "/metrics", "/?q=1"} {
		answer, body := s.get(path)
		if answer.StatusCode != http.StatusUnauthorized || strings.Contains(body, "acme") && !strings.Contains(path, "acme") || !strings.Contains(body, "/login/github?next="+url.QueryEscape(path)) {
			t.Errorf("%s: %s\n%s", path, answer.Status, body)
		}
	}
	if answer, body := s.get("/readyz"); answer.StatusCode != http.StatusOK || strings.Contains(body, "detail\"") || strings.Contains(body, "signal") {
		t.Errorf("/readyz shows a stranger more than that the server is ready: %s %s", answer.Status, body)
	}
	if answer, body := s.sendPublic("GET", "/"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("the webhook's listener serves pages: %s %s", answer.Status, body)
	}
}
