package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/replay"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestReplayAgreesWithTheExportedRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(fmt.Sprintf(testrig.Limited, testrig.ResetText(time.Now().Add(5*time.Hour))), "stream: codex")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Ending(n)
	for range 2 {
		r.Writes(n, testrig.Writer, "/pawl solve")
		r.Ending(n)
	}
	trail := filepath.Join(r.Dir, "trail.jsonl")
	write(t, trail, r.shell(exitDone, "", "status", "--export", testrig.ThreadName(n)))
	read := func(config string, stopped, avoided int) (report replay.Report) {
		t.Helper()
		code, out, stderr := pawl(t, r.Dir, nil, "replay", "--json", trail, "--config", config)
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != exitDone || report.StoppedAfter == nil {
			t.Fatalf("exit %d, %v: %s", code, err, stderr)
		}
		got := []int{*report.StoppedAfter, report.AvoidedAttempts, report.RecordedAttempts, report.UsageLimitAttempts, report.UsageLimitMentions}
		if diff := cmp.Diff([]int{stopped, avoided, 3, 3, 0}, got); diff != "" {
			t.Errorf("policy of %s: the stopping attempt; attempts avoided, recorded, at a usage limit; mentions of usage limits (-want +got)\n%s", config, diff)
		}
		return report
	}
	config := r.File()
	var decided []string
	for _, a := range read(config, 3, 0).Attempts {
		decided = append(decided, fmt.Sprintf("%s: %s by %s", a.Outcome, a.Decision, a.Rule))
	}
	want := []string{"usage_limit: attempt by feedback", "usage_limit: attempt by feedback", "usage_limit: stop by " + string(r.Over(testrig.ThreadName(n)).Rule)}
	if diff := cmp.Diff(want, decided); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// Replay the same run with a policy that stops earlier.
	text, err := os.ReadFile(config)
	r.Must(err)
	strict := filepath.Join(r.Dir, "strict.yml")
	write(t, strict, string(text)+"policy: {usage_limit: {max_consecutive: 2}}\n")
	read(strict, 2, 1)
}
