package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/config"
)

// looking is an agent that writes what it reaches into the change, and a verify command that asks for what is on no
// list. Where says what the first lines of seen.txt are about.
func looking(t *testing.T, network string) (r *rig, seen func() string) {
	t.Helper()
	r = newRig(t, map[string]string{
		"a.txt":         "one\n",
		config.RepoFile: allChecks + "verify:\n  - curl -sS -m 20 https://verify.example.org/ || test -s seen.txt\n",
	})
	listed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "the listed server") }))
	t.Cleanup(listed.Close)
	_, port, _ := net.SplitHostPort(listed.Listener.Addr().String())
	r.agent("", "")
	r.must(os.WriteFile(filepath.Join(r.dir, "agent.sh"), []byte(`#!/bin/sh
cat > /dev/null
{
echo listed: $(curl -sS -m 20 --noproxy '' -x "${http_proxy:-http://127.0.0.1:29402}" http://localhost:`+port+`/ 2>&1)
echo direct: $(curl -sS -m 20 http://localhost:`+port+`/ 2>&1)
echo github: $(curl -sS -m 20 `+r.world.APIURL()+` 2>&1 | head -c 60)
echo other: $(curl -sS -m 20 https://other.example.org/ 2>&1)
echo plain: $(curl -sS -m 20 http://plain.example.org/ 2>&1)
echo metadata: $(curl -sS -m 20 --noproxy '*' http://169.254.169.254/ 2>&1)
} > seen.txt
`), 0o700))
	if network != "" {
		network = ", network: " + network
	}
	r.config += fmt.Sprintf("sandbox: {mode: auto%s}\nnetwork: {agent: [\"localhost:%s\"], private: [127.0.0.0/8]}\n", network, port)
	return r, func() string {
		r.start()
		n := r.solve("Look around", "Please look around.")
		if s := r.ending(n); s.State != "done" {
			t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
		}
		text, err := r.world.File(t.Context(), rigRepo, fmt.Sprintf("pawl/issue-%d", n), "seen.txt")
		r.must(err)
		return text
	}
}

func TestAnAgentReachesWhatTheOperatorListsAndNothingElse(t *testing.T) {
	t.Parallel()
	sandboxed(t)
	r, look := looking(t, "")
	seen := look()
	for _, want := range []string{
		"listed: the listed server\n", "direct: curl: (7)", "github: curl: (7)", "other: curl: (56) CONNECT tunnel failed, response 403\n",
		"plain: Pawl refuses plain.example.org:80: it is not in network.agent of the configuration.\n", "metadata: curl: (7)",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is not in\n%s", want, seen)
		}
	}
	a := r.state(1).Attempts[0].Receipt
	if !slices.Equal(a.RefusedHosts, []string{"other.example.org:443", "plain.example.org:80", "verify.example.org:443 in network.verify"}) || a.Received == 0 || a.Sent == 0 {
		t.Errorf("the receipt has %q, %d bytes sent, %d received", a.RefusedHosts, a.Sent, a.Received)
	}
	if len(a.Verify) != 1 || !strings.Contains(a.Verify[0].Output, "[Pawl refused: verify.example.org:443; the operator can allow it in network.verify]") {
		t.Errorf("verify says %+v", a.Verify)
	}
	sha := r.world.Pulls(rigRepo)[0].Pull.HeadSHA
	if said := r.check(sha, "pawl").Summary; !strings.Contains(said, "refused: `other.example.org:443`, `plain.example.org:80`; allow it in `network.agent`") ||
		!strings.Contains(said, "refused: `verify.example.org:443`; allow it in `network.verify` of the server's configuration, if the commands should reach it") || strings.Contains(said, "Agents reach whatever") {
		t.Errorf("the check run says\n%s", said)
	}
}

// TestAKnownFailureByARefusedHostSaysSo has the commands of the base and of the change fail for want of a host.
func TestAKnownFailureByARefusedHostSaysSo(t *testing.T) {
	t.Parallel()
	sandboxed(t)
	r := newRig(t, map[string]string{"a.txt": "one\n", config.RepoFile: allChecks + "verify:\n  - curl -sS -m 20 https://verify.example.org/ 2>/dev/null\n"})
	r.agent("echo two >> a.txt", "")
	r.config += "sandbox: {mode: auto}\n"
	r.start()
	n := r.solve("Add a line", "Please add a line.")
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	said := r.check(r.world.Pulls(rigRepo)[0].Pull.HeadSHA, "pawl").Summary
	if !strings.Contains(said, "a command fails as it did before, compared as text; refused: verify.example.org:443") {
		t.Errorf("the check run says\n%s", said)
	}
}

// TestWhereNoNetworkCanBeMadeNothingServesUnlessItIsOpen runs the server where its user may make all namespaces but those
// of networks, as in some containers, as root and as an ordinary user.
func TestWhereNoNetworkCanBeMadeNothingServesUnlessItIsOpen(t *testing.T) {
	t.Parallel()
	sandboxed(t)
	const without = `echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"`
	wrapped := func(arg ...string) *exec.Cmd {
		return exec.Command("unshare", append([]string{"--user", "--map-root-user", "sh", "-c", without, "sh"}, arg...)...)
	}
	for _, user := range []string{"root", "nobody"} {
		t.Run(user, func(t *testing.T) {
			dir, err := os.MkdirTemp("/tmp", "pawl-walls")
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
				{"walled", exec.Command(bin, "serve", "--config", file), "private_key_file"}, // which comes after the sandbox
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
	r, _ := looking(t, "open")
	r.server = r.launch(wrapped(pawlBinary, "serve", "--config", r.file()), r.log)
	r.addr = r.server.addr
	r.world.SetWebhookURL(r.url("/api/github/hook"))
	n := r.solve("Look around", "Please look around.")
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	if said := r.check(r.world.Pulls(rigRepo)[0].Pull.HeadSHA, "pawl").Summary; !strings.Contains(said, "Agents reach whatever this server reaches (`sandbox.network: open`).") {
		t.Errorf("the check run says\n%s", said)
	}
}

// TestAnOpenNetworkIsSaidInEveryCheckRun is also the control: the same agent reaches what it looks for.
func TestAnOpenNetworkIsSaidInEveryCheckRun(t *testing.T) {
	t.Parallel()
	sandboxed(t)
	r, look := looking(t, "open")
	seen := look()
	if !strings.Contains(seen, "direct: the listed server\n") || strings.Contains(seen, "github: curl:") {
		t.Errorf("the agent saw\n%s", seen)
	}
	sha := r.world.Pulls(rigRepo)[0].Pull.HeadSHA
	for _, name := range []string{"pawl", "pawl/severity", "pawl/stagnation"} {
		if said := r.check(sha, name).Summary; !strings.Contains(said, "Agents reach whatever this server reaches (`sandbox.network: open`).") {
			t.Errorf("%s says\n%s", name, said)
		}
	}
}

// copyProgram copies the built program, by another process: a file that this one writes cannot be started while a child that
// it forks meanwhile for another test has it open.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	if out, err := exec.Command("cp", pawlBinary, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
