package doctor

import (
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/needs"
)

func TestMachineFindings(t *testing.T) {
	find(t, []ill{
		{"no sandbox", func(c *clinic) {
			c.replace("mode: none", "mode: auto")
			c.only("git", "sh", "cat")
		}, Failed, "sandbox", "bwrap", "install bubblewrap"},
		{"no sandbox, on purpose", func(*clinic) {}, Warning, "sandbox", "sandbox.mode is none", "install bubblewrap"},
		{"no path of the sandbox", func(c *clinic) {
			c.replace("{mode: none}", "{mode: none, read_only: [/none/agents]}")
		}, Failed, "sandbox", "sandbox.read_only: stat /none/agents", "correct the path or remove it"},
		{"a pod that is none", func(c *clinic) { c.inPod("") }, Failed, "sandbox", "not in a Kubernetes pod", "set sandbox.mode to auto"},
		{"a pod", func(c *clinic) { c.inPod("127.0.0.1") }, OK, "sandbox", "the pod is the sandbox", ""},
		{"a pod's limits", func(c *clinic) { c.inPod("127.0.0.1") }, OK, "limits", "the pod's own limits also hold", ""},
		{"a key in a pod", func(c *clinic) { c.inPod("127.0.0.1") }, Warning, "sandbox", "agents can read github.app.private_key_file", "${PAWL_PRIVATE_KEY}"},
		{"a signing key in a pod", func(c *clinic) {
			c.inPod("127.0.0.1")
			c.replace("private_key_file: app.pem", "private_key_file: app.pem, signing_key_file: app.pem")
		}, Warning, "sandbox", "agents can read github.app.signing_key_file", "does not sign"},
		{"a secret in a pod's file", func(c *clinic) { c.inPod("127.0.0.1") }, Warning, "sandbox",
			"agents can read github.app.webhook_secret, database in the configuration file", "write ${NAME}"},
		{"a pod without a network policy", func(c *clinic) {
			c.inPod("127.0.0.1")
			api, err := net.Listen("tcp", "127.0.0.1:0")
			c.must(err)
			c.Cleanup(func() { api.Close() })
			_, port, _ := net.SplitHostPort(api.Addr().String())
			c.Setenv("KUBERNETES_SERVICE_PORT", port)
		}, Warning, "sandbox", "agents reach the Kubernetes API at 127.0.0.1:", "to the policy's except"},
		{"a pod whose API refuses", func(c *clinic) { c.inPod("127.0.0.1") }, Warning, "sandbox",
			"whether agents reach the Kubernetes API at 127.0.0.1:1 is unknown: dial tcp 127.0.0.1:1: connect: connection refused", "enforces"},
		{"a gateway's key in a pod", func(c *clinic) {
			c.inPod("127.0.0.1")
			c.text += "gateway: {address: \"127.0.0.1:0\", cert_file: cert.pem, key_file: key.pem, nodes: [{name: other, token: token-of-the-other-node}]}\n"
		}, Warning, "sandbox", "agents can read gateway.key_file", "runs no agents"},
		{"no git", func(c *clinic) { c.only("sh", "cat") }, Failed, "git", "git", "install git"},
		{"an old git", func(c *clinic) {
			c.only("sh", "cat")
			c.prints("bin/git", "git version 2.37.7", 0)
		}, Failed, "git", "git version 2.37.7 is too old", "2.38 or newer"},
		{"a git with an unknown version format", func(c *clinic) {
			c.only("sh", "cat")
			c.prints("bin/git", "jujutsu", 0)
		}, Warning, "git", `it printed "jujutsu"`, "2.38 or newer"},
		{"no database yet", func(c *clinic) { c.must(os.Remove(c.path("pawl.db"))) }, OK, "database", "not created yet", ""},
		{"a file that is not a database", func(c *clinic) {
			c.write("pawl.db", "this is a letter to my aunt, and it is long enough")
		}, Failed, "database", "pawl.db", "correct database"},
		{"no PostgreSQL at the address", func(c *clinic) {
			c.replace("sqlite:pawl.db", "postgres://pawl:secret-of-the-database@127.0.0.1:1/pawl")
		}, Failed, "database", "connection refused", "correct database"},
	})
}

// Root can write anywhere, so the checking thread drops to another user. It ends with the goroutine.
func TestUnwritableFolderIsReported(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	found := make(chan []Finding)
	go func() {
		runtime.LockOSThread() // never unlocked
		const nobody, same = 65534, ^uintptr(0)
		if os.Geteuid() == 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETREUID, nobody, same, 0)
		}
		found <- writable(dir+"/data", "")
	}()
	f := (<-found)[0]
	if f.State != Failed || f.Text != dir+" cannot be written to: permission denied" || f.Hint != "let the user that runs Pawl own it" {
		t.Errorf("%+v", f)
	}
}

// data_dir is a file system of one MiB.
func TestFullDiskIsReported(t *testing.T) {
	needs.All(t, "a file system of its own")
	small := t.TempDir()
	if err := syscall.Mount("pawl-test", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system cannot be mounted here (%v); root can", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	f := (&exam{cfg: config.Server{DataDir: small}}).disk(t.Context())[0]
	if f.State != Warning || f.Text != "0.0 GiB are free below "+small || !strings.Contains(f.Hint, "make room") {
		t.Errorf("%+v", f)
	}
}
