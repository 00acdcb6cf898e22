package attempt

import (
	"strings"
	"testing"
)

func TestLongVerifyOutputIsParsedWhole(t *testing.T) {
	t.Parallel()
	s := newStage(t, verifying("yes 'one more line of output' | head -c 2000000; sh test.sh", map[string]string{
		"a.txt":   "one\n",
		"test.sh": "echo 1..1; if grep -q spoilt a.txt; then echo 'not ok 1 - it is clean'; exit 1; fi; echo 'ok 1 - it is clean'\n",
	}))
	s.agent("echo spoilt >> a.txt\n", "")
	r := s.attempt(1)
	if len(r.Verify) != 1 || len(r.Tests) != 1 || r.Tests[0] != "it is clean" {
		t.Fatalf("verified by %d commands, failing tests %q; want the test at the end of the output", len(r.Verify), r.Tests)
	}
	output := r.Verify[0].Output
	if len(output) > verifyOutput+len("…\n") || !strings.HasSuffix(strings.TrimSpace(output), "not ok 1 - it is clean") {
		t.Errorf("%d bytes of output are stored, which end with %q", len(output), output[max(0, len(output)-100):])
	}
}
