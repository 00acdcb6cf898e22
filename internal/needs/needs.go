// Package needs skips tests whose requirements beyond Go and git are missing. Only tests import it.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// All skips a test outside `make test-all`, because it needs other programs or takes minutes. `make test` prints why.
func All(t testing.TB, why string) {
	t.Helper()
	if !AreAll() {
		t.Skip("left to make test-all: " + why)
	}
}

// AreAll reports whether `make test-all` runs. Tests then run their long versions.
func AreAll() bool { return os.Getenv("PAWL_TEST_ALL") != "" }

// Program returns a program's path. If the program is missing, the test is skipped; `make test-all` installs the
// program.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		All(t, name)
		t.Skipf("%s is not installed; .ci/setup installs it", name)
	}
	return path
}
