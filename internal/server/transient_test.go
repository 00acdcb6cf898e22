package server_test

import (
	"testing"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// overloaded is a script that ends like Codex with an overloaded provider.
const overloaded = `printf '{"type":"turn.failed","error":{"message":"unexpected status 503 Service Unavailable: overloaded"}}\n'; exit 1
`

// The work is complete before the first refusal; the next attempt changes nothing and is verified.
func TestTransientRefusalsAreRetriedAfterAWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: [\"grep two a.txt\"]\n"})
	r.Config = "policy: {transient: {backoff_start: 10m, backoff_cap: 10m}}\n"
	r.Agent(testrig.CodexAgent+`calls=$(wc -l < "$CTRL/calls")
[ $calls != 1 ] || echo two >> a.txt
[ $calls -gt 2 ] || { `+overloaded+"}\n"+testrig.CodexEnd, "stream: codex")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	waits := 0
	v := r.Idle(n)
	for ; v.State == checkrun.Waiting && v.Rule == policy.RuleTransient; v = r.Idle(n) {
		waits++
		r.Clock.Reach(v.Until)
		r.Sweep()
	}
	all := r.State(n).Attempts
	if v.State != checkrun.Done || waits != 2 || len(all) != 3 {
		t.Fatalf("%d attempts and %d waits, then %s (%s %q); want 3 and 2, then done", len(all), waits, v.State, v.Rule, v.Reasons)
	}
	if last := all[2].Receipt; last.Progress() || len(last.Verify) != 1 || !last.Verify[0].Passed {
		t.Errorf("the last attempt %+v, want the work verified without a change", last)
	}
	if title := r.Check(r.Head(r.PullOf(n)), "pawl").Title; title != "Done: commands passed, no tests counted" {
		t.Errorf("the check run says %q", title)
	}
}
