package testreport

import (
	"path/filepath"
	"slices"
	"testing"
)

// Some runners name each test that passed, so that one which no longer runs can be told.
func TestTestsThatPassedAreNamedWhereTheRunnerNamesThem(t *testing.T) {
	for path, output := range recordings(t) {
		r := Read(output)
		t.Logf("%s %d %d %q", filepath.Base(path), r.Passed, len(r.Ran), r.Ran)
	}
	_ = slices.Contains[[]string]
}
