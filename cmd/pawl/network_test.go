package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// TestServerNeedsNetworkNamespacesUnlessNetworkIsOpen runs the server as root and as an ordinary user. Both can create
// all namespaces except network namespaces, as in some containers.
func TestServerNeedsNetworkNamespacesUnlessNetworkIsOpen(t *testing.T) {
	t.Parallel()
	testrig.Sandboxed(t)
	const without = `echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"`
	wrapped := func(arg ...string) *exec.Cmd {
		return exec.Command("unshare", append([]string{"--user", "--map-root-user", "sh", "-c", without, "sh"}, arg...)...)
	}
	for _, user := range []string{"root", "nobody"} {
		t.Run(user, func(t *testing.T) {
			dir, err := os.MkdirTemp("/tmp", "pawl-network")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			file, bin := filepath.Join(dir, "pawl.yml"), filepath.Join(dir, "pawl")
			as := func(cmd *exec.Cmd) *exec.Cmd {
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
				return cmd
			}
			copyProgram(t, bin)
			plain := as
			if user == "nobody" {
				if os.Geteuid() != 0 {
					t.Skip("the tests run as an ordinary user already")
				}
				const nobody = 65534
				if err := os.Chown(dir, nobody, nobody); err != nil {
					t.Fatal(err)
				}
				plain = func(cmd *exec.Cmd) *exec.Cmd {
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
					return as(cmd)
				}
			}
			for _, c := range []struct {
				network string
				cmd     *exec.Cmd
				want    string
			}{
				{"walled", exec.Command(bin, "serve", "--config", file), "private_key_file"}, // this check comes after the sandbox's
				{"walled", wrapped(bin, "serve", "--config", file), "no network of its own"},
				{"open", wrapped(bin, "serve", "--config", file), "private_key_file"},
			} {
				text := "data_dir: " + dir + "\ngithub: {app: {integration_id: 1, webhook_secret: 0123456789abcdef, private_key_file: none.pem}}\n" +
					"backends: [{name: a, kind: command, argv: [\"true\"]}]\nsandbox: {mode: auto, network: " + c.network + "}\n"
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				out, err := plain(c.cmd).CombinedOutput()
				if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); err == nil || !strings.Contains(lines[len(lines)-1], c.want) {
					t.Errorf("%s: %v, %s, want %q", c.network, err, out, c.want)
				}
			}
		})
	}
	r, _ := testrig.Looking(t, "open")
	r.Server = r.Launch(wrapped(testrig.Program, "serve", "--config", r.File()), r.Log)
	r.Addr = r.Server.Addr
	r.World.SetWebhookURL(r.URL("/api/github/hook"))
	n := r.Solve("Look around", "Please look around.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	if summary := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl").Summary; !strings.Contains(summary, "Agents have the same network access as this server (`sandbox.network: open`).") {
		t.Errorf("the check run does not report the open network:\n%s", summary)
	}
}

// copyProgram copies the built program with another process. If this process wrote the file, a child that another test
// forks could hold it open, and the file could not be executed.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	if out, err := exec.Command("cp", testrig.Program, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
