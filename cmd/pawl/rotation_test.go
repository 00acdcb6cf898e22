package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// signedWith sends a ping that is signed with a secret.
func (r *rig) signedWith(secret string, n int) int {
	r.T.Helper()
	body := []byte(`{"zen": "Keep it logically awesome."}`)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	status, _ := r.Hook(body, map[string]string{
		"X-GitHub-Delivery": fmt.Sprintf("00000000-0000-4000-8000-%012d", n), "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	})
	return status
}

// The steps are those of docs/operations.md.
func TestTheWebhookSecretIsRotatedWithoutLosingADelivery(t *testing.T) {
	t.Parallel()
	const next = "the next secret, of some length"
	r := newRig(t, nil)
	r.Agent("", "")
	file := r.File()
	text, err := os.ReadFile(file)
	r.Must(err)
	old := fmt.Sprintf("webhook_secret: %q", testrig.Secret)
	for step, c := range []struct {
		name, secrets     string
		signedOld, signed int
	}{
		{"before", old, http.StatusOK, http.StatusUnauthorized},
		{"while both hold", fmt.Sprintf("webhook_secret: %q, previous_webhook_secret: %q", next, testrig.Secret), http.StatusOK, http.StatusOK},
		{"after", fmt.Sprintf("webhook_secret: %q", next), http.StatusUnauthorized, http.StatusOK},
	} {
		r.Must(os.WriteFile(file, []byte(strings.Replace(string(text), old, c.secrets, 1)), 0o600))
		r.StartWith(file)
		if got := r.signedWith(testrig.Secret, 2*step); got != c.signedOld {
			t.Errorf("%s: signed with the old secret: %d, want %d", c.name, got, c.signedOld)
		}
		if got := r.signedWith(next, 2*step+1); got != c.signed {
			t.Errorf("%s: signed with the new secret: %d, want %d", c.name, got, c.signed)
		}
		if code := r.Stop(syscall.SIGTERM); code != 0 {
			t.Errorf("%s: exit code %d", c.name, code)
		}
	}
	for _, secret := range []string{testrig.Secret, next} {
		if strings.Contains(r.Log.String(), secret) {
			t.Error("the log holds a webhook secret")
		}
	}
}
