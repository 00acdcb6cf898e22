package limit

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
)

// The test looks up recorded runs. For other sources it only checks that one is named.
func TestEveryWordingHasItsSource(t *testing.T) {
	recorded := map[string]string{}
	for _, cli := range config.CLIs() {
		paths, err := filepath.Glob("../../testdata/agents/" + cli + "/*.txtar")
		if err != nil || len(paths) == 0 {
			t.Fatalf("recorded runs of %s: %d, %v", cli, len(paths), err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			recorded[cli] += string(text)
		}
	}
	seen := map[string]bool{}
	var all []wording
	for _, f := range families {
		all = append(all, f.wordings...)
	}
	for _, w := range all {
		if w.source == "" || seen[w.words] {
			t.Errorf("%s: no source, or two", w.words)
		}
		seen[w.words] = true
		text, runs := recorded[w.source]
		if runs && !regexp.MustCompile("(?i)"+strings.ReplaceAll(w.words, "^", "")).MatchString(text) {
			t.Errorf("%s is in no recorded run of %s", w.words, w.source)
		}
	}
}
