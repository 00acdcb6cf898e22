package attempt_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

var logged = thread.ID{Owner: "acme", Name: "widgets", Number: 7}

// transcript opens an attempt's output. Its backend has a secret.
func transcript(t *testing.T, kind, printed string) *attempt.Transcript {
	t.Helper()
	e := &attempt.Env{
		Config: config.Server{DataDir: t.TempDir(), Backends: []config.Backend{{Name: "it", Kind: kind, Env: []string{"GIVEN"}}}},
		Lookup: func(name string) (string, bool) { return "sesame-sesame", name == "GIVEN" },
	}
	dir := filepath.Join(e.Config.DataDir, "attempts", "acme", "widgets", "7", "1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "transcript"), []byte(printed), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := e.OpenTranscript(logged, thread.Started{N: 1, Backend: "it", Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	if _, err := e.OpenTranscript(logged, thread.Started{N: 2, Backend: "it", Kind: kind}); !errors.Is(err, attempt.ErrNoTranscript) {
		t.Errorf("an attempt that ran elsewhere: %v", err)
	}
	return log
}

func texts(lines []attempt.LogLine) (all []string) {
	for _, l := range lines {
		all = append(all, strings.TrimSpace(l.Kind+" "+l.Text))
	}
	return all
}

func TestLongLogIsReadFromItsEnd(t *testing.T) {
	var all strings.Builder
	const lines = 50_000
	for n := range lines {
		fmt.Fprintf(&all, "line %d of what a program printed, as long as lines are\n", n)
	}
	log := transcript(t, config.Command, all.String())
	end, err := log.Size()
	if err != nil {
		t.Fatal(err)
	}
	got, from, err := log.Before(end, 200)
	if err != nil || len(got) < 200 || len(got) > 2000 || !strings.HasPrefix(got[len(got)-1].Text, "line 49999 ") {
		t.Fatalf("%d lines (%v)", len(got), err)
	}
	for from > 0 { // as when a user scrolls up
		var part []attempt.LogLine
		if part, from, err = log.Before(from, 200); err != nil || len(part) == 0 {
			t.Fatalf("%d lines before %d: %v", len(part), from, err)
		}
		got = append(part, got...)
	}
	if len(got) != lines || !slices.IsSortedFunc(got, func(a, b attempt.LogLine) int { return number(a) - number(b) }) {
		t.Errorf("%d lines, or another order; want each of %d once", len(got), lines)
	}
}

func number(l attempt.LogLine) (n int) {
	fmt.Sscanf(l.Text, "line %d ", &n)
	return n
}

func TestLogShowsActionsWithoutSecrets(t *testing.T) {
	printed := strings.Join([]string{
		`{"type":"thread.started","thread_id":"x"}`,
		`{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"echo sesame-sesame","status":"in_progress"}}`,
		`{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"echo sesame-sesame","exit_code":1,"aggregated_output":"","status":"failed"}}`,
		`{"type":"item.completed","item":{"id":"i2","type":"file_change","changes":[{"path":"a.go","kind":"update"}],"status":"completed"}}`,
		`{"type":"item.completed","item":{"id":"i3","type":"agent_message","text":"evil \u202e text and ghp_abcdefghijklmnopqrstuvwxyz0123456789"}}`,
		`not JSON at all`, `{"type":"item.compl`,
	}, "\n") + "\n"
	log := transcript(t, config.Codex, printed+"{\"half a line")
	want := []string{"calls echo [hidden: GIVEN]", "fails the call failed", "calls edit a.go", "says evil [U+202E] text and [redacted token]", "not JSON at all"}
	got, end, err := log.After(0)
	if diff := cmp.Diff(want, texts(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if end != int64(len(printed)) {
		t.Errorf("the next read starts at %d, want %d, after the last complete line", end, len(printed))
	}
	var raw strings.Builder
	if _, err := log.WriteTo(&raw); err != nil || strings.Contains(raw.String(), "sesame") || strings.Contains(raw.String(), "ghp_") || !strings.Contains(raw.String(), `"type":"thread.started"`) {
		t.Errorf("raw (%v): %s", err, raw.String())
	}
}

func TestCallIsShownByItsMainArgument(t *testing.T) {
	call := func(name, input string) string {
		return `{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"` + name + `","name":"` + name + `","input":` + input + `}]}}`
	}
	log := transcript(t, config.Claude, strings.Join([]string{
		call("Bash", `{"description":"look","command":"echo sesame-sesame"}`), call("Read", `{"file_path":"/w/a.go"}`), call("Ask", `{"command":["a"],"why":1}`),
	}, "\n")+"\n")
	got, _, err := log.After(0)
	if diff := cmp.Diff([]string{"calls Bash echo [hidden: GIVEN]", "calls Read /w/a.go", `calls Ask {"command":["a"],"why":1}`}, texts(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestUnterminatedLineIsRead(t *testing.T) {
	log := transcript(t, config.Command, strings.Repeat("x", 3<<20)+"\nlast")
	end, err := log.Size()
	if err != nil {
		t.Fatal(err)
	}
	for looks := 0; end > 0; looks++ {
		var lines []attempt.LogLine
		if lines, end, err = log.Before(end, 1); err != nil || looks > 10 {
			t.Fatalf("after %d looks at %d: %v", looks, end, err)
		}
		for _, l := range lines {
			if len(l.Text) > 10_000 {
				t.Fatalf("a line of %d bytes", len(l.Text))
			}
		}
	}
}
