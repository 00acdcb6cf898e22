package attempt

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/policy"
)

func TestOnlyWhatFailedBeforeInTheSameWayIsForgiven(t *testing.T) {
	old, other := policy.Failing{Name: "TestOld", Text: "is 1"}, policy.Failing{Name: "TestOther", Text: "is 2"}
	build := policy.Failing{Name: "pkg [build failed]", Text: "undefined: x"}
	base := baseline{Exit: 1, Passed: 3, Failing: []policy.Failing{old, build}}
	v := func(change func(v *policy.Verified)) policy.Verified {
		v := policy.Verified{Exit: 1, PassedTests: 3, FailedTests: 1, Failing: []policy.Failing{{Name: "TestOld", Text: "is 7, at 12:30"}}}
		if change != nil {
			change(&v)
		}
		return v
	}
	for _, c := range []struct {
		name   string
		v      policy.Verified
		task   string
		passed bool
		known  []string
	}{
		{"a test that failed before, whatever it says now", v(nil), "add a line", true, []string{"TestOld"}},
		{"not beside another failure", v(func(v *policy.Verified) { v.Failing, v.FailedTests = []policy.Failing{old, other}, 2 }), "add a line", false, []string{"TestOld"}},
		{"not beside a failure that has no name", v(func(v *policy.Verified) { v.FailedTests = 2 }), "add a line", false, []string{"TestOld"}},
		{"not when the command ended in another way", v(func(v *policy.Verified) { v.Exit = 139 }), "add a line", false, []string{"TestOld"}},
		{"nor by a signal", v(func(v *policy.Verified) { v.Signal = "SIGKILL" }), "add a line", false, []string{"TestOld"}},
		{"not when fewer tests pass than before", v(func(v *policy.Verified) { v.PassedTests = 2 }), "add a line", false, []string{"TestOld"}},
		{"a build that failed before in the same words", v(func(v *policy.Verified) { v.Failing = []policy.Failing{build} }), "add a line", true, []string{"pkg [build failed]"}},
		{"not one that fails in others", v(func(v *policy.Verified) { v.Failing = []policy.Failing{{Name: build.Name, Text: "undefined: y"}} }), "add a line", false, nil},
		{"not the test that the task names", v(nil), "make TestOld work", false, nil},
		{"nothing where the task is about failing tests", v(nil), "please fix the tests", false, nil},
		{"nor where it says so the other way round", v(nil), "CI is red on main", false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.v
			base.excuse(&got, c.task)
			if d := cmp.Diff(c.known, got.Known); got.Passed != c.passed || d != "" {
				t.Errorf("passed %v, want %v; known (-want +got) %s", got.Passed, c.passed, d)
			}
		})
	}
}
