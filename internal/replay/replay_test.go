package replay

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
)

func trails(names ...string) []string {
	for i, n := range names {
		names[i] = filepath.Join("..", "..", "testdata", "trails", n)
	}
	return names
}

// opens returns an Opener for files; - is stdin.
func opens(stdin io.Reader) Opener {
	return func(name string) (io.ReadCloser, error) {
		if name == "-" {
			return io.NopCloser(stdin), nil
		}
		return os.Open(name)
	}
}

func replayed(t *testing.T, cfg config.Server, stdin string, files ...string) Report {
	t.Helper()
	r, err := Files(cfg, "", files, opens(strings.NewReader(stdin)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// outline formats a report with one line per attempt.
func outline(r Report) []string {
	var lines []string
	for _, a := range r.Attempts {
		kind := string(a.Decision)
		if a.Avoided {
			kind = "avoided"
		}
		lines = append(lines, fmt.Sprintf("%d %s: %s by %s", a.N, a.Outcome, kind, a.Rule))
	}
	stopped := "not stopped"
	if r.StoppedAfter != nil {
		stopped = fmt.Sprintf("stopped after %d", *r.StoppedAfter)
	}
	return append(lines, fmt.Sprintf("%s, %s, %d of %d avoided, %d limits, %d mentions", stopped, r.Rule, r.AvoidedAttempts, r.RecordedAttempts, r.UsageLimitAttempts, r.UsageLimitMentions))
}

func TestReplayFindsWherePolicyStops(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files []string
		want  []string
	}{
		{"a loop at a usage limit", trails("usage-limit-loop.log"), []string{
			"1 usage_limit: attempt by feedback",
			"2 usage_limit: attempt by feedback",
			"3 usage_limit: stop by usage_limit_breaker",
			"4 usage_limit: avoided by usage_limit_breaker",
			"5 usage_limit: avoided by usage_limit_breaker",
			"6 usage_limit: avoided by usage_limit_breaker",
			"stopped after 3, usage_limit_breaker, 3 of 6 avoided, 6 limits, 1 mentions",
		}},
		{"a loop with a rejected login", trails("auth-loop.log"), []string{
			"1 auth: stop by auth",
			"2 auth: avoided by auth",
			"3 auth: avoided by auth",
			"4 auth: avoided by auth",
			"5 auth: avoided by auth",
			"6 disconnected: avoided by auth",
			"stopped after 1, auth, 5 of 6 avoided, 0 limits, 0 mentions",
		}},
		{"limits that were only quoted", trails("quoted-limits.log"), []string{
			"1 unverified: done by done",
			"not stopped, done, 0 of 1 avoided, 0 limits, 5 mentions",
		}},
		{"three healthy runs, with indented objects and one cut in two", trails("healthy-claude.log"), []string{
			"1 unverified: attempt by feedback",
			"2 unverified: attempt by feedback",
			"3 unverified: done by done",
			"not stopped, done, 0 of 3 avoided, 0 limits, 0 mentions",
		}},
		{"a limit in the log of a fork", trails("fork-limit.log"), []string{
			"1 usage_limit: stop by usage_limit",
			"stopped after 1, usage_limit, 0 of 1 avoided, 1 limits, 0 mentions",
		}},
		{"several transcripts", trails("transcript-edited.jsonl", "transcript-limit-1.jsonl", "transcript-limit-2.jsonl", "transcript-limit-3.jsonl", "transcript-limit-4.jsonl"), []string{
			"1 unverified: attempt by feedback",
			"2 usage_limit: attempt by feedback",
			"3 usage_limit: attempt by feedback",
			"4 usage_limit: stop by usage_limit_breaker",
			"5 usage_limit: avoided by usage_limit_breaker",
			"stopped after 4, usage_limit_breaker, 1 of 5 avoided, 4 limits, 0 mentions",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, outline(replayed(t, config.Default(), "", tc.files...))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReplayCountsAvoidedTime(t *testing.T) {
	r := replayed(t, config.Default(), "", trails("usage-limit-loop.log")...)
	last := r.Attempts[len(r.Attempts)-1]
	want := int64(last.EndedAt.Sub(*r.Attempts[2].EndedAt).Round(time.Second) / time.Second)
	if r.AvoidedSeconds != want || want < 10 {
		t.Errorf("avoided %d s, want %d", r.AvoidedSeconds, want)
	}
	limit := replayed(t, config.Default(), "", trails("fork-limit.log")...).Attempts[0]
	if !strings.Contains(strings.Join(limit.Reasons, " "), "resets at 2031-03-04T10:00:05Z") {
		t.Errorf("reasons %q, want the reset from the provider's headers", limit.Reasons)
	}
}

func TestReplayPrintsTheDocumentedObject(t *testing.T) {
	out, err := json.Marshal(replayed(t, config.Default(), "", trails("usage-limit-loop.log")...))
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"attempts", "recorded_attempts", "stopped_after", "rule", "avoided_attempts", "avoided_seconds", "usage_limit_attempts", "usage_limit_mentions"} {
		if _, ok := r[key]; !ok {
			t.Errorf("%s is missing: has %v", key, slices.Sorted(maps.Keys(r)))
		}
	}
	first := r["attempts"].([]any)[0].(map[string]any)
	reasons := first["reasons"].([]any)
	delete(first, "reasons")
	delete(first, "ended_at")
	want := map[string]any{"n": 1.0, "at": "2031-03-04T08:00:04.862Z", "outcome": "usage_limit", "progress": false,
		"decision": "attempt", "rule": "feedback", "avoided": false}
	if d := cmp.Diff(want, first); d != "" || reasons[0] != "2 remarks that no attempt has taken yet" {
		t.Errorf("%s\nreasons %q", d, reasons)
	}
}

func TestReplayReadsCompressedFilesAndStandardInput(t *testing.T) {
	log, err := os.ReadFile(trails("usage-limit-loop.log")[0])
	if err != nil {
		t.Fatal(err)
	}
	want := outline(replayed(t, config.Default(), "", trails("usage-limit-loop.log")...))
	var zipped strings.Builder
	z := gzip.NewWriter(&zipped)
	z.Write(log)
	z.Close()
	numbered := ""
	for i, line := range strings.SplitAfter(string(log), "\n") {
		if strings.HasPrefix(line, "[") {
			line = fmt.Sprintf("%d:%s", i+1, line)
		}
		numbered += line
	}
	for name, stdin := range map[string]string{"plain": string(log), "gzip": zipped.String(), "with carriage returns": strings.ReplaceAll(string(log), "\n", "\r\n"), "with line numbers": numbered} {
		if d := cmp.Diff(want, outline(replayed(t, config.Default(), stdin, "-"))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestReplayObeysTheConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"usage_limit: {max_consecutive: 2}":                 "stopped after 2, usage_limit_breaker, 4 of 6 avoided, 6 limits, 1 mentions",
		"usage_limit: {auto_continue_on_limit_reset: true}": "stopped after 1, usage_limit, 5 of 6 avoided, 6 limits, 1 mentions",
	} {
		file := filepath.Join(t.TempDir(), "pawl.yml")
		yaml := "github: {app: {integration_id: 1, webhook_secret: 'a webhook secret of some length', private_key_file: app.pem}}\n" +
			"sandbox: {mode: none}\nbackends: [{name: codex, kind: codex}]\npolicy: {" + text + "}\n"
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), "app.pem"), []byte("key"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file, os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		lines := outline(replayed(t, cfg, "", trails("usage-limit-loop.log")...))
		if got := lines[len(lines)-1]; got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestReplayPrintsText(t *testing.T) {
	var out bytes.Buffer
	replayed(t, config.Default(), "", trails("usage-limit-loop.log")...).Print(&out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if got, want := lines[len(lines)-1], "Policy would have stopped after attempt 3 (usage_limit_breaker): 3 of 6 attempts and 12s saved. 6 attempts ended in a usage limit; texts that only quoted one: 1."; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
	if !strings.HasPrefix(lines[4], "4–6 ") {
		t.Errorf("row %q, want one row per reason", lines[4])
	}
}
