package agent_test

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
)

// TestEvalScriptedSessions judges the recorded sessions twice: by the edits that pawl run counted live, and by the
// recorded output alone. The output does not show edits made with a shell.
func TestEvalScriptedSessions(t *testing.T) {
	const sessions = "../../testdata/sessions"
	judge := policy.Defaults().Severity.Judge
	found, all := map[bool]int{}, map[bool]int{}
	for _, s := range agenttest.Scripts(t, sessions+"/scripts") {
		for _, cli := range allCLIs {
			path := s.Recording(sessions, cli)
			if _, err := os.Stat(path + ".txtar"); os.IsNotExist(err) {
				continue // qwen reads a file before each edit, so its steps differ
			}
			var was agenttest.Session
			if err := json.Unmarshal([]byte(agenttest.Text(t, path, "session.json")), &was); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if was.Script != s.Name || was.Circles != s.Circles || was.Steps != len(s.Steps) {
				t.Fatalf("%s: %+v; want a recording of the script of %d steps", path, was, len(s.Steps))
			}
			live, output := judge(was.Edits), judge(counted(t, cli, path))
			all[s.Circles]++
			if live.Class != policy.None {
				found[s.Circles]++
			}
			// A late event can make an edit count twice in the live count. A session that was cut off has fewer edits.
			reported := output.Class != policy.None || strings.Contains(output.Reasons[0], "in circles")
			if (live.Class != policy.None) != s.Circles || !s.Unseen && reported != s.Circles {
				t.Errorf("%s: %s %q, by its output alone %s %q; goes in circles: %v",
					path, live.Class, live.Reasons, output.Class, output.Reasons, s.Circles)
			}
			whole := was.Ending == policy.Completed && was.Outcome == policy.WorkUnverified
			if !whole && !s.Circles || was.Edits.Operations < 40 || was.Edits.MaxRepeat < 8 || was.Edits.Blind() {
				t.Errorf("%s: %s, %s after %+v; want a complete session above the trigger, with known content",
					path, was.Ending, was.Outcome, was.Edits)
			}
		}
	}
	if all[false] != 32 || all[true] != 24 {
		t.Errorf("%d healthy sessions and %d in circles are recorded, want 8 and 6 of each of four CLIs", all[false], all[true])
	}
	for _, circles := range []bool{false, true} {
		low, high := wilson(found[circles], all[circles])
		t.Logf("scripted sessions of the real CLIs, in circles %v: %d of %d taken for a loop, %.1f to %.1f %% (Wilson, 95 %%)",
			circles, found[circles], all[circles], 100*low, 100*high)
	}
}

// counted returns the edits that a session's recorded output shows, without the files that the agent worked on.
func counted(t *testing.T, cli, path string) policy.Edits {
	t.Helper()
	a, err := clis.ForStream(cli)
	if err != nil {
		t.Fatal(err)
	}
	output := agenttest.Text(t, path, "stdout.jsonl")
	if cli == config.Codex { // its output names only paths
		output = agenttest.Text(t, path, "rollout-events.jsonl")
	}
	report, err := agent.Inspect(strings.NewReader(output), a, agent.InspectOptions{Dir: "/repo"})
	if err != nil {
		t.Fatal(err)
	}
	return report.Edits
}

// wilson returns the 95 % Wilson interval of hits in n.
func wilson(hits, n int) (low, high float64) {
	const z = 1.96
	p, of := float64(hits)/float64(n), float64(n)
	middle, half := (p+z*z/2/of)/(1+z*z/of), z/(1+z*z/of)*math.Sqrt(p*(1-p)/of+z*z/4/of/of)
	return max(0, middle-half), min(1, middle+half)
}
