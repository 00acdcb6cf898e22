package server_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// The settings follow the section on rotation in docs/operations.md.
func TestWebhookSecretRotationLosesNoDelivery(t *testing.T) {
	t.Parallel()
	const next, other = "the next secret, of some length", "a secret that nobody configured"
	r := newRig(t, nil)
	r.Agent("", "")
	old := fmt.Sprintf("webhook_secret: %q", testrig.Secret)
	r.Edit = strings.NewReplacer(old, fmt.Sprintf("webhook_secret: %q, previous_%s", next, old))
	r.Start()
	for secret, want := range map[string]int{testrig.Secret: http.StatusOK, next: http.StatusOK, other: http.StatusUnauthorized} {
		body := []byte(`{"zen": "Keep it logically awesome."}`)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		if got, _ := r.Hook(body, map[string]string{"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil))}); got != want {
			t.Errorf("signed with %q: %d, want %d", secret, got, want)
		}
		if strings.Contains(r.Log.String(), secret) {
			t.Errorf("the log contains %q", secret)
		}
	}
}

func TestPollingServerFetchesDeliveries(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo two >> a.txt\n", "")
	r.Edit = strings.NewReplacer("  app:", "  receive: poll\n  app:", fmt.Sprintf("webhook_secret: %q, ", testrig.Secret), "")
	serve := func() {
		r.Start()
		r.World.SetWebhookURL("") // such an App has no webhook address
	}
	serve()
	r.Solved()
	if code, _ := r.Hook([]byte("{}"), nil); code != http.StatusNotFound {
		t.Errorf("a webhook without a configured secret was answered %d, want 404", code)
	}
	// The next server fetches the events that happened while no server ran, and repeats none.
	r.Stop(syscall.SIGTERM)
	n := r.Solve("A third line", "Please add a third line to a.txt.")
	serve()
	if s := r.Ending(n); s.State != "done" || r.Calls() != 2 || len(r.World.Pulls(testrig.Repo)) != 2 {
		t.Errorf("%s (%s %q) after %d calls of the agent, with %d pull requests; want done after two, and two",
			s.State, s.Rule, s.Reasons, r.Calls(), len(r.World.Pulls(testrig.Repo)))
	}
}
