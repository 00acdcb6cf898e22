package forge

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestATokenIsNarrowedToOneRepositoryAndPawlsPermissions(t *testing.T) {
	h, c := start(t)
	h.token(c)
	want := map[string]any{
		"repository_ids": []any{float64(h.repo.ID)},
		"permissions":    map[string]any{"checks": "write", "contents": "write", "issues": "write", "pull_requests": "write", "metadata": "read"},
	}
	if diff := cmp.Diff(want, h.calls(mintRoute)[0].body); diff != "" {
		t.Error(diff)
	}
}

func TestARepositoryWithoutAnIDIsNamed(t *testing.T) {
	h, c := start(t)
	if _, err := c.Apps.Token(t.Context(), Repo{Owner: "octo", Name: "hello", Installation: h.repo.Installation}); err != nil {
		t.Fatal(err)
	}
	if got := h.calls(mintRoute)[0].body["repositories"]; !cmp.Equal(got, []any{"hello"}) {
		t.Errorf("repositories = %v", got)
	}
}

func TestConcurrentCallsShareATokenUntilFiveMinutesBeforeExpiry(t *testing.T) {
	h, c := start(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := c.Apps.Token(t.Context(), h.repo); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_ = h.clock.Sleep(t.Context(), 54*time.Minute)
	if _, err := c.Apps.Token(t.Context(), h.repo); err != nil || h.tokens() != 1 {
		t.Fatalf("tokens made: %d, %v; want 1", h.tokens(), err)
	}
	_ = h.clock.Sleep(t.Context(), time.Minute+time.Second)
	if _, err := c.Apps.Token(t.Context(), h.repo); err != nil || h.tokens() != 2 {
		t.Fatalf("tokens made: %d, %v; want 2", h.tokens(), err)
	}
}

func TestTwoRepositoriesNeverShareAToken(t *testing.T) {
	h, c := start(t)
	a, _ := c.Apps.Token(t.Context(), h.repo)
	h.must(h.AddRepo(t.Context(), "octo/other", nil))
	b, err := c.Apps.Token(t.Context(), h.installed("octo/other"))
	if err != nil || a == b {
		t.Fatalf("tokens %q and %q, %v", a, b, err)
	}
}

func TestARevokedTokenIsReplacedOnce(t *testing.T) {
	h, c := start(t)
	if _, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil {
		t.Fatal(err)
	}
	h.RevokeTokens()
	if _, err := c.Issues.CreateComment(t.Context(), h.repo, 1, "hello", "<!-- m -->"); err != nil {
		t.Fatal(err)
	}
	if h.tokens() != 2 || len(h.comments()) != 1 || len(h.clock.slept) != 0 {
		t.Errorf("tokens %d, comments %d, slept %v", h.tokens(), len(h.comments()), h.clock.slept)
	}
}

func TestASecondRefusalOfAFreshTokenIsAnError(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, message(401, "Bad credentials"), message(401, "Bad credentials"))
	_, err := c.Issues.Get(t.Context(), h.repo, 1)
	if !errors.Is(err, ErrUnauthorized) || !strings.Contains(err.Error(), "Bad credentials") {
		t.Errorf("err = %v", err)
	}
	if n := len(h.calls(issueRoute)); n != 2 || h.tokens() != 2 {
		t.Errorf("%d calls with %d tokens, want 2 and 2", n, h.tokens())
	}
}

func TestALateRefusalDoesNotDropANewerToken(t *testing.T) {
	h, c := start(t)
	old, _ := c.Apps.Token(t.Context(), h.repo)
	c.Apps.Forget(h.repo)
	fresh, _ := c.Apps.Token(t.Context(), h.repo)
	c.drop(h.repo, old)
	if got, err := c.Apps.Token(t.Context(), h.repo); err != nil || got != fresh || h.tokens() != 2 {
		t.Errorf("token %q of %d, %v", got, h.tokens(), err)
	}
}

func TestRefusedTokenNamesTheReason(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault fault
		kind  error
		hint  string
	}{
		{"uninstalled", message(404, "Not Found"), ErrUninstalled, "install it again"},
		{"suspended", message(403, "This installation has been suspended"), ErrUninstalled, "suspended"},
		{"forbidden for another reason", message(403, "Resource not accessible by integration"), ErrForbidden, "permissions"},
		{"repository removed", message(422, "There is at least one repository that does not exist or is not accessible to the parent installation."), ErrUninstalled, "add it"},
		{"permission missing", message(422, "The permissions requested are not granted to this installation."), ErrForbidden, "accept them"},
		{"wrong key", message(401, "A JSON web token could not be decoded"), ErrUnauthorized, "private key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, c := start(t)
			h.fail(mintRoute, tt.fault)
			_, err := c.Issues.Get(t.Context(), h.repo, 1)
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.hint) || !strings.Contains(err.Error(), "octo/hello") {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestUninstallationDuringARunIsReported(t *testing.T) {
	h, c := start(t)
	if _, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil {
		t.Fatal(err)
	}
	h.must(h.Uninstall(fullName))
	if _, err := c.Issues.Get(t.Context(), h.repo, 1); !errors.Is(err, ErrUninstalled) {
		t.Errorf("err = %v", err)
	}
}

func TestLostTokenAnswerIsRetried(t *testing.T) {
	h, c := start(t)
	h.fail(mintRoute, abortAfter, cutAfter)
	if _, err := c.Apps.Token(t.Context(), h.repo); err != nil || h.tokens() != 3 {
		t.Errorf("tokens %d, %v", h.tokens(), err)
	}
}

func TestWaitForATokenEndsWithTheContext(t *testing.T) {
	h, c := start(t)
	s := c.slot(h.repo)
	<-s // another call is requesting a token
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Apps.Token(ctx, h.repo); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestTokensNeverAppearInErrors(t *testing.T) {
	h, c := start(t)
	long := "ghs_" + strings.Repeat("aB3.-_", 86)
	h.fail(issueRoute, message(http.StatusForbidden, "no access with "+long+"!"))
	_, err := c.Issues.Get(t.Context(), h.repo, 1)
	if err == nil || strings.Contains(err.Error(), "aB3") || !strings.Contains(err.Error(), "[redacted token]") {
		t.Errorf("err = %v", err)
	}
}
