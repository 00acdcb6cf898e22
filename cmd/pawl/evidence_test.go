package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/local"
)

func TestPawlRunReportsChangedTests(t *testing.T) {
	t.Parallel()
	l := newLocal(t, "cat > /dev/null; echo two >> a.txt; printf 'echo ok 1 - b\\n' > test.sh\n")
	l.write("widgets/test.sh", "echo ok 1 - a; grep -vq two a.txt && ! grep -q two a.txt && echo ok 2 - b || { echo not ok 2 - b; exit 1; }\n")
	l.commit("Test")
	args := []string{"--task", "Add a second line to a.txt.", "--verify", "sh test.sh"}
	code, out, stderr := l.run(append(args, "--json")...)
	var r local.Result
	err := json.Unmarshal([]byte(out), &r)
	refused := code == exitFailed && strings.Contains(stderr, "the work is not verified: passes only with changed tests")
	if err != nil || len(r.Attempts) != 1 || !refused {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, stderr)
	}
	a := r.Attempts[0]
	if diff := cmp.Diff(local.Tests{Removed: []string{"a"}, Changed: []string{"test.sh"}}, a.Tests); diff != "" || a.Verify[0].At != "change" || a.TestEvidence.Without[0].At != "base" {
		t.Errorf("%s\n%s", diff, out)
	}
	_, out, _ = l.run(args...)
	for _, want := range []string{"removes 1 test (a)", "with the tests as they were: 1 pass, b fails", "they show nothing of it"} {
		if !strings.Contains(out, want) {
			t.Errorf("the receipt does not contain %q:\n%s", want, out)
		}
	}
}
