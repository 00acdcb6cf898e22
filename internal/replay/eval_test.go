//go:build eval

package replay

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
)

// TestEvalReplay prints replays of the recorded runaways and of healthy work, and checks the known results.
func TestEvalReplay(t *testing.T) {
	const corpora = "../../../shared/corpora"
	if _, err := os.Stat(corpora); err != nil {
		t.Skipf("the evaluation data is missing: %v", err)
	}
	known := map[string]string{
		"hm729-rapid-loop-section.txt":      "stopped after 3, usage_limit_breaker, 7 of 10 avoided, 10 limits",
		"hm729-usage-limit-pattern.txt.gz":  "not stopped, , 0 of 0 avoided, 0 limits",
		"hm715-codex-auth-401-loop.log":     "stopped after 1, auth, 27 of 28 avoided, 0 limits",
		"hm719-codex-usage-limit-single.md": "stopped after 1, usage_limit, 0 of 1 avoided, 1 limits",
		"la157-agent-free-usage-limit.log":  "stopped after 1, usage_limit, 0 of 1 avoided, 1 limits",
	}
	for _, folder := range []string{"loops", "healthy", "attempts"} {
		files, err := filepath.Glob(filepath.Join(corpora, folder, "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			rec, err := readRecordings([]string{file}, "", opens(nil), config.Default().Policy.Severity)
			if err != nil {
				t.Logf("%-40s not a recording: %.120s", name, err)
				continue
			}
			out, err := playBack(rec.entries, config.Default())
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			r := reportReplay(out, rec)
			lines := outline(r)
			summary := lines[len(lines)-1]
			t.Logf("%-40s %s, %d s saved", name, summary, r.AvoidedSeconds)
			if want, ok := known[name]; ok && !strings.HasPrefix(summary, want) {
				t.Errorf("%s: %s, want %s", name, summary, want)
			}
			stopped := slices.ContainsFunc(r.Attempts, func(a replayAttempt) bool { return a.Avoided && a.Decision != "done" })
			if folder == "healthy" && (stopped || r.UsageLimitAttempts > 0) {
				t.Errorf("%s: healthy work was stopped: %s", name, lines)
			}
		}
	}
	for _, pattern := range []string{"hm-pr4-ci-session*", "la152-attempt*"} {
		files, err := filepath.Glob(filepath.Join(corpora, "attempts", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range outline(replayed(t, config.Default(), "", files...)) {
			t.Logf("%-40s %s", pattern, line)
		}
	}
}
