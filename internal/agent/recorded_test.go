package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/agent/codex"
	"github.com/pawlbot/pawl/policy"
)

const (
	recordedAll  = "../../testdata/agents"
	recordedRuns = recordedAll + "/codex"
)

// allCLIs are the CLIs with recorded runs: codex 0.169.0, claude 2.1.197, gemini
// 0.61.0, opencode 1.18.33 and qwen 0.24.4.
var allCLIs = config.CLIs()

// recorded is one step of a run of a real CLI.
type recorded struct {
	cli, name, stdout, stderr, session string
	exit                               agent.Exit
	want                               struct {
		Ending []policy.Ending `json:"ending"`
		Resets *int64          `json:"resets_at_unix"`
		Edits  bool            `json:"edits_in_git"`
	}
}

// loadRuns reads the runs of one CLI; a second step, which continues the
// session of the first, is a run of its own.
func loadRuns(t *testing.T, dir, cli string) []recorded {
	t.Helper()
	names := agenttest.Names(t, dir)
	if len(names) < 10 {
		t.Fatalf("found %d recorded runs of %s", len(names), cli)
	}
	var runs []recorded
	for _, name := range names {
		text := func(file string) string { return agenttest.Text(t, dir+"/"+name, file) }
		for _, step := range []string{"", "2"} {
			exit := text("exit" + step + ".txt")
			if exit == "" {
				continue
			}
			r := recorded{cli: cli, name: name + step, session: text("rollout-events.jsonl")}
			r.stdout, r.stderr = text("stdout"+step+".jsonl"), text("stderr"+step+".txt")
			code, _, _ := strings.Cut(strings.TrimSpace(exit), " ")
			var err error
			if r.exit.Code, err = strconv.Atoi(code); err != nil {
				t.Fatalf("%s/%s, exit%s.txt: %v", dir, name, step, err)
			}
			if err := json.Unmarshal([]byte(text("expected.json")), &r.want); err != nil {
				t.Fatalf("%s/%s: %v", dir, name, err)
			}
			runs = append(runs, r)
		}
	}
	return runs
}

// inspect reads a recorded run as if it had just ended.
func (r recorded) inspect(t *testing.T) agent.Report {
	t.Helper()
	got, err := agent.Inspect(strings.NewReader(r.stdout), stream(r.cli), agent.InspectOptions{
		Dir: "/agent/" + r.cli + "-" + strings.TrimSuffix(r.name, "2") + "/repo", Exit: &r.exit, Stderr: r.stderr, Now: endOf(r),
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// endOf returns when a recorded run ended, from its session file. All runs were made on one morning.
func endOf(r recorded) time.Time {
	last := time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)
	for line := range strings.Lines(r.session) {
		var entry struct{ Timestamp time.Time }
		if json.Unmarshal([]byte(line), &entry) == nil && !entry.Timestamp.IsZero() {
			last = entry.Timestamp
		}
	}
	return last
}

func TestEveryRecordedRunIsClassified(t *testing.T) {
	for _, cli := range allCLIs {
		for _, run := range loadRuns(t, recordedAll+"/"+cli, cli) {
			t.Run(cli+"/"+run.name, func(t *testing.T) {
				for _, stderr := range []string{run.stderr, ""} { // the exit code must suffice if standard error is lost
					run.stderr = stderr
					got := run.inspect(t)
					if !slices.Contains(run.want.Ending, got.Ending) {
						t.Errorf("ending %q, want one of %q; reasons %q", got.Ending, run.want.Ending, got.Reasons)
					}
					if got.Ending.IsLimit() != (got.Limit != nil) || len(got.Reasons) == 0 {
						t.Errorf("ending %q with limit %+v, reasons %q", got.Ending, got.Limit, got.Reasons)
					}
					if got.Mentions != 0 {
						t.Errorf("%d mentions of a limit in a run without any", got.Mentions)
					}
					if filepath.IsAbs(got.Edits.MaxRepeatPath) {
						t.Errorf("path %q is not relative to the checkout", got.Edits.MaxRepeatPath)
					}
				}
				if detected := clis.Detect([]byte(run.stdout)); run.stdout != "" && detected != cli {
					t.Errorf("detected as %s", detected)
				}
			})
		}
	}
}

// Codex's session file has the reset as a field, its output only as text.
func TestSessionFileRefinesRecordedRun(t *testing.T) {
	for _, run := range loadRuns(t, recordedRuns, config.Codex) {
		t.Run(run.name, func(t *testing.T) {
			got := run.inspect(t)
			checkReset(t, run, got, time.Minute)
			session, err := codex.FoldSession(strings.NewReader(run.session), endOf(run))
			if err != nil {
				t.Fatal(err)
			}
			got.Refine(session, endOf(run))
			if !slices.Contains(run.want.Ending, got.Ending) || got.Ending.IsLimit() != (got.Limit != nil) || len(got.Reasons) == 0 {
				t.Errorf("ending %q, want one of %q; limit %+v, reasons %q", got.Ending, run.want.Ending, got.Limit, got.Reasons)
			}
			checkReset(t, run, got, 0)
		})
	}
}

// checkReset compares the reset with the true one. The text shows it without seconds.
func checkReset(t *testing.T, run recorded, got agent.Report, unit time.Duration) {
	t.Helper()
	if run.want.Resets == nil {
		if got.Limit != nil && !got.Limit.ResetsAt.IsZero() {
			t.Errorf("a reset at %s was invented", got.Limit.ResetsAt)
		}
		return
	}
	if got.Limit == nil || got.Limit.ResetsAt.IsZero() {
		t.Fatalf("limit %+v, want a reset", got.Limit)
	}
	want, source := time.Unix(*run.want.Resets, 0).UTC(), policy.SourceStructured
	if unit > 0 {
		want, source = want.Truncate(unit), policy.SourceText
	}
	if !got.Limit.ResetsAt.Equal(want) || got.Limit.Source != source {
		t.Errorf("reset %s (%s), want %s (%s)", got.Limit.ResetsAt, got.Limit.Source, want, source)
	}
}

func TestRecordedDetailsAreRead(t *testing.T) {
	got := read(t, config.Codex, "edit-loop")
	if want := (policy.Edits{Operations: 26, Files: 1, MaxRepeat: 26, MaxRepeatPath: "counter.txt"}); counts(got.Edits) != want || got.ToolCalls != 26 {
		t.Errorf("edit-loop: %+v, %d calls; want %+v", got.Edits, got.ToolCalls, want)
	}
	if want := (policy.Tokens{Input: 32400, CachedInput: 5400, Output: 918}); got.Tokens != want {
		t.Errorf("edit-loop: tokens %+v, want %+v", got.Tokens, want)
	}
	got = read(t, config.Codex, "shell-edit")
	if got.Edits.Operations != 0 || got.ToolCalls != 1 {
		t.Errorf("shell-edit: %+v, %d calls", got.Edits, got.ToolCalls)
	}
	got = read(t, config.Codex, "usage-limit")
	if !strings.HasPrefix(got.Evidence(), "You’ve hit your usage limit.") || got.Limit.Message != got.Failure {
		t.Errorf("usage-limit: evidence %q, limit %+v", got.Evidence(), got.Limit)
	}
}

func TestResumedSessionCountsOnlyItsOwnTokens(t *testing.T) {
	session, err := codex.FoldSession(strings.NewReader(`
{"type":"event_msg","payload":{"type":"task_started"}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":100,"cached_input_tokens":10,"output_tokens":5}}}}
{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"old","codex_error_info":"usage_limit_exceeded"}}}
{"type":"event_msg","payload":{"type":"task_started"}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":150,"cached_input_tokens":10,"output_tokens":9}}}}
{"type":"event_msg","payload":{"type":"task_complete"}}
`), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if want := (policy.Tokens{Input: 50, Output: 4}); session.Tokens == nil || *session.Tokens != want {
		t.Errorf("tokens %+v, want %+v", session.Tokens, want)
	}
	if session.Ending != "" {
		t.Errorf("the first turn's error %q belongs to the past", session.Ending)
	}
}

// Pawl reads the file at the end of the attempt, maybe an hour after the line was written.
func TestRelativeResetCountsFromTheLinesTime(t *testing.T) {
	written := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	const line = `{"timestamp":"%s","type":"event_msg","payload":{"type":"token_count","rate_limits":{"primary":{"used_percent":9,"window_minutes":299,"resets_in_seconds":600}}}}`
	for at, want := range map[string]time.Time{
		"2026-11-21T08:00:00.000Z": written.Add(10 * time.Minute),
		"2027-11-21T08:00:00.000Z": written.Add(time.Hour + 10*time.Minute),
		"soon":                     written.Add(time.Hour + 10*time.Minute),
	} {
		session, err := codex.FoldSession(strings.NewReader(fmt.Sprintf(line, at)), written.Add(time.Hour))
		if err != nil || len(session.Windows) != 1 || !session.Windows[0].ResetsAt.Equal(want) {
			t.Errorf("%s: windows %v, error %v; want the reset %s", at, session.Windows, err, want)
		}
	}
}

// Each event has the windows of one model family.
func TestWindowsOfAllFamiliesAreKept(t *testing.T) {
	const line = `{"type":"event_msg","payload":{"type":"token_count","rate_limits":{"limit_name":%s,"primary":{"used_percent":%d,"window_minutes":300}}}}` + "\n"
	text := fmt.Sprintf(line, "null", 90) + fmt.Sprintf(line, "null", 97) + fmt.Sprintf(line, `"spark"`, 3)
	session, err := codex.FoldSession(strings.NewReader(text), time.Now())
	used := map[string]float64{}
	for _, w := range session.Windows {
		used[w.Name] = w.Used
	}
	if diff := cmp.Diff(map[string]float64{"5h": 0.97, "spark-5h": 0.03}, used); diff != "" || err != nil {
		t.Errorf("error %v; windows (-want +got)\n%s", err, diff)
	}
}

// sessionFile writes the file of a session of Codex into a new HOME.
func sessionFile(t *testing.T, thread, text string) (home, path string) {
	t.Helper()
	home = t.TempDir()
	path = filepath.Join(home, ".codex/sessions/2026/11/21/rollout-2026-11-21T08-06-25-"+thread+".jsonl")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	return home, path
}

func TestSessionFileIsFoundInHome(t *testing.T) {
	const thread = "01a1fd24-701f-7592-bb9e-941e16d06283"
	content := agenttest.Text(t, recordedRuns+"/usage-limit", "rollout-events.jsonl")
	home, name := sessionFile(t, thread, content)
	session, err := stream(config.Codex).ReadSession(home, thread, time.Date(2026, 11, 21, 8, 6, 26, 0, time.UTC))
	if err != nil || session.Ending != policy.UsageLimit || len(session.Windows) != 2 {
		t.Errorf("session %+v, error %v", session, err)
	}
	if _, err := stream(config.Codex).ReadSession(home, "../../../etc/passwd", time.Now()); err == nil {
		t.Error("a path was accepted as a session")
	}
	outside := filepath.Join(t.TempDir(), "x")
	if err := errors.Join(os.WriteFile(outside, []byte(content), 0o644), os.Remove(name), os.Symlink(outside, name)); err != nil {
		t.Fatal(err)
	}
	if _, err := stream(config.Codex).ReadSession(home, thread, time.Now()); err == nil {
		t.Error("a link out of HOME was followed")
	}
}
