package server_test

import (
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// overloaded ends an agent as Codex ends when its provider is overloaded.
const overloaded = `printf '{"type":"turn.failed","error":{"message":"unexpected status 503 Service Unavailable: overloaded"}}\n'; exit 1
`

func TestRefusalsThatPassAreWaitedOutAndEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script   string
		state    string
		rule     string
		attempts int
	}{
		"twice":           {`[ "$(wc -l < "$CTRL/calls")" -gt 2 ] || { ` + overloaded + "}\necho two >> a.txt\n", "done", "done", 3},
		"again and again": {overloaded, "stopped", "transient", 3},
		// The work is there; what completes it finds nothing to change, and is verified.
		"after the change": {`[ "$(wc -l < "$CTRL/calls")" -gt 1 ] || { echo two >> a.txt; ` + overloaded + "}\n", "done", "done", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: [\"grep two a.txt\"]\n"})
			r.Config += "policy: {transient: {max_consecutive: 3, backoff_start: 1s, backoff_cap: 1s}}\n"
			r.Agent(testrig.CodexAgent+tc.script+testrig.CodexEnd, "stream: codex")
			r.Start()
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			r.Await("the first wait", func() bool {
				s := r.Thread(testrig.ThreadName(n))
				return s.State == "waiting" && s.Rule == "transient" || len(r.State(n).Attempts) > 1
			})
			s := r.Ending(n)
			all := r.State(n).Attempts
			if s.State != tc.state || string(s.Rule) != tc.rule || len(all) != tc.attempts {
				t.Errorf("%d attempts, then %s (%s %q); want %d, then %s by %s", len(all), s.State, s.Rule, s.Reasons, tc.attempts, tc.state, tc.rule)
			}
			for i, a := range all[1:] {
				if waited := a.At.Sub(all[i].EndedAt).Seconds(); waited < 1 {
					t.Errorf("attempt %d began %.2f s after the refusal, want at least 1 s", a.N, waited)
				}
			}
			if tc.state != "done" {
				return
			}
			if last := all[len(all)-1].Receipt; len(last.Verify) != 1 || !last.Verify[0].Passed {
				t.Errorf("verification %+v, want that the work was verified", last.Verify)
			}
			r.Await("the check run", func() bool {
				for _, p := range r.World.Pulls(testrig.Repo) {
					if title := r.Check(r.Head(p.Number), "pawl").Title; title == "Done: verified" {
						return true
					}
				}
				return false
			})
		})
	}
}
