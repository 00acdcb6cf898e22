package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMountedFileIsReadOnly(t *testing.T) {
	s := in(t, Auto)
	spec := script(t, `cat "$HOME/.cli/auth.json"; echo new >"$HOME/.cli/auth.json" || echo refused; ls "$HOME/.cli"`)
	spec.Env = append(spec.Env, "HOME="+spec.Home)
	login := filepath.Join(t.TempDir(), "login of the operator.json")
	if err := os.WriteFile(login, []byte("the login\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = []Mount{{From: login, To: filepath.Join(spec.Home, ".cli", "auth.json")}}
	out, stderr, _, err := run(t, s, spec)
	if err != nil || out != "the login\nrefused\nauth.json\n" {
		t.Errorf("printed %q and %q: %v", out, stderr, err)
	}
	if now, err := os.ReadFile(login); err != nil || string(now) != "the login\n" {
		t.Errorf("the file contains %q: %v", now, err)
	}
}

func TestMountNeedsASandbox(t *testing.T) {
	spec := script(t, "true")
	spec.Mounts = []Mount{{From: spec.Dir, To: filepath.Join(spec.Home, "x")}}
	if _, err := in(t, None).Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "without a sandbox") {
		t.Errorf("error %v", err)
	}
	spec.Mounts = []Mount{{From: spec.Dir, To: "../x"}}
	if _, err := in(t, Auto).Start(t.Context(), spec); err == nil {
		t.Error("a relative path was accepted")
	}
}
