package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/crash/crashtest"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// buildCrash builds the program with its crash points, once.
var buildCrash = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(testrig.Program), "pawl-crashpoints")
	out, err := exec.Command("go", "build", "-tags", "crashpoints", "-ldflags=-s -w", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build pawl with crash points: %w\n%s", err, out)
	}
	return path, nil
})

// crashBinary is the program with its crash points, for end-to-end tests only:
// building it takes longer than the quick tests.
func crashBinary(t *testing.T) string {
	t.Helper()
	testrig.EndToEnd(t)
	path, err := buildCrash()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// lives is a rig whose server dies and is started again.
type lives struct {
	*rig
	*crashtest.Lives
}

// newLives makes a rig for the program with crash points.
func newLives(t *testing.T, files map[string]string) *lives {
	t.Helper()
	needs.All(t, "a server that kills itself")
	l := &lives{Lives: crashtest.New(t, crashBinary(t))}
	l.rig = newRigAt(t, files, l.Now)
	l.Dated, l.Rig.Addr = l.Now, l.Lives.Addr
	l.Lives.World, l.Lives.Dir, l.Lives.Data, l.Lives.Read, l.Lives.Log = l.Rig.World, l.Rig.Dir, l.Rig.Data, l.Rig.Read, l.Rig.Log
	l.World.SetWebhookURL(l.URL("/api/github/hook"))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the server:\n%s", l.Log)
		}
	})
	return l
}

// begin writes the configuration and starts the first life.
func (l *lives) begin() {
	l.T.Helper()
	l.File()
	l.Begin()
}

// settled waits until a server serves, every delivery is handled, every run has
// ended and cond holds; it returns the threads.
func (l *lives) settled(what string, within time.Duration, cond func(map[string]thread.State) bool) (states map[string]thread.State) {
	l.T.Helper()
	before := -1
	for deadline := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		l.Serving()
		now := len(l.World.Deliveries())
		l.Must(l.World.WaitDelivered(l.T.Context()))
		missed := len(l.Missed()) // before the states, which it may still change
		states, ok := l.States()
		if ok && cond(states) && now == before && missed == 0 {
			return states
		}
		before = now
		if time.Now().After(deadline) {
			l.T.Fatalf("%s did not happen; died at %v\n%s", what, l.Died(), l.Standing())
		}
	}
}

// rigThread is the thread of an issue of the rig's repository.
func rigThread(n int) thread.ID { return thread.ID{Owner: "acme", Name: "widgets", Number: n} }
