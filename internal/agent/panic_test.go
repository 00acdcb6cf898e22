package agent

import (
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/pawlbot/pawl/internal/panics"
)

// A panic while the output is read ends only the process and this run.
func TestPanicWhileReadingOutputEndsTheRun(t *testing.T) {
	out, writes := io.Pipe()
	kill := sync.OnceFunc(func() { writes.Close() })
	p := Process{Stdout: out, Stderr: strings.NewReader(""), Kill: kill, Wait: func() (Exit, error) { return Exit{}, nil }}
	go func() { _, _ = io.WriteString(writes, "a line\n") }()
	_, err := Run(t.Context(), p, Adapter{Parse: func([]byte, func(Event)) { panic("nil map") }}, RunOptions{})
	if err == nil || !strings.Contains(panics.Stack(err), "panic_test.go") {
		t.Errorf("%v, want the panic with its stack", err)
	}
}
