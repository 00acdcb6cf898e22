package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestAgentReachesOnlyListedHosts(t *testing.T) {
	t.Parallel()
	testrig.Sandboxed(t)
	r, look := testrig.Looking(t, "")
	seen := look()
	for _, want := range []string{
		"listed: the listed server\n", "direct: curl: (7)", "github: curl: (7)", "other: curl: (56) CONNECT tunnel failed, response 403\n",
		"plain: Pawl refuses plain.example.org:80: it is not in network.agent of the configuration.\n", "metadata: curl: (7)",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is not in\n%s", want, seen)
		}
	}
	a := r.State(1).Attempts[0].Receipt
	if !slices.Equal(a.RefusedHosts, []string{"other.example.org:443", "plain.example.org:80", "verify.example.org:443 in network.verify"}) || a.Received == 0 || a.Sent == 0 {
		t.Errorf("the receipt has %q, %d bytes sent, %d received", a.RefusedHosts, a.Sent, a.Received)
	}
	if len(a.Verify) != 1 || !strings.Contains(a.Verify[0].Output, "[Pawl refused: verify.example.org:443; the operator can allow it in network.verify]") {
		t.Errorf("the verification is %+v", a.Verify)
	}
	sha := r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA
	if summary := r.Check(sha, "pawl").Summary; !strings.Contains(summary, "refused: `other.example.org:443`, `plain.example.org:80`") || !strings.Contains(summary, "allow it in `network.agent`") ||
		!strings.Contains(summary, "refused: `verify.example.org:443`; if the commands should reach it, allow it in `network.verify`") || strings.Contains(summary, "Agents reach whatever") {
		t.Errorf("the check run contains\n%s", summary)
	}
}

// The commands fail on the base and on the change, because the network policy refuses a host.
func TestKnownFailureNamesTheRefusedHost(t *testing.T) {
	t.Parallel()
	testrig.Sandboxed(t)
	r := newRig(t, map[string]string{"a.txt": "one\n", config.RepoFile: testrig.AllChecks + "verify:\n  - curl -sS -m 20 https://verify.example.org/ 2>/dev/null\n"})
	r.Agent("echo two >> a.txt", "")
	r.Config += "sandbox: {mode: auto}\n"
	r.Start()
	n := r.Solve("Add a line", "Please add a line.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	summary := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl").Summary
	if !strings.Contains(summary, "refused: `verify.example.org:443`; if the commands should reach it, allow it in `network.verify`") {
		t.Errorf("the check run contains\n%s", summary)
	}
}

// This test is also the control for the others: the same agent reaches its target.
func TestOpenNetworkIsInEveryCheckRun(t *testing.T) {
	t.Parallel()
	testrig.Sandboxed(t)
	r, look := testrig.Looking(t, "open")
	seen := look()
	if !strings.Contains(seen, "direct: the listed server\n") || strings.Contains(seen, "github: curl:") {
		t.Errorf("the agent saw\n%s", seen)
	}
	sha := r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA
	for _, name := range []string{"pawl", "pawl/severity", "pawl/stagnation"} {
		if summary := r.Check(sha, name).Summary; !strings.Contains(summary, "Agents have the same network access as this server (`sandbox.network: open`).") {
			t.Errorf("%s contains\n%s", name, summary)
		}
	}
}
