package agent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

func loadRecorded(t *testing.T) []recorded { return loadRuns(t, recordedRuns, config.Codex) }

// inspect reads a recorded run as it was when it ended.
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

// endOf is when a recorded run ended, from its session file; the runs were all
// made on one morning.
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
				for _, stderr := range []string{run.stderr, ""} { // the exit code must do where standard error is lost
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

func TestEveryRecordedCodexRunIsClassified(t *testing.T) {
	for _, run := range loadRecorded(t) {
		t.Run(run.name, func(t *testing.T) {
			now := endOf(run)
			got := run.inspect(t)
			if !slices.Contains(run.want.Ending, got.Ending) {
				t.Errorf("ending %q, want one of %q; reasons %q", got.Ending, run.want.Ending, got.Reasons)
			}
			checkReset(t, run, got, time.Minute)
			session, err := codex.FoldSession(strings.NewReader(run.session))
			if err != nil {
				t.Fatal(err)
			}
			got.Refine(session, now)
			if !slices.Contains(run.want.Ending, got.Ending) {
				t.Errorf("refined ending %q, want one of %q; reasons %q", got.Ending, run.want.Ending, got.Reasons)
			}
			checkReset(t, run, got, 0)
			if got.Ending.IsLimit() != (got.Limit != nil) {
				t.Errorf("ending %q with limit %+v", got.Ending, got.Limit)
			}
			if got.Mentions != 0 {
				t.Errorf("%d mentions of a limit in a run without any", got.Mentions)
			}
			if len(got.Reasons) == 0 {
				t.Error("no reasons")
			}
			if filepath.IsAbs(got.Edits.MaxRepeatPath) {
				t.Errorf("path %q is not relative to the checkout", got.Edits.MaxRepeatPath)
			}
		})
	}
}

// checkReset compares the reset with the true one, which the text shows
// without its seconds.
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
	read := func(name string) agent.Report {
		t.Helper()
		got, err := agent.Inspect(strings.NewReader(agenttest.Text(t, recordedRuns+"/"+name, "stdout.jsonl")), stream(config.Codex),
			agent.InspectOptions{Dir: "/agent/codex-" + name + "/repo", Exit: &agent.Exit{}, Now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := read("edit-loop")
	if want := (policy.Edits{Operations: 26, Files: 1, MaxRepeat: 26, MaxRepeatPath: "counter.txt"}); counts(got.Edits) != want || got.ToolCalls != 26 {
		t.Errorf("edit-loop: %+v, %d calls; want %+v", got.Edits, got.ToolCalls, want)
	}
	if want := (policy.Tokens{Input: 32400, CachedInput: 5400, Output: 918}); got.Tokens != want {
		t.Errorf("edit-loop: tokens %+v, want %+v", got.Tokens, want)
	}
	got = read("edit-success")
	if got.FinalMessage != "Done. I created hello.txt with one line of text." || got.SessionID == "" || got.Turns != 1 {
		t.Errorf("edit-success: %+v", got)
	}
	got = read("shell-edit")
	if got.Edits.Operations != 0 || got.ToolCalls != 1 {
		t.Errorf("shell-edit: %+v, %d calls", got.Edits, got.ToolCalls)
	}
	got = read("usage-limit")
	if !strings.HasPrefix(got.Evidence(), "You’ve hit your usage limit.") || got.Limit.Message != got.Failure {
		t.Errorf("usage-limit: evidence %q, limit %+v", got.Evidence(), got.Limit)
	}
}

func TestAResumedSessionCountsOnlyItsOwnTokens(t *testing.T) {
	session, err := codex.FoldSession(strings.NewReader(`
{"type":"event_msg","payload":{"type":"task_started"}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":100,"cached_input_tokens":10,"output_tokens":5}}}}
{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"old","codex_error_info":"usage_limit_exceeded"}}}
{"type":"event_msg","payload":{"type":"task_started"}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":150,"cached_input_tokens":10,"output_tokens":9}}}}
{"type":"event_msg","payload":{"type":"task_complete"}}
`))
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

func TestASessionFileIsFoundInHome(t *testing.T) {
	const thread = "01a1fd24-701f-7592-bb9e-941e16d06283"
	home := t.TempDir()
	dir := filepath.Join(home, ".codex/sessions/2026/11/21")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	content := []byte(agenttest.Text(t, recordedRuns+"/usage-limit", "rollout-events.jsonl"))
	name := filepath.Join(dir, "rollout-2026-11-21T08-06-25-"+thread+".jsonl")
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
	session, err := stream(config.Codex).ReadSession(home, thread)
	if err != nil || session.Ending != policy.UsageLimit || len(session.Windows) != 2 {
		t.Errorf("session %+v, error %v", session, err)
	}
	if _, err := stream(config.Codex).ReadSession(home, "../../../etc/passwd"); err == nil {
		t.Error("a path passed as a session")
	}
	outside := filepath.Join(t.TempDir(), "x")
	if err := errors.Join(os.WriteFile(outside, content, 0o644), os.Remove(name), os.Symlink(outside, name)); err != nil {
		t.Fatal(err)
	}
	if _, err := stream(config.Codex).ReadSession(home, thread); err == nil {
		t.Error("a link out of HOME was followed")
	}
}

func TestEqualInputGivesEqualReports(t *testing.T) {
	for _, run := range loadRecorded(t)[:10] {
		var reports [][]byte
		for range 2 {
			r, err := agent.Inspect(strings.NewReader(run.stdout), stream(config.Codex), agent.InspectOptions{Exit: &run.exit, Now: endOf(run)})
			if err != nil {
				t.Fatal(err)
			}
			b, _ := json.Marshal(r)
			reports = append(reports, b)
		}
		if !bytes.Equal(reports[0], reports[1]) {
			t.Errorf("%s: %s and %s", run.name, reports[0], reports[1])
		}
	}
}
