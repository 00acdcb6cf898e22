package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Bounds of one command and of the journal.
const (
	keptOutput = 64 << 10 // bytes, from the end, as the verifier keeps them
	maxJournal = 1 << 20  // bytes read of the journal
	// outputAfterEnd is how long a command's children may hold its output open
	// when it is over.
	outputAfterEnd = time.Second
)

// commandEnd is how a command came out.
type commandEnd struct {
	failure string // what went wrong, to stand behind the command; empty when it succeeded
	output  string // both streams, the last 64 KiB
}

// runTestCommand runs a command for the shell. When it returns, everything that the
// command started in its process group is killed.
func runTestCommand(ctx context.Context, command, dir string) commandEnd {
	var kept tailWriter
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Dir, cmd.Env = dir, withoutCredentials(os.Environ())
	cmd.Stdout, cmd.Stderr = &kept, &kept
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = outputAfterEnd
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Start()
	if err != nil {
		return commandEnd{failure: "could not be started: " + err.Error()}
	}
	err = cmd.Wait()
	// The shell may be gone and what it started not. ESRCH says that nothing is.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	end := commandEnd{output: kept.String()}
	state := cmd.ProcessState
	switch {
	case ctx.Err() != nil:
		end.failure = "was ended before it was done"
	case err == nil || errors.Is(err, exec.ErrWaitDelay) && state.Success():
	case state.ExitCode() >= 0:
		end.failure = fmt.Sprintf("ended with exit code %d", state.ExitCode())
	default:
		end.failure = "ended: " + err.Error()
	}
	return end
}

// withoutCredentials leaves out the variables whose names say that they are
// secret: a test needs none of the agent's.
func withoutCredentials(env []string) []string {
	secret := []string{"KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "PAT", "CREDENTIAL", "CREDENTIALS", "AUTH", "AUTHORIZATION", "COOKIE"}
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(strings.Split(strings.ToUpper(name), "_"), func(word string) bool { return slices.Contains(secret, word) })
	})
}

// tailWriter keeps the end of what is written to it.
type tailWriter struct {
	mu sync.Mutex
	b  []byte
}

func (w *tailWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, p[max(0, len(p)-keptOutput):]...)
	if len(w.b) > 2*keptOutput {
		w.b = append(w.b[:0], w.b[len(w.b)-keptOutput:]...)
	}
	return len(p), nil
}

func (w *tailWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b[max(0, len(w.b)-keptOutput):])
}

// testCall is one line of the journal.
type testCall struct {
	At          time.Time `json:"at"`
	Passed      bool      `json:"passed"`
	Failed      *int      `json:"failed,omitempty"`       // tests; absent where the runner does not tell
	PassedTests *int      `json:"passed_tests,omitempty"` // likewise
	MS          int64     `json:"ms"`
}

// appendCall writes a call to the journal.
func appendCall(name string, c testCall) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

// countCalls is how many calls the journal has; it need not exist yet.
func countCalls(name string) (int, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open the journal: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxJournal))
	if err != nil {
		return 0, fmt.Errorf("read the journal: %w", err)
	}
	return bytes.Count(b, []byte("\n")), nil
}
