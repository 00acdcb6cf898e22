package thread

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
)

func TestFirstFailureIsKeptAfterManyOthers(t *testing.T) {
	all := []happened{solve("one"), start(1, 1, 1), end(1, edited("c1"))}
	for i := range 3 * maxChecks {
		all = append(all, happened{KindIgnored, Feedback{Source: policy.FromCheckRun, Check: fmt.Sprint("job ", i), Conclusion: "failure", SHA: "c1"}})
	}
	red := fold(t, all...).Red()
	if want := begin.Add(3 * time.Second); !red.First.Equal(want) {
		t.Errorf("the first failure was at %v, want %v", red.First, want)
	}
	all = append(all, happened{KindChecked, Checked{SHA: "c1"}})
	if red := fold(t, all...).Red(); red.First.Equal(begin.Add(3 * time.Second)) {
		t.Error("the first failure counts after the checks were read")
	}
}
