package attempt

import (
	"testing"

	"github.com/pawlbot/pawl/policy"
)

func TestChangeIsVerifiedAfterAnyEnding(t *testing.T) {
	for _, c := range []struct {
		receipt policy.Receipt
		want    bool
	}{
		{policy.Receipt{Ending: policy.Completed, Declined: "no"}, false},
		{policy.Receipt{Ending: policy.Completed, Commit: "c"}, true},
		{policy.Receipt{Ending: policy.Crashed, Commit: "c", Exit: 1}, true},
		{policy.Receipt{Ending: policy.CutOff, Commit: "c"}, true},
		{policy.Receipt{Ending: policy.UsageLimit, Commit: "c"}, true},
		{policy.Receipt{Ending: policy.UsageLimit}, false},
		{policy.Receipt{Ending: policy.NoAnswer}, false},
	} {
		a := Attempt{Receipt: c.receipt, Ground: &Ground{}}
		if got := a.verifiable(); got != c.want {
			t.Errorf("%s with commit %q: %v", c.receipt.Ending, c.receipt.Commit, got)
		}
	}
}
