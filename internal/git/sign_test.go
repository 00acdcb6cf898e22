package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
)

func TestCommitIsSignedWithAKey(t *testing.T) {
	needs.Program(t, "ssh-keygen")
	key := filepath.Join(t.TempDir(), "signing key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "pawl", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	signers := filepath.Join(t.TempDir(), "signers")
	if err := os.WriteFile(signers, []byte("* "+string(public)), 0o600); err != nil {
		t.Fatal(err)
	}
	w := checkout(t, map[string]string{"a.txt": "a"})
	write(t, w.Dir, map[string]string{"a.txt": "b"})
	s, _ := snapshot(t, w)
	verify := func(signed string) error {
		plain := spec(s.Tree)
		plain.SigningKey = signed
		sha, err := w.Commit(t.Context(), plain)
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.run(t.Context(), command{args: []string{"-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile=" + signers, "verify-commit", sha}})
		return err
	}
	if err := verify(key); err != nil {
		t.Errorf("the signature is invalid: %v", err)
	}
	if verify("") == nil {
		t.Error("a commit without a key has a signature")
	}
	plain := spec(s.Tree)
	plain.SigningKey = key + ".none"
	if _, err := w.Commit(t.Context(), plain); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a missing key: %v", err)
	}
}
