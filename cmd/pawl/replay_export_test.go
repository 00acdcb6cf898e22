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
	"github.com/pawlbot/pawl/internal/testrig"
)

// export runs `pawl status --export` beside the serving process.
func (r *rig) export(issue string) []byte {
	r.T.Helper()
	out, err := exec.Command(testrig.Program, "status", "--export", issue, "--config", filepath.Join(r.Dir, "pawl.yml")).Output()
	r.Must(err)
	return out
}

// replayTrail runs the built `pawl replay` over a trail on standard input.
func (r *rig) replayTrail(trail []byte, args ...string) replay.Report {
	r.T.Helper()
	cmd := exec.Command(testrig.Program, append([]string{"replay", "--json", "-"}, args...)...)
	cmd.Stdin = bytes.NewReader(trail)
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		r.T.Fatalf("%v: %s", err, ended.Stderr)
	}
	r.Must(err)
	var report replay.Report
	r.Must(json.Unmarshal(out, &report))
	return report
}

func TestAReplayAgreesWithTheRunThatWasExported(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(fmt.Sprintf(testrig.Limited, testrig.ResetText(time.Now().Add(5*time.Hour))), "stream: codex")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the first limit", func() bool { return r.Thread(testrig.ThreadName(n)).State == "stopped" })
	for range 2 {
		_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve")
		r.Must(err)
		r.Settle()
	}
	s := r.Over(testrig.ThreadName(n))
	trail := r.export(testrig.ThreadName(n))
	got := r.replayTrail(trail, "--config", filepath.Join(r.Dir, "pawl.yml"))
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
	strict := filepath.Join(r.Dir, "strict.yml")
	text, err := os.ReadFile(filepath.Join(r.Dir, "pawl.yml"))
	r.Must(err)
	r.Must(os.WriteFile(strict, append(text, "policy: {usage_limit: {max_consecutive: 2}}\n"...), 0o600))
	check(r.replayTrail(trail, "--config", strict), 2, 1)
}

func TestAThreadThatIsUnknownCannotBeExported(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent("exit 1\n", "")
	r.Start()
	for name, says := range map[string]string{testrig.Repo + "#99": "nothing is logged of it", "nonsense": "want owner/repo#number"} {
		out, err := exec.Command(testrig.Program, "status", "--export", name, "--config", filepath.Join(r.Dir, "pawl.yml")).CombinedOutput()
		if err == nil || !strings.Contains(string(out), says) {
			t.Errorf("%s: %v, %s; want %q", name, err, out, says)
		}
	}
}
