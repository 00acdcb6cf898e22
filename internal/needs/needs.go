// Package needs says what a test needs beyond Go and git, and leaves it out where that is missing. Only tests import it.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// All leaves a test to `make test-all`, because it needs programs that have to be installed, or minutes. `make test` prints
// the reason.
func All(t testing.TB, why string) {
	t.Helper()
	if !AreAll() {
		t.Skip("left to make test-all: " + why)
	}
}

// AreAll reports whether `make test-all` runs. Tests then play their long versions.
func AreAll() bool { return os.Getenv("PAWL_TEST_ALL") != "" }

// Program is the path of a program that a test needs. Where there is none the test is left to `make test-all`, which
// installs it.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		All(t, name)
		t.Skipf("%s is not installed; .ci/setup installs it", name)
	}
	return path
}
