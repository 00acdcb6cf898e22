package goldentest

import "testing"

func TestUpdateCommandNamesTheTestsPackage(t *testing.T) {
	want := "go test github.com/pawlbot/pawl/internal/goldentest -run '^TestPages$' -update"
	if got := accept("TestPages/first page"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
