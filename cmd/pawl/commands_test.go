package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/testrig"
)

// pawl runs the binary to its end and returns its exit code and output.
func pawl(t *testing.T, dir string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testrig.Program, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// inputs creates a folder with the input files of TestExitCodes.
func inputs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const app = "github: {app: {integration_id: 1, webhook_secret: 0123456789abcdef, private_key_file: app.pem}}\n" +
		"database: sqlite:pawl.db\ndata_dir: data\nlog: {level: debug}\n" +
		"backends: [{name: codex, kind: codex}]\n"
	for name, text := range map[string]string{
		"server.yml":  app + "sandbox: {mode: none}\npolicy: {severity: {min_edits: 20}}\n",
		"missing.yml": app + "sandbox: {mode: none, read_only: [/none/agents]}\n",
		"junk.yml":    app + "polcy: {}\n",
		"app.pem":     "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n",
		"good.yml":    "verify: [go test ./...]\n", "empty": "",
		"wrong.yml":   "verify: 3\nwrong: 1\n",
		"gemini.yml":  "backends: [gemini]\n",
		"hostile.yml": "verify: [\"a\\u001b[2J\"]\nw\x1b[2J: 1\n",
		"text":        "compiling\nlinking\n",
		"limited":     "You've hit your usage limit. Try again in 2 hours.\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestExitCodes runs each command once for each way in which it can end. DIR stands for the folder of inputs. Results belong on
// standard output and errors on standard error. Neither may contain terminal control characters.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--help", exitDone, "Usage:"},
		{"--version", exitDone, "pawl "},
		{"frobnicate", exitUsage, "unknown command"},
		{"version", exitDone, "pawl "},
		{"version --frob", exitUsage, "unknown flag"},
		{"completion bash", exitDone, "bash completion"},
		{"completion zsh", exitDone, "#compdef pawl"},
		{"completion fish", exitDone, "fish completion"},

		{"check DIR/good.yml", exitDone, "good.yml: no error"},
		{"check DIR/empty --config DIR/server.yml", exitDone, "empty: no error"},
		{"check DIR/wrong.yml", exitFailed, "wrong.yml:2:1: wrong: is not a known key"},
		{"check DIR/gemini.yml", exitDone, "no error"},
		{"check DIR/gemini.yml --config DIR/server.yml", exitFailed, "gemini.yml:1:12: backends[0]"},
		{"check DIR/hostile.yml", exitFailed, "hostile.yml:"},
		{"check DIR/none.yml", exitFailed, "there is no such file"},

		{"doctor", exitUsage, `required flag(s) "config" not set, and this folder has no pawl.yml`},
		{"doctor --config DIR/server.yml --repo widgets", exitUsage, "--repo takes OWNER/NAME"},
		{"doctor --config DIR/server.yml --repo a/b/c", exitUsage, "--repo takes OWNER/NAME"},
		{"doctor --config DIR/server.yml --repo acme/", exitUsage, "--repo takes OWNER/NAME"},
		{"setup --org a/../b", exitUsage, "not a valid name of a GitHub organization"},
		{"setup --config DIR/server.yml", exitFailed, "server.yml exists already, and nothing is overwritten"},

		{"inspect", exitUsage, "accepts 1 arg(s)"},
		{"inspect a b", exitUsage, "accepts 1 arg(s)"},
		{"inspect DIR/text --cli nope", exitUsage, "--cli"},
		{"inspect DIR/text --zone Mars/Olympus", exitUsage, "--zone"},
		{"inspect DIR/text --now noon", exitUsage, "--now"},
		{"inspect DIR/text --exit-code x", exitUsage, "invalid argument"},
		{"inspect DIR/none", exitFailed, "no such file"},
		{"inspect DIR", exitFailed, "is not a recorded run"},
		{"inspect DIR/text --config DIR/none.yml", exitFailed, "read configuration"},
		{"inspect DIR/text --exit-code 3", exitDone, "exit code 3"},
		{"inspect DIR/limited --cli plain --now 2026-11-21T08:30:00Z", exitDone, "until 2026-11-21T10:30:00Z"},

		{"replay", exitUsage, "needs a recording"},
		{"replay --cli telex DIR/text", exitUsage, "unknown --cli"},
		{"replay --sideways DIR/text", exitUsage, "unknown flag"},
		{"replay DIR/text", exitFailed, "not a trail, a wrapper's log or a known agent's transcript"},
		{"replay DIR/empty", exitFailed, "it is empty"},
		{"replay DIR/none", exitFailed, "no such file"},
		{"replay ../../testdata/trails/usage-limit-loop.log DIR/none", exitFailed, "no such file"},
		{"replay --cli plain DIR/text", exitDone, ""},

		{"run", exitUsage, "give the task with"},
		{"run --task a --task-file b", exitUsage, "either --task or --task-file"},
		{"run --task a --backend nonsense --repo DIR", exitUsage, "nonsense"},
		{"run --task a --verify= --repo DIR", exitUsage, "--verify is empty"},
		{"run --task a --repo /", exitUsage, "/ is in no git repository"},
		{"run Say hello", exitUsage, "pawl run --task 'Say hello'"},
		{"run --task a --repo DIR --config DIR/server.yml --backend mine", exitUsage, `backend "mine" is not in DIR/server.yml, which has codex: give one with --backend`},
		{"run --task a --backend codex --sandbox some --repo DIR --config DIR/server.yml", exitUsage, "--sandbox some"},
		{"run --task a --config DIR/none.yml --repo DIR", exitFailed, "none.yml"},

		{"serve", exitUsage, `required flag(s) "config" not set, and this folder has no pawl.yml`},
		{"serve --config a b", exitUsage, "unknown command"},
		{"serve --config DIR/none.yml", exitFailed, "none.yml"},
		{"serve --config DIR/junk.yml", exitFailed, "junk.yml:6:1: polcy: is not a known key"},
		{"serve --config DIR/missing.yml", exitFailed, "correct the path or remove it"},

		{"status", exitUsage, `required flag(s) "config" not set, and this folder has no pawl.yml`},
		{"status --config DIR/server.yml --learning acme/widgets#1", exitUsage, "--learning is about all threads"},
		{"status --config DIR/none.yml", exitFailed, "none.yml"},
		{"status --config DIR/server.yml", exitFailed, "pawl serve"},
		{"status --config DIR/junk.yml", exitFailed, "junk.yml:6:1: polcy: is not a known key"},
	} {
		t.Run(c.args, func(t *testing.T) {
			dir := inputs(t)
			var out, errs strings.Builder
			c.want = strings.ReplaceAll(c.want, "DIR", dir)
			code := run(strings.Fields(strings.ReplaceAll(c.args, "DIR", dir)), &out, &errs)
			text, other := out.String(), errs.String()
			if code != exitDone {
				text, other = other, text
			}
			if code != c.code || !strings.Contains(text, c.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, c.code, c.want, text)
			}
			if other != "" || strings.Contains(text, "\x1b") {
				t.Errorf("on the wrong stream: %q; or with control characters: %q", other, text)
			}
		})
	}
}

// Every command uses --config, or pawl.yml in the current folder if --config is missing. The test is not parallel
// because it changes the current folder.
func TestConfigurationOfTheCurrentFolder(t *testing.T) {
	dir := inputs(t)
	t.Chdir(dir)
	// The paths and the backend in this file do not exist, so errors show which file was read.
	write(t, "pawl.yml", "github: {app: {integration_id: 1, webhook_secret: 0123456789abcdef, private_key_file: app.pem}}\n"+
		"database: sqlite:pawl.db\nsandbox: {mode: none, read_only: [/none/here]}\nbackends: [{name: mine, kind: command, argv: [/none/mine]}]\n")
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if err := os.Remove(".git"); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	if err := os.MkdirAll("sub/folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"serve", "/none/here"},
		{"serve --config missing.yml", "/none/agents"},
		{"doctor", "/none/here"},
		{"status", "pawl serve"},
		{"logs acme/widgets#1", "pawl serve"},
		{"pause acme/widgets", "pawl serve"},
		{"check gemini.yml", "gemini.yml:1:12: backends[0]"},
		{"check gemini.yml --config=", "no error"},
		{"run --task a --backend other", "which has mine"},
		{"run --task a --backend other --repo sub/folder", "which has mine"},
		{"run --task a --backend other --config server.yml", "which has codex"},
		{"run --task a --config= --backend nonsense", "needs a configuration file"},
	} {
		var out strings.Builder
		run(strings.Fields(c.args), &out, &out)
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s does not print %q:\n%s", c.args, c.want, &out)
		}
	}
	git("add", "--force", "pawl.yml")
	for _, args := range []string{"run --task a --backend other", "run --task a --backend other --config pawl.yml"} {
		var out strings.Builder
		if code := run(strings.Fields(args), &out, &out); code != exitUsage {
			t.Errorf("%s: exit code %d", args, code)
		}
		obeys := strings.Contains(out.String(), "which has mine")
		if obeys != strings.Contains(args, "--config") || !obeys && !strings.Contains(out.String(), "came with this repository") {
			t.Errorf("%s with a file that git tracks:\n%s", args, &out)
		}
	}
}

func TestOnlyConfiguredBackendIsTheDefault(t *testing.T) {
	for want, all := range map[string][]config.Backend{
		"mine":       {{Name: "mine"}},
		config.Codex: {{Name: "mine"}, {Name: config.Codex}},
	} {
		if got := usualBackend(all); got != want {
			t.Errorf("the default of %v is %s, want %s", all, got, want)
		}
	}
	if got := usualBackend(nil); got != config.Codex {
		t.Errorf("the default without a file is %s, want codex", got)
	}
}

func TestDoctorReportsAnInvalidConfiguration(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	code := run([]string{"doctor", "--config", filepath.Join(inputs(t), "junk.yml")}, &out, &errs)
	if code != exitFailed || !strings.Contains(out.String(), "junk.yml:6:1: polcy: is not a known key") {
		t.Errorf("exit code %d, want %d and the line of the wrong key:\n%s%s", code, exitFailed, &out, &errs)
	}
}

// pawl inspect prints a report about unknown input, and fails.
func TestInspectFailsOnUnknownInput(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	code := run([]string{"inspect", "--json", filepath.Join(inputs(t), "text")}, &out, &errs)
	var got struct{ Ending string }
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got.Ending != "unknown" {
		t.Errorf("%v: %s", err, &out)
	}
	if code != exitFailed || !strings.Contains(errs.String(), "this is not a known agent's transcript") {
		t.Errorf("exit code %d: %s", code, &errs)
	}
}

// The configuration's policy decides which edit loops are severe.
func TestInspectUsesTheConfiguredSeverity(t *testing.T) {
	t.Parallel()
	edit := func(i int) string {
		const change = `{"type":"tool_use","id":"%d","name":"Edit","input":{"file_path":"/r/a.go","old_string":"%d","new_string":"%d"}}`
		const answer = `{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"%d","content":"ok"}]}}`
		return `{"type":"assistant","session_id":"s","message":{"content":[` + fmt.Sprintf(change, i, i%2, (i+1)%2) + `]}}` + "\n" +
			fmt.Sprintf(answer, i) + "\n"
	}
	dir, loop := inputs(t), ""
	for i := range 30 {
		loop += edit(i)
	}
	loop += `{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s"}` + "\n"
	file := filepath.Join(dir, "loop.jsonl")
	write(t, file, loop)
	for config, want := range map[string]string{"": "none", filepath.Join(dir, "server.yml"): "severe"} {
		var out, errs strings.Builder
		code := run([]string{"inspect", "--json", "--config", config, file}, &out, &errs)
		var got struct{ Severity struct{ Class string } }
		if err := json.Unmarshal([]byte(out.String()), &got); err != nil || code != exitDone || got.Severity.Class != want {
			t.Errorf("with %q: exit code %d, %v, severity %q, want %s\n%s", config, code, err, got.Severity.Class, want, &errs)
		}
	}
}

func TestDoctorAsJSON(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	code := run([]string{"doctor", "--json", "--config", filepath.Join(inputs(t), "server.yml")}, &out, &errs)
	var report map[string][]struct{ Check, State, Text string }
	err := json.Unmarshal([]byte(out.String()), &report)
	if err != nil || len(report) != 1 || len(report["checks"]) < 5 {
		t.Fatalf("%v, want five checks or more and nothing else: %s", err, &out)
	}
	if first := report["checks"][0]; first.Check != "configuration" || first.State != "ok" {
		t.Errorf("the first check is %+v, want that the configuration is ok", first)
	}
	// The private key is invalid.
	if code != exitFailed || !strings.Contains(errs.String(), "checks failed; see the hints above") {
		t.Errorf("exit code %d: %s", code, &errs)
	}
}

func TestVersionAsJSON(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	code := run([]string{"version", "--json"}, &out, io.Discard)
	var v struct{ Version, Commit, Go string }
	if err := json.Unmarshal([]byte(out.String()), &v); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %q: %v", code, out.String(), err)
	}
	if v.Version == "" || !strings.HasPrefix(v.Go, "go1.") {
		t.Errorf("%+v, want Pawl's version and Go's version", v)
	}
}

func TestReportsContainNoTerminalControls(t *testing.T) {
	t.Parallel()
	const hostile = "the judge said \x1b]0;owned\x07\x1b[2J\u202egnorw"
	var out, errs strings.Builder
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	if err := printReport(cmd, nil, func(w io.Writer) { fmt.Fprintln(w, hostile) }); err != nil {
		t.Fatal(err)
	}
	run([]string{"inspect", filepath.Join(t.TempDir(), hostile)}, io.Discard, &errs)
	for _, text := range []string{out.String(), errs.String()} {
		if strings.ContainsAny(text, "\x1b\x07\u202e") || !strings.Contains(text, "the judge said") {
			t.Errorf("%q", text)
		}
	}
}
