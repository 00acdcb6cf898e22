// Package needs says what a test needs beyond Go and git, and leaves it out where that is missing. Only tests import it.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// All leaves a test to `make test-all`: it needs programs that have to be installed, or minutes. `make test` lists such
// tests by these words.
func All(t testing.TB, why string) {
	t.Helper()
	if !AreAll() {
		t.Skip("left to make test-all: " + why)
	}
}

// AreAll reports whether `make test-all` runs. Tests then play their long versions.
func AreAll() bool { return os.Getenv("PAWL_TESTS") == "all" }

// Program leaves a test to `make test-all`, which installs the program that it needs.
func Program(t testing.TB, name string) {
	t.Helper()
	All(t, name)
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed; .ci/setup installs it", name)
	}
}
