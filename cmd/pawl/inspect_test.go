package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy/simhash"
)

const agentRuns = "../../testdata/agents"

// pawlInspect runs the built binary and returns what it printed and its exit code.
func pawlInspect(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(testrig.Program, append([]string{"inspect"}, args...)...)
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// inspected decodes what --json printed.
func inspected(t *testing.T, stdin string, args ...string) map[string]any {
	t.Helper()
	out, errs, code := pawlInspect(t, stdin, append(args, "--json")...)
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitDone {
		t.Fatalf("%q: exit code %d, error %v, %s%s", args, code, err, out, errs)
	}
	return got
}

func TestInspectPrintsTheContractsObject(t *testing.T) {
	t.Parallel()
	file := filepath.Join(agenttest.Unpack(t, agentRuns+"/claude/oauth-usage-limit-7d"), "stdout.jsonl")
	got := inspected(t, "", file, "--exit-code", "1", "--now", "2026-11-21T08:30:00Z")
	for _, key := range []string{"cli", "ending", "reasons", "limit", "edits", "severity", "fingerprint", "tokens", "cost_usd",
		"session_id", "tool_calls", "final_message", "mentions"} {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	limit, _ := got["limit"].(map[string]any)
	if got["cli"] != "claude" || got["ending"] != "usage_limit" || limit["kind"] != "usage_limit" ||
		limit["resets_at"] != "2026-11-24T08:19:49Z" || limit["source"] != "structured" {
		t.Errorf("got %v", got)
	}
	if want := simhash.Fingerprint("You've hit your weekly limit · resets Nov 24, 8:19am (UTC)").String(); got["fingerprint"] != want {
		t.Errorf("fingerprint %v, want %s, that of the failure", got["fingerprint"], want)
	}
}

func TestInspectObeysTheConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("app.pem", "key")
	file := write("pawl.yml", "github: {app: {integration_id: 1, webhook_secret: 'a webhook secret of some length', private_key_file: app.pem}}\n"+
		"sandbox: {mode: none}\nbackends: [{name: codex, kind: codex}]\npolicy: {severity: {min_edits: 20}}\n")
	loop := filepath.Join(agenttest.Unpack(t, agentRuns+"/codex/flipflop-loop"), "stdout.jsonl")
	for _, tc := range []struct {
		args  []string
		class string
	}{{nil, "none"}, {[]string{"--config", file}, "severe"}} {
		severity, _ := inspected(t, "", append([]string{loop}, tc.args...)...)["severity"].(map[string]any)
		if severity["class"] != tc.class {
			t.Errorf("%q: %v, want %s", tc.args, severity, tc.class)
		}
	}
	if _, errs, code := pawlInspect(t, "", loop, "--config", file+".gone"); code != exitFailed || !strings.Contains(errs, "read configuration") {
		t.Errorf("without the file: exit code %d, %s", code, errs)
	}
}

func TestInspectKnowsTheZoneOfAClockTime(t *testing.T) {
	t.Parallel()
	const stream = `{"type":"turn.started"}` + "\n" + `{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again at 9:06 AM."}}` + "\n"
	got := inspected(t, stream, "-", "--now", "2026-11-21T07:30:00Z", "--zone", "Europe/Rome")
	if limit, _ := got["limit"].(map[string]any); limit["resets_at"] != "2026-11-21T08:06:00Z" || limit["source"] != "text" {
		t.Errorf("limit %v", got["limit"])
	}
}

func TestInspectReadsAFolder(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string][2]string{
		"gemini/no-auth-setting":       {"gemini", "auth"},
		"gemini/usage-limit-noreset":   {"gemini", "usage_limit"},
		"opencode/bad-config-json":     {"opencode", "misconfigured"},
		"claude/perm-acceptedits-bash": {"claude", "completed"},
	} {
		if got := inspected(t, "", agenttest.Unpack(t, agentRuns+"/"+folder), "--cli", want[0]); got["ending"] != want[1] {
			t.Errorf("%s: %v, want %s; %v", folder, got["ending"], want[1], got["reasons"])
		}
	}
}

func TestInspectTakesTheFingerprintOfAllPlainInput(t *testing.T) {
	t.Parallel()
	text := "FAIL: TestWidget\n" + strings.Repeat("one line of a long log, said once more\n", 200_000) + "exit status 1\n"
	got := inspected(t, text, "-", "--cli", "plain", "--exit-code", "1")
	if want := simhash.Fingerprint(text).String(); got["fingerprint"] != want || got["ending"] != "crashed" {
		t.Errorf("fingerprint %v, ending %v, want %s", got["fingerprint"], got["ending"], want)
	}
}

func TestInspectDoesNotGuessHowAPlainProgramEnded(t *testing.T) {
	t.Parallel()
	const text = "compiling\nlinking\n"
	for _, tc := range []struct {
		text         string
		more         []string
		ending, says string
	}{
		{text, nil, "unknown", "--exit-code N says it"},
		{text, []string{"--exit-code", "0"}, "completed", "exit code 0"},
		{text, []string{"--exit-code", "2"}, "crashed", "exit code 2"},
		{text + "You've hit your usage limit. Try again in 2 hours.\n", nil, "usage_limit", "limit message"},
	} {
		out, errs, code := pawlInspect(t, tc.text, append([]string{"-", "--json", "--cli", "plain"}, tc.more...)...)
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitDone || got["ending"] != tc.ending || got["fingerprint"] != simhash.Fingerprint(tc.text).String() || !strings.Contains(fmt.Sprint(got["reasons"]), tc.says) {
			t.Errorf("%q %q: exit code %d, %s%s; want %s, which was understood", tc.text, tc.more, code, out, errs, tc.ending)
		}
	}
}

func TestInspectSaysItForPeople(t *testing.T) {
	t.Parallel()
	out, _, code := pawlInspect(t, "", agenttest.Unpack(t, agentRuns+"/opencode/flipflop-loop"))
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for _, want := range []string{"completed (opencode)", "26 of them on ", "repo/flip.txt", "27 turns"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	out, _, _ = pawlInspect(t, "\x1b]0;gotcha\x07\x1b[2J done", "-")
	if strings.ContainsRune(out, '\x1b') {
		t.Errorf("a control character passed: %q", out)
	}
}

func TestInspectTellsWrongUsageFromFailure(t *testing.T) {
	t.Parallel()
	for want, lines := range map[int][][]string{
		exitUsage:  {{}, {"a", "b"}, {"-", "--cli", "nope"}, {"-", "--zone", "Mars/Olympus"}, {"-", "--now", "noon"}, {"-", "--exit-code", "x"}},
		exitFailed: {{"no-such-file"}, {t.TempDir()}},
	} {
		for _, args := range lines {
			out, errs, code := pawlInspect(t, "", args...)
			if code != want || errs == "" || out != "" {
				t.Errorf("%q: exit code %d, want %d; %s%s", args, code, want, out, errs)
			}
		}
	}
}

func TestInspectCallsNothingCompletedThatItCannotRead(t *testing.T) {
	t.Parallel()
	packed := gzipped(t, strings.Repeat("{\"type\":\"turn.started\"}\n", 1000))
	utf16 := strings.ReplaceAll("{\x00\"type\":\"turn.completed\"}", "t", "t\x00")
	for name, tc := range map[string]struct{ input, why string }{
		"empty": {"", "it is empty"}, "blank": {" \n\n", "it is empty"}, "binary": {"\x7fELF\x02\x01\x00\x00", "NUL bytes"}, "UTF-16": {"\xff\xfe" + utf16, "NUL bytes"},
		"broken gzip": {"\x1f\x8bnot really", "gzip"}, "cut gzip": {packed[:len(packed)/2], "unexpected EOF"}, "another program's output": {"compiling\nlinking\n", "no transcript"}, "unknown JSON": {"{\"a\":1}\n", "no transcript"},
	} {
		out, errs, code := pawlInspect(t, tc.input, "-", "--json")
		var got struct{ Ending string }
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Ending != "unknown" || code != exitFailed || !strings.Contains(errs, tc.why) {
			t.Errorf("%s: exit code %d, %s%s; want unknown with exit code 1 and %q", name, code, out, errs, tc.why)
		}
	}
	for want, args := range map[string][]string{"crashed": {"--exit-code", "3"}, "completed": {"--exit-code", "0"}} {
		if got := inspected(t, "compiling\nlinking\n", append(args, "-")...); got["ending"] != want {
			t.Errorf("%q: %v, want %s", args, got["ending"], want)
		}
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

func TestInspectReadsSessionFilesWrapperLogsAndGzip(t *testing.T) {
	t.Parallel()
	stream := `{"type":"thread.started","thread_id":"0199"}
{"type":"turn.started"}
{"type":"turn.failed","error":{"message":"You've hit your usage limit."}}
`
	session := `{"timestamp":"2026-11-21T08:09:44Z","type":"session_meta","payload":{"id":"0199","cwd":"/r"}}
{"timestamp":"2026-11-21T08:09:44Z","type":"event_msg","payload":{"type":"task_started"}}
{"timestamp":"2026-11-21T08:09:45Z","type":"response_item","payload":{"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** Begin Patch\n*** Add File: new.go\n+package a\n*** End Patch"}}
{"timestamp":"2026-11-21T08:09:46Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":7,"cached_input_tokens":2,"output_tokens":3}}}}
`
	wrapped := "[2026-11-21T08:09:44.000Z] [INFO] Executing codex:\n"
	for line := range strings.Lines(stream) {
		wrapped += "[2026-11-21T08:09:45.000Z] [INFO] " + line
	}
	for name, tc := range map[string]struct {
		input, ending string
		operations    float64
	}{
		"gzip":                      {gzipped(t, stream), "usage_limit", 0},
		"a wrapper's log":           {wrapped, "usage_limit", 0},
		"a session that completed":  {session + `{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"Done."}}`, "completed", 1},
		"a session that was cut":    {session, "cut_off", 1},
		"a session that was ended":  {session + `{"type":"event_msg","payload":{"type":"turn_aborted","reason":"interrupted"}}`, "killed", 1},
		"a session at its limit":    {session + `{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"no more","codex_error_info":"usage_limit_exceeded"}}}`, "usage_limit", 1},
		"a session without a login": {session + `{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"no","codex_error_info":"unauthorized"}}}`, "auth", 1},
	} {
		got := inspected(t, tc.input, "-")
		edits, _ := got["edits"].(map[string]any)
		if got["cli"] != "codex" || got["ending"] != tc.ending || edits["operations"] != tc.operations || got["session_id"] != "0199" {
			t.Errorf("%s: %v, want %s with %v edits", name, got, tc.ending, tc.operations)
		}
	}
}
