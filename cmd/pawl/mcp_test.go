package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/internal/testtool"
)

// What the tool answers is tested in internal/testtool.
func TestPawlMCPServesUntilSIGTERMAndEndsItsCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child := filepath.Join(dir, "child")
	spec, err := json.Marshal(testtool.Spec{Dir: dir, Commands: []string{"echo $$ > child; sleep 1000"}, Timeout: 600, MaxCalls: 1, Journal: filepath.Join(dir, "journal")})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "spec.json")
	if err := os.WriteFile(file, spec, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testrig.Program, "mcp", "--spec", file)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	lines := bufio.NewReader(out)
	if answer, err := lines.ReadString('\n'); err != nil || !strings.Contains(answer, `"tools"`) {
		t.Fatalf("%v: %s", err, answer)
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_tests","arguments":{}}}`)
	pid := 0
	for end := time.Now().Add(testrig.Patience); pid == 0; time.Sleep(time.Millisecond) {
		if b, _ := os.ReadFile(child); strings.HasSuffix(string(b), "\n") {
			pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		}
		if time.Now().After(end) {
			t.Fatal("the command was not started")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(testrig.Patience); ; time.Sleep(time.Millisecond) {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(state), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

func TestPawlMCPRefusesAWrongSpec(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "spec.json")
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(testrig.Program, "mcp", "--spec", file).CombinedOutput()
	if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != exitUsage || !strings.Contains(string(out), "spec") {
		t.Errorf("%v: %s", err, out)
	}
}
