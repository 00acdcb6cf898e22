package attempt

import (
	"testing"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/edit"
	"github.com/pawlbot/pawl/policy"
)

func TestFilesEditedAfterTheLastTestRunAreCounted(t *testing.T) {
	tests := agent.Call{Authored: "npm run test:unit"}
	looks := agent.Call{Authored: "grep -rn test src"}
	changes := func(name string) agent.Call { return agent.Call{Edits: []policy.Edit{edit.Replaced(name, "a", "b")}} }
	for name, tc := range map[string]struct {
		calls []agent.Call
		want  policy.Trajectory
	}{
		"no test run":                  {[]agent.Call{changes("a.go"), looks}, policy.Trajectory{}},
		"edits before it only":         {[]agent.Call{changes("a.go"), tests, looks}, policy.Trajectory{TestRuns: 1}},
		"two files after it":           {[]agent.Call{tests, changes("a.go"), changes("b.go"), changes("a.go")}, policy.Trajectory{TestRuns: 1, FilesAfterTests: 2}},
		"edits that were tested again": {[]agent.Call{tests, changes("a.go"), tests}, policy.Trajectory{TestRuns: 2}},
	} {
		_, l := watchedFolder(t)
		for _, call := range tc.calls {
			l.call(call, func(error) { t.Error("the agent was killed") })
		}
		if l.trajectory != tc.want {
			t.Errorf("%s: %+v, want %+v", name, l.trajectory, tc.want)
		}
	}
}
