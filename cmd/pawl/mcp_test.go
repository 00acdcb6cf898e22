package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/internal/testtool"
)

// internal/testtool tests the tool's answers.
func TestPawlMCPServesUntilSIGTERMAndEndsItsCommand(t *testing.T) {
	t.Parallel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	spec, err := json.Marshal(testtool.Spec{
		Dir:      dir,
		Commands: []string{"echo $$ > child; sleep 1000"},
		Timeout:  600,
		MaxCalls: 1,
		Journal:  filepath.Join(dir, "journal"),
	})
	must(err)
	file := filepath.Join(dir, "spec.json")
	write(t, file, string(spec))
	cmd := exec.Command(testrig.Program, "mcp", "--spec", file)
	in, err := cmd.StdinPipe()
	must(err)
	out, err := cmd.StdoutPipe()
	must(err)
	must(cmd.Start())
	defer cmd.Wait()
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_tests","arguments":{}}}`)
	until := func(what string, cond func() bool) {
		t.Helper()
		for end := time.Now().Add(testrig.Patience); !cond(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what + " did not happen")
			}
		}
	}
	var pid int
	until("the command's start", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "child"))
		_, err := fmt.Sscanf(string(text), "%d\n", &pid)
		return err == nil
	})
	must(cmd.Process.Signal(syscall.SIGTERM))
	answer, err := io.ReadAll(out)
	if err != nil || !strings.Contains(string(answer), `"tools"`) {
		t.Errorf("answer %q, %v; want the list of tools", answer, err)
	}
	until("the command's end", func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(state), ") Z ")
	})
}

func TestPawlMCPRefusesAWrongSpec(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "spec.json")
	write(t, file, "nothing")
	if code, _, stderr := pawl(t, "", nil, "mcp", "--spec", file); code != exitUsage || !strings.Contains(stderr, "spec") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
