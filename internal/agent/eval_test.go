//go:build eval

package agent_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

// shared is the folder of the recorded runs and the corpora, next to the repository.
const shared = "../../../shared"

func needShared(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(shared); err != nil {
		t.Skipf("the evaluation data is missing: %v", err)
	}
}

// TestEvalRuns prints the confusion matrix of all recorded runs, once with
// standard error and once from standard output and the exit code alone.
func TestEvalRuns(t *testing.T) {
	needShared(t)
	for _, full := range []bool{true, false} {
		matrix, right, all, resets, exact := map[string]map[string]int{}, 0, 0, 0, 0
		for _, cli := range allCLIs {
			if _, err := os.Stat(shared + "/agents/" + cli); err != nil {
				continue // recorded only for testdata/agents
			}
			for _, run := range loadRuns(t, shared+"/agents/"+cli, cli) {
				if !full {
					run.stderr = ""
				}
				got := run.inspect(t)
				ok := slices.Contains(run.want.Ending, got.Ending)
				all++
				if ok {
					right++
				} else {
					t.Errorf("%s/%s: %s, want %v: %q", cli, run.name, got.Ending, run.want.Ending, got.Reasons)
				}
				row := string(run.want.Ending[0])
				if matrix[row] == nil {
					matrix[row] = map[string]int{}
				}
				matrix[row][string(got.Ending)]++
				if run.want.Resets != nil {
					resets++
					if got.Limit != nil && !got.Limit.ResetsAt.IsZero() && got.Limit.ResetsAt.Sub(time.Unix(*run.want.Resets, 0)).Abs() < time.Minute {
						exact++
					}
				}
			}
		}
		fmt.Printf("\n%d of %d runs classified as expected (standard error known: %v); %d of %d resets right to the minute\n", right, all, full, exact, resets)
		for _, row := range slices.Sorted(maps.Keys(matrix)) {
			fmt.Printf("  %-16s →", row)
			for _, col := range slices.Sorted(maps.Keys(matrix[row])) {
				fmt.Printf(" %s %d", col, matrix[row][col])
			}
			fmt.Println()
		}
	}
}

// corpusMessage is one row of usage-limit-messages.jsonl.
type corpusMessage struct {
	Tool, Text, Cls string
	ResetFormat     string `json:"reset_format"`
	Structured      bool
}

// TestEvalMessages presents each message as its CLI would and prints its classification.
func TestEvalMessages(t *testing.T) {
	needShared(t)
	want := map[string][]policy.Ending{
		"usage_limit": {policy.UsageLimit}, "credits_exhausted": {policy.UsageLimit}, "short_rate_limit": {policy.RateLimited}, "rate_limit": {policy.RateLimited},
		"model_capacity": {policy.Overloaded}, "overloaded": {policy.Overloaded}, "server_error": {policy.Overloaded}, "status_not_limit": {policy.Completed},
	}
	counts, rights, known := map[string][2]int{}, 0, 0
	for _, line := range readJSONL(t, shared+"/corpora/usage-limit-messages.jsonl") {
		var m corpusMessage
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		now, reset, named := oracle(m.ResetFormat, m.Text, time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC))
		for _, shown := range present(t, m) {
			got, err := agent.Inspect(strings.NewReader(shown.stdout), shown.adapter, agent.InspectOptions{Exit: shown.exit, Stderr: shown.stderr, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			c := counts[m.Cls]
			c[1]++
			if slices.Contains(want[m.Cls], got.Ending) {
				c[0]++
			} else {
				t.Errorf("%s as %s %s: %s (%q), want %s: %q", m.Tool, shown.adapter.Stream, shown.how, got.Ending, got.Reasons, m.Cls, m.Text)
			}
			counts[m.Cls] = c
			resets, source := "unknown", "-"
			if got.Limit != nil {
				source = got.Limit.Source
				if !got.Limit.ResetsAt.IsZero() {
					resets = got.Limit.ResetsAt.Format(time.RFC3339)
				}
			}
			verdict := "-"
			if m.Cls != "status_not_limit" && shown.how != "waiting" {
				known++
				if verdict = "right"; named != (resets != "unknown") || named && got.Limit.ResetsAt.Sub(bound(reset, now)).Abs() > time.Second {
					verdict = "WRONG"
					t.Errorf("%s as %s %s: reset %s, want %s: %q", m.Tool, shown.adapter.Stream, shown.how, resets, reset.UTC().Format(time.RFC3339), m.Text)
				} else {
					rights++
				}
			}
			fmt.Printf("%-18s %-12s %-8s %-12s %-28s %-20s %-10s %-5s %.80q\n", m.Cls, m.Tool, shown.adapter.Stream, got.Ending, m.ResetFormat, resets, source, verdict, m.Text)
		}
	}
	fmt.Printf("resets: %d of %d right (unknown where the text names none)\n", rights, known)
	for _, cls := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%-18s %d of %d\n", cls, counts[cls][0], counts[cls][1])
	}
}

// bound clamps a reset to a report's bounds.
func bound(at, now time.Time) time.Time {
	switch {
	case at.Before(now.Add(limit.Soonest)):
		return now.Add(limit.Soonest)
	case at.After(now.Add(limit.Latest)):
		return now.Add(limit.Latest)
	}
	return at
}

// present shows a message in every form that its tool may use.
func present(t testing.TB, m corpusMessage) []presentation {
	cli := map[string]string{"codex": config.Codex, "claude-code": config.Claude, "gemini-cli": config.Gemini, "opencode": config.OpenCode, "zai-glm": config.OpenCode}[m.Tool]
	switch {
	case m.Structured && cli == config.Codex: // a line of the session file
		return []presentation{{"line", stream(cli), m.Text + "\n" + `{"type":"turn.started"}` + "\n" +
			`{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"Done."}}` + "\n" + `{"type":"turn.completed"}`, "", &agent.Exit{}}}
	case m.Structured && cli == config.Claude && m.Cls == "status_not_limit":
		return []presentation{{"line", stream(cli), m.Text + "\n" + `{"type":"result","subtype":"success","is_error":false,"result":"Done."}`, "", &agent.Exit{}}}
	case m.Structured && cli == config.Claude:
		return []presentation{{"line", stream(cli), m.Text + "\n", "", &agent.Exit{Code: 1}},
			{"line with a result", stream(cli), m.Text + "\n" + `{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"Something new."}`, "", &agent.Exit{Code: 1}}}
	case cli == "":
		return refusal(t, config.Plain, m.Text)
	}
	return append(refusal(t, cli, m.Text), refusal(t, config.Plain, m.Text)...)
}

// TestEvalNegatives shows texts that only mention a limit as tool output, as a message and as the output of a failed
// plain agent.
func TestEvalNegatives(t *testing.T) {
	needShared(t)
	var texts []string
	for _, line := range readJSONL(t, shared+"/corpora/usage-limit-negatives.jsonl") {
		var n struct{ Text string }
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, n.Text)
	}
	texts = append(texts, readJSONL(t, shared+"/corpora/loops/hm729-usage-limit-pattern.txt.gz")...)
	texts = append(texts, strings.Join(texts, "\n"))
	shown, taken := 0, 0
	for _, text := range texts {
		for _, s := range quote(t, text) {
			got, err := agent.Inspect(strings.NewReader(s.stdout), s.adapter, agent.InspectOptions{Exit: s.exit})
			if err != nil {
				t.Fatal(err)
			}
			shown++
			if got.Limit != nil || got.Ending == policy.UsageLimit {
				taken++
				t.Errorf("as %s %s: %s: %q, %.200q", s.adapter.Stream, s.how, got.Ending, got.Reasons, text)
			}
		}
	}
	fmt.Printf("negatives: %d of %d presentations of %d texts were taken for a limit\n", taken, shown, len(texts))
}

// TestEvalHealthy reads the healthy transcripts. None of them ended at a limit.
func TestEvalHealthy(t *testing.T) {
	needShared(t)
	files, err := filepath.Glob(shared + "/corpora/healthy/*.jsonl*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text := strings.Join(readJSONL(t, file), "\n")
		cli := clis.Detect([]byte(text[:min(len(text), 64<<10)]))
		a, err := clis.ForStream(cli)
		if err != nil {
			t.Fatal(err)
		}
		got, err := agent.Inspect(strings.NewReader(text), a, agent.InspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%-44s %-8s %-12s edits %d, %d files, max %d; %d calls, %d mentions\n", filepath.Base(file), cli, got.Ending,
			got.Edits.Operations, got.Edits.Files, got.Edits.MaxRepeat, got.ToolCalls, got.Mentions)
		if got.Limit != nil {
			t.Errorf("%s: limit %+v", file, got.Limit)
		}
	}
}

// readJSONL returns the lines of a file that may be compressed.
func readJSONL(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		scan = bufio.NewScanner(z)
	}
	scan.Buffer(nil, 16<<20)
	var lines []string
	for scan.Scan() {
		lines = append(lines, scan.Text())
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}
