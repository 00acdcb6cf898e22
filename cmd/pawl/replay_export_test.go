package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/replay"
)

// export runs `pawl status --export` beside the serving process.
func (r *rig) export(issue string) []byte {
	r.t.Helper()
	out, err := exec.Command(pawlBinary, "status", "--export", issue, "--config", filepath.Join(r.dir, "pawl.yml")).Output()
	r.must(err)
	return out
}

// replayTrail runs the built `pawl replay` over a trail on standard input.
func (r *rig) replayTrail(trail []byte, args ...string) replay.Report {
	r.t.Helper()
	cmd := exec.Command(pawlBinary, append([]string{"replay", "--json", "-"}, args...)...)
	cmd.Stdin = bytes.NewReader(trail)
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		r.t.Fatalf("%v: %s", err, ended.Stderr)
	}
	r.must(err)
	var report replay.Report
	r.must(json.Unmarshal(out, &report))
	return report
}

func TestAReplayAgreesWithTheRunThatWasExported(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(fmt.Sprintf(limited, resetText(time.Now().Add(5*time.Hour))), "stream: codex")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.await("the first limit", func() bool { return r.thread(threadName(n)).State == "stopped" })
	for range 2 {
		_, err := r.world.Comment(rigRepo, n, writer, "/pawl solve")
		r.must(err)
		r.settle()
	}
	s := r.over(threadName(n))
	trail := r.export(threadName(n))
	got := r.replayTrail(trail, "--config", filepath.Join(r.dir, "pawl.yml"))
	var decided []string
	for _, a := range got.Attempts {
		decided = append(decided, fmt.Sprintf("%s: %s by %s", a.Outcome, a.Decision, a.Rule))
	}
	want := []string{"usage_limit: attempt by feedback", "usage_limit: attempt by feedback", "usage_limit: stop by " + string(s.Rule)}
	if d := cmp.Diff(want, decided); d != "" || s.Rule != "usage_limit_breaker" {
		t.Error(s.Rule, d)
	}
	check := func(r replay.Report, stopped, avoided int) {
		t.Helper()
		if r.StoppedAfter == nil || *r.StoppedAfter != stopped || r.AvoidedAttempts != avoided || r.RecordedAttempts != 3 || r.UsageLimitAttempts != 3 || r.UsageLimitMentions != 0 {
			t.Errorf("%+v, want a stop after %d and %d of 3 attempts at a limit avoided", r, stopped, avoided)
		}
	}
	check(got, 3, 0)
	// The same run under a policy that stops sooner.
	strict := filepath.Join(r.dir, "strict.yml")
	text, err := os.ReadFile(filepath.Join(r.dir, "pawl.yml"))
	r.must(err)
	r.must(os.WriteFile(strict, append(text, "policy: {usage_limit: {max_consecutive: 2}}\n"...), 0o600))
	check(r.replayTrail(trail, "--config", strict), 2, 1)
}

func TestAThreadThatIsUnknownCannotBeExported(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.agent("exit 1\n", "")
	r.start()
	for name, says := range map[string]string{rigRepo + "#99": "nothing is logged of it", "nonsense": "want owner/repo#number"} {
		out, err := exec.Command(pawlBinary, "status", "--export", name, "--config", filepath.Join(r.dir, "pawl.yml")).CombinedOutput()
		if err == nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: %v, %s; want %q", name, err, out, says)
		}
	}
}
