package testreport

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWatchReadsOnlyNewReports(t *testing.T) {
	dir := t.TempDir()
	write := func(name, failing string) {
		text := `<testsuite tests="1"><testcase classname="suite" name="` + failing + `"><failure message="no"/></testcase></testsuite>`
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old.xml", "old")
	write("rewritten.xml", "before")
	changed := Watch(dir, func(name string) bool { return filepath.Ext(name) == ".xml" })
	write("rewritten.xml", "afterwards")
	write("new.xml", "new")
	write("new.txt", "of another name")
	var got []string
	for _, r := range changed() {
		for _, f := range r.Failures {
			got = append(got, f.Name)
		}
	}
	if diff := cmp.Diff([]string{"suite.new", "suite.afterwards"}, got); diff != "" {
		t.Errorf("read (-want +got)\n%s", diff)
	}
}
