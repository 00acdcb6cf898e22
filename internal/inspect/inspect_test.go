package inspect

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
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/simhash"
)

const agentRuns = "../../testdata/agents/"

// options are pawl inspect's defaults, half an hour before the resets in the tests.
func options() Options {
	return Options{
		Now:      time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC),
		Zone:     time.UTC,
		Severity: policy.Defaults().Severity,
	}
}

func read(t *testing.T, text string, o Options) Report {
	t.Helper()
	r, err := Read("-", func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run reads a recorded run: its output, or its whole folder.
func run(t *testing.T, name, file string, o Options) Report {
	t.Helper()
	open := func(name string) (io.ReadCloser, error) { return os.Open(name) }
	r, err := Read(filepath.Join(agenttest.Unpack(t, agentRuns+name), file), open, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJSONObjectHasTheDocumentedFields(t *testing.T) {
	t.Parallel()
	o := options()
	o.Exit = &agent.Exit{Code: 1}
	text, err := json.Marshal(run(t, "claude/oauth-usage-limit-7d", "stdout.jsonl", o))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	keys := []string{"cli", "ending", "reasons", "limit", "edits", "severity", "loops", "fingerprint", "tokens", "cost_usd",
		"session_id", "tool_calls", "final_message", "mentions"}
	for _, key := range keys {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing in %v", key, slices.Sorted(maps.Keys(got)))
		}
	}
	failure := simhash.Fingerprint("You've hit your weekly limit · resets Nov 24, 8:19am (UTC)").String()
	limit, _ := got["limit"].(map[string]any)
	diff := cmp.Diff([]any{"claude", "usage_limit", failure, "usage_limit", "2026-11-24T08:19:49Z", "structured"},
		[]any{got["cli"], got["ending"], got["fingerprint"], limit["kind"], limit["resets_at"], limit["source"]})
	if diff != "" {
		t.Error(diff)
	}
}

const (
	codexStream = `{"type":"thread.started","thread_id":"0199"}
{"type":"turn.started"}
{"type":"turn.failed","error":{"message":"You've hit your usage limit."}}
`
	codexSession = `{"timestamp":"2026-11-21T08:09:44Z","type":"session_meta","payload":{"id":"0199","cwd":"/r"}}
{"timestamp":"2026-11-21T08:09:44Z","type":"event_msg","payload":{"type":"task_started"}}
{"timestamp":"2026-11-21T08:09:45Z","type":"response_item","payload":{"type":"custom_tool_call","call_id":"c",` +
		`"name":"apply_patch","input":"*** Begin Patch\n*** Add File: new.go\n+package a\n*** End Patch"}}
{"timestamp":"2026-11-21T08:09:45Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c","output":"Success"}}
{"timestamp":"2026-11-21T08:09:46Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":` +
		`{"input_tokens":7,"cached_input_tokens":2,"output_tokens":3}}}}
`
	taskComplete = `{"type":"event_msg","payload":{"type":"task_complete",`
	log          = "compiling\nlinking\n" // an unknown agent's
)

func wrapped(stream string) string {
	const stamp = "[2026-11-21T08:09:44.000Z] [INFO] "
	return stamp + "Executing codex:\n" + stamp + strings.ReplaceAll(strings.TrimSpace(stream), "\n", "\n"+stamp) + "\n"
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := io.WriteString(z, text)
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return packed.String()
}

func TestCodexRunIsReadInEveryFormat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input  string
		ending policy.Ending
		edits  int
	}{
		"gzip":                      {gzipped(t, codexStream), policy.UsageLimit, 0},
		"a wrapper's log":           {wrapped(codexStream), policy.UsageLimit, 0},
		"a session that completed":  {codexSession + taskComplete + `"last_agent_message":"Done."}}`, policy.Completed, 1},
		"a truncated session":       {codexSession, policy.CutOff, 1},
		"a session that was ended":  {codexSession + `{"type":"event_msg","payload":{"type":"turn_aborted","reason":"interrupted"}}`, policy.Killed, 1},
		"a session at its limit":    {codexSession + taskComplete + `"error":{"message":"no more","codex_error_info":"usage_limit_exceeded"}}}`, policy.UsageLimit, 1},
		"a session without a login": {codexSession + taskComplete + `"error":{"message":"no","codex_error_info":"unauthorized"}}}`, policy.Auth, 1},
	} {
		got := read(t, c.input, options())
		if got.CLI != config.Codex || got.Ending != c.ending || got.Edits.Operations != c.edits || got.SessionID != "0199" {
			t.Errorf("%s: %s of %s with %d edits in session %q; want %s with %d in 0199",
				name, got.Ending, got.CLI, got.Edits.Operations, got.SessionID, c.ending, c.edits)
		}
	}
}

func TestFolderIncludesErrorsAndExitCode(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string]policy.Ending{
		"gemini/no-auth-setting":       policy.Auth,
		"gemini/usage-limit-noreset":   policy.UsageLimit,
		"opencode/bad-config-json":     policy.Misconfigured,
		"claude/perm-acceptedits-bash": policy.Completed,
	} {
		o := options()
		o.CLI, _, _ = strings.Cut(folder, "/")
		if got := run(t, folder, "", o); got.CLI != o.CLI || got.Ending != want {
			t.Errorf("%s: %s of %s, want %s; %q", folder, got.Ending, got.CLI, want, got.Reasons)
		}
	}
	if _, err := Read(t.TempDir(), nil, options()); err == nil || !strings.Contains(err.Error(), "is not a recorded run") {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestClockTimeUsesItsZone(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Zone, o.Now = zone, o.Now.Add(-time.Hour)
	limit := read(t, strings.Replace(codexStream, "limit.", "limit. Try again at 9:06 AM.", 1), o).Limit
	if want := time.Date(2026, 11, 21, 8, 6, 0, 0, time.UTC); limit == nil || !limit.ResetsAt.Equal(want) || limit.Source != "text" {
		t.Errorf("limit %+v, want a reset at %s", limit, want)
	}
}

func TestSeverityFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	strict := options()
	strict.Severity.MinEdits = 20
	for want, o := range map[policy.Class]Options{policy.None: options(), policy.Severe: strict} {
		if got := run(t, "codex/flipflop-loop", "stdout.jsonl", o).Severity; got.Class != want {
			t.Errorf("from %d edits on: %+v, want %s", o.Severity.MinEdits, got, want)
		}
	}
}

func exit(code int) *agent.Exit { return &agent.Exit{Code: code} }

// An unknown ending is not guessed, and input of an unknown kind is rejected.
func TestUnknownEndingIsNotGuessed(t *testing.T) {
	t.Parallel()
	packed := gzipped(t, strings.Repeat("{\"type\":\"turn.started\"}\n", 1000))
	utf16 := strings.ReplaceAll("{\x00\"type\":\"turn.completed\"}", "t", "t\x00")
	const limited = log + "You've hit your usage limit. Try again in 2 hours.\n"
	for _, c := range []struct {
		name, input, cli string
		exit             *agent.Exit
		ending           policy.Ending
		understood       bool
		want             string
	}{
		{"empty", "", "", nil, policy.Unknown, false, "it is empty"},
		{"blank", " \n\n", "", nil, policy.Unknown, false, "it is empty"},
		{"binary", "\x7fELF\x02\x01\x00\x00", "", nil, policy.Unknown, false, "NUL bytes"},
		{"UTF-16", "\xff\xfe" + utf16, "", nil, policy.Unknown, false, "NUL bytes"},
		{"broken gzip", "\x1f\x8bnot really", "", nil, policy.Unknown, false, "gzip"},
		{"cut gzip", packed[:len(packed)/2], "", nil, policy.Unknown, false, "unexpected EOF"},
		{"unknown JSON", "{\"a\":1}\n", "", nil, policy.Unknown, false, "not a known agent's transcript"},
		{"another program's output", log, "", nil, policy.Unknown, false, "not a known agent's transcript"},
		{"taken for plain text, exit code 0", log, "", exit(0), policy.Completed, true, "exit code 0"},
		{"taken for plain text, exit code 3", log, "", exit(3), policy.Crashed, true, "exit code 3"},
		{"plain", log, config.Plain, nil, policy.Unknown, true, "add --exit-code N"},
		{"plain, exit code 0", log, config.Plain, exit(0), policy.Completed, true, "exit code 0"},
		{"plain, exit code 2", log, config.Plain, exit(2), policy.Crashed, true, "exit code 2"},
		{"plain, at its limit", limited, config.Plain, nil, policy.UsageLimit, true, "limit message"},
	} {
		o := options()
		o.CLI, o.Exit = c.cli, c.exit
		got := read(t, c.input, o)
		if got.Ending != c.ending || got.Understood() != c.understood || !strings.Contains(fmt.Sprint(got.Reasons), c.want) {
			t.Errorf("%s: %s %q, understood %t; want %s, %q, %t", c.name, got.Ending, got.Reasons, got.Understood(), c.ending, c.want, c.understood)
		}
	}
}

func TestPlainTextFingerprintCoversAllOfIt(t *testing.T) {
	t.Parallel()
	text := "FAIL: TestWidget\n" + strings.Repeat("one line of a long log, said once more\n", 200_000) + "exit status 1\n"
	o := options()
	o.CLI, o.Exit = config.Plain, exit(1)
	if got, want := read(t, text, o).Fingerprint, simhash.Fingerprint(text); got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
}

func TestReportText(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	run(t, "opencode/flipflop-loop", "", options()).Print(&out)
	for _, want := range []string{"completed (opencode)", "26 of them on ", "repo/flip.txt", "27 turns"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
}
