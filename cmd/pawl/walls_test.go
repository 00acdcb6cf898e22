package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	if !slices.Equal(a.RefusedHosts, []string{"other.example.org:443", "plain.example.org:80"}) || a.Received == 0 || a.Sent == 0 {
		t.Errorf("the receipt has %q, %d bytes sent, %d received", a.RefusedHosts, a.Sent, a.Received)
	}
	if len(a.Verify) != 1 || !strings.Contains(a.Verify[0].Output, "[Pawl refused: verify.example.org:443; the operator can allow it in network.verify]") {
		t.Errorf("verify says %+v", a.Verify)
	}
	sha := r.world.Pulls(rigRepo)[0].Pull.HeadSHA
	if said := r.check(sha, "pawl").Summary; !strings.Contains(said, "refused: `other.example.org:443`, `plain.example.org:80`; allow it in `network.agent`") || strings.Contains(said, "Agents reach whatever") {
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
