package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/pawlbot/pawl/internal/testrig"
)

func TestAShortWebhookSecretIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("", "")
	path := r.File()
	text, err := os.ReadFile(path)
	r.Must(err)
	for _, secret := range []string{"", "fifteen letters"} {
		r.Must(os.WriteFile(path, bytes.Replace(text, []byte(testrig.Secret), []byte(secret), 1), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), testrig.Patience)
		out, err := exec.CommandContext(ctx, testrig.Program, "serve", "--config", path).CombinedOutput()
		late := ctx.Err()
		cancel()
		if err == nil || late != nil || !bytes.Contains(out, []byte("webhook_secret")) || !bytes.Contains(out, []byte("at least 16")) {
			t.Errorf("secret %q: %v\n%s\nwant an error that names webhook_secret and its least length", secret, err, out)
		}
	}
}
