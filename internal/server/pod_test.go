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
		variable    string // environment variable with the token's path
		want        string // empty if the mode is allowed
	}{
		"a pod without a token":      {host: "10.96.0.1"},
		"another file":               {host: "10.96.0.1", token: "var/run/secrets/pawl/app.pem"},
		"a service account's CA":     {host: "10.96.0.1", token: "var/run/secrets/kubernetes.io/serviceaccount/ca.crt"},
		"no pod":                     {want: "KUBERNETES_SERVICE_HOST is missing; set sandbox.mode to auto"},
		"a service account token":    {host: "10.96.0.1", token: "var/run/secrets/kubernetes.io/serviceaccount/token", want: "/var/run/secrets/kubernetes.io/serviceaccount/token; set automountServiceAccountToken: false"},
		"a token of Amazon's cloud":  {host: "10.96.0.1", token: "var/run/secrets/eks.amazonaws.com/serviceaccount/token", want: "/var/run/secrets/eks.amazonaws.com/serviceaccount/token"},
		"a token of Microsoft's one": {host: "10.96.0.1", token: "var/run/secrets/azure/tokens/azure-identity-token", want: "/var/run/secrets/azure/tokens/azure-identity-token"},
		"an EKS pod identity": {
			host: "10.96.0.1", token: "var/run/secrets/pods.eks.amazonaws.com/serviceaccount/eks-pod-identity-token",
			want: "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount/eks-pod-identity-token",
		},
		"a token in a subfolder": {
			host: "10.96.0.1", token: "var/run/secrets/kubernetes.io/serviceaccount/own/Token-1",
			want: "/var/run/secrets/kubernetes.io/serviceaccount/own/Token-1",
		},
		"a projected token":           {host: "10.96.0.1", token: "var/run/secrets/tokens/gcp-ksa/file", want: "/var/run/secrets/tokens/gcp-ksa/file"},
		"a file named by no variable": {host: "10.96.0.1", token: "opt/identity"},
		"a web identity of Amazon":    {host: "10.96.0.1", token: "opt/identity", variable: "AWS_WEB_IDENTITY_TOKEN_FILE", want: "token /opt/identity"},
		"a container's of Amazon": {
			host: "10.96.0.1", token: "opt/identity", variable: "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", want: "token /opt/identity",
		},
		"a federated one of Microsoft": {host: "10.96.0.1", token: "opt/identity", variable: "AZURE_FEDERATED_TOKEN_FILE", want: "token /opt/identity"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			// In images, /var/run is a link. The kubelet's files are links, too.
			for _, dir := range []string{"run/secrets", "var"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("../run", filepath.Join(root, "var/run")); err != nil {
				t.Fatal(err)
			}
			if c.token != "" {
				mount(t, filepath.Join(root, c.token))
			}
			variables := map[string]string{apiHost: c.host, c.variable: "/" + c.token}
			err := checkPod(os.DirFS(root), func(name string) (string, bool) {
				value, is := variables[name]
				return value, is
			})
			if (err != nil) != (c.want != "") {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// mount writes a file as the kubelet does: the path is a link through ..data to a folder with a date.
func mount(t *testing.T, path string) {
	t.Helper()
	dir, name := filepath.Split(path)
	const dated = "..2026_11_29_22_14_37.123"
	if err := os.MkdirAll(filepath.Join(dir, dated), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, dated, name), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"..data": dated, name: "..data/" + name} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
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
