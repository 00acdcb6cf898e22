package checkrun

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

func TestDetailsCountFilesChangedAfterTheLastTestRun(t *testing.T) {
	for files, want := range map[int]string{0: "", 1: "1 file changed after the last test run.", 3: "3 files changed after the last test run."} {
		var p page
		var a Attempt
		a.Detail, a.Trajectory = "d", policy.Trajectory{TestRuns: 2, FilesAfterTests: files}
		p.addAttempt(a)
		text := p.fit()
		if named := strings.Contains(text, "after the last test run"); named != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%d files: %s", files, text)
		}
	}
}
