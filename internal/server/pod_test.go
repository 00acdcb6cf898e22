package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
)

func TestModePodNeedsAPodWithoutAToken(t *testing.T) {
	for name, c := range map[string]struct {
		host, token string
		want        string // empty if the mode is allowed
	}{
		"a pod without a token":      {host: "10.96.0.1"},
		"another file":               {host: "10.96.0.1", token: "var/run/secrets/pawl/app.pem"},
		"no pod":                     {want: "KUBERNETES_SERVICE_HOST is missing; set sandbox.mode to auto"},
		"a service account token":    {host: "10.96.0.1", token: "var/run/secrets/kubernetes.io/serviceaccount/token", want: "/var/run/secrets/kubernetes.io/serviceaccount/token; set automountServiceAccountToken: false"},
		"a token of Amazon's cloud":  {host: "10.96.0.1", token: "var/run/secrets/eks.amazonaws.com/serviceaccount/token", want: "/var/run/secrets/eks.amazonaws.com/serviceaccount/token"},
		"a token of Microsoft's one": {host: "10.96.0.1", token: "var/run/secrets/azure/tokens/azure-identity-token", want: "/var/run/secrets/azure/tokens/azure-identity-token"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			// In images /var/run is a link, and the kubelet's token is one, too.
			for _, dir := range []string{"run/secrets", "var"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("../run", filepath.Join(root, "var/run")); err != nil {
				t.Fatal(err)
			}
			if c.token != "" {
				path := filepath.Join(root, c.token)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink("..data/token", path); err != nil {
					t.Fatal(err)
				}
			}
			err := checkPod(os.DirFS(root), func(string) (string, bool) { return c.host, c.host != "" })
			if (err != nil) != (c.want != "") {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestModePodStartsNoBubblewrap(t *testing.T) {
	t.Setenv(apiHost, "10.96.0.1")
	t.Setenv("PATH", "")
	if err := inPod(); err != nil {
		t.Skipf("the tests run in a pod with a token: %v", err)
	}
	box, err := OpenSandbox(t.Context(), config.Sandbox{Mode: config.SandboxPod}, "")
	if err != nil {
		t.Fatal(err)
	}
	if box.Mode() != "none" {
		t.Errorf("the mode is %s", box.Mode())
	}
	t.Setenv(apiHost, "")
	if _, err := OpenSandbox(t.Context(), config.Sandbox{Mode: config.SandboxPod}, ""); err == nil {
		t.Error("the mode works outside of a pod")
	}
}
