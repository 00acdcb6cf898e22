package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// buildCrash builds the program with its crash points, once.
var buildCrash = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(pawlBinary), "pawl-crashpoints")
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
	endToEnd(t)
	path, err := buildCrash()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// lives is a rig whose server dies and is started again at once, as a supervisor
// does. Each life begins a lease after the one before: then what the dead held is
// free, and no test waits for it.
type lives struct {
	*rig
	binary  string
	env     func(life int) []string // beside the test's own
	pause   time.Duration           // how much later by the clock each life begins
	ahead   atomic.Int64            // of everybody's clock
	sink    io.Writer               // of the log
	long    atomic.Bool             // the soak lets this life be
	orderly bool                    // lives end by SIGTERM
	since   time.Time               // when the test first saw a server serve
	checked int64                   // the last delivery that was checked

	mu      sync.Mutex
	server  *exec.Cmd
	ready   chan struct{} // closed when this life's server serves
	deaths  []death
	asked   time.Time // when this life was asked to stop
	stopped bool
	over    chan error // how the supervisor ended
}

// death is the end of a life by SIGKILL: when, by its own clock, and at which
// point, or from outside.
type death struct {
	at    time.Time
	point string
}

// afterLease is how much later a life begins with SQLite: the lease of the dead
// and the tries of its deliveries have run out.
const afterLease = thread.LeaseTime + 5*time.Second

// stopsWithin bounds an orderly stop.
const stopsWithin = 30 * time.Second

// newLives makes a rig for the program with crash points.
func newLives(t *testing.T, files map[string]string) *lives {
	t.Helper()
	l := &lives{binary: crashBinary(t), pause: afterLease, ready: make(chan struct{}), over: make(chan error, 1)}
	l.env = func(int) []string { return nil }
	l.rig = newRigAt(t, files, l.now)
	l.dated = l.now
	l.sink = l.log
	l.address()
	l.world.SetWebhookURL(l.url("/api/github/hook"))
	return l
}

// address takes a free one, always the same for all lives, so that a webhook is
// refused between two of them and finds the next one. Its port is one that the
// kernel gives to nobody who does not ask for it: those from 32768 on it gives to
// the connections of others, also between two lives.
func (l *lives) address() {
	l.t.Helper()
	for {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		l.must(err)
		l.addr = listener.Addr().String()
		l.must(listener.Close())
		return
	}
}

// now is the clock of the fake GitHub and, from each start, of the server.
func (l *lives) now() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }

// begin writes the configuration and starts the first life.
func (l *lives) begin() {
	l.t.Helper()
	l.join(l.file())
}

// join starts the first life by a configuration that is there.
func (l *lives) join(path string) {
	go l.supervise(path)
	l.t.Cleanup(func() {
		l.end(syscall.SIGKILL)
		if l.t.Failed() && l.sink == l.log {
			l.t.Logf("log of the server:\n%s", l.log)
		}
	})
}

// supervise starts one life after the other until end. A server that ends by
// itself for another reason than SIGKILL is an error.
func (l *lives) supervise(config string) {
	for life := 0; ; life++ {
		ahead := time.Duration(l.ahead.Load())
		cmd := exec.Command(l.binary, "serve", "--config", config, "--listen", l.addr)
		cmd.Env = append(os.Environ(), "PAWL_CRASH_CLOCK="+ahead.String())
		cmd.Env = append(cmd.Env, l.env(life)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		stderr, err := cmd.StderrPipe()
		if err != nil {
			l.over <- err
			return
		}
		l.mu.Lock()
		if l.stopped {
			l.mu.Unlock()
			l.over <- nil
			return
		}
		err = cmd.Start()
		l.server = cmd
		l.mu.Unlock()
		if err != nil {
			l.over <- err
			return
		}
		point := l.listen(bufio.NewReader(stderr))
		err = cmd.Wait()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		l.mu.Lock()
		stopped := l.stopped
		if point == "" {
			point = "killed from outside"
			if l.orderly {
				point = "stopped"
			}
		}
		asked := l.asked
		if status.Signaled() && status.Signal() == syscall.SIGKILL || !asked.IsZero() {
			l.deaths = append(l.deaths, death{time.Now().Add(ahead), point})
		}
		l.asked, l.ready = time.Time{}, make(chan struct{})
		l.mu.Unlock()
		// Before it listens to signals, a server ends by SIGTERM itself.
		inOrder := !asked.IsZero() && (err == nil || status.Signaled() && status.Signal() == syscall.SIGTERM)
		if took := time.Since(asked); inOrder && took > stopsWithin {
			l.over <- fmt.Errorf("the server took %s to stop, want at most %s", took, stopsWithin)
			return
		}
		if !stopped && !inOrder && (!status.Signaled() || !asked.IsZero()) {
			l.over <- fmt.Errorf("the server ended by itself: %w", err)
			return
		}
		l.ahead.Add(int64(l.pause))
	}
}

// listen reads a life's log to its end and returns the point that it died at.
func (l *lives) listen(lines *bufio.Reader) (point string) {
	for {
		line, err := lines.ReadBytes('\n')
		if _, err := l.sink.Write(line); err != nil {
			return "the log could not be written: " + err.Error()
		}
		var said struct{ Message, Point string }
		if json.Unmarshal(line, &said) == nil {
			switch said.Message {
			case "pawl serves":
				l.mu.Lock()
				close(l.ready)
				l.mu.Unlock()
			case "killed at a crash point":
				point = said.Point
			}
		}
		if err != nil {
			return point
		}
	}
}

// serving waits for a server that serves and returns it.
func (l *lives) serving() *exec.Cmd {
	l.t.Helper()
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		ready := l.ready
		l.mu.Unlock()
		select {
		case <-ready:
			l.mu.Lock()
			same, server := ready == l.ready, l.server
			l.mu.Unlock()
			if same {
				if l.since.IsZero() {
					l.since = l.now()
				}
				return server
			}
		case err := <-l.over:
			l.t.Fatalf("%v\n%s", err, l.log)
		case <-deadline:
			l.t.Fatal("no server serves")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// died is how the lives ended so far.
func (l *lives) died() []death {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.deaths)
}

// end ends the last life with a signal, and the supervisor with it.
func (l *lives) end(sig syscall.Signal) {
	l.mu.Lock()
	already := l.stopped
	l.stopped = true
	if l.server != nil && !already {
		_ = l.server.Process.Signal(sig) // it may have ended
	}
	l.mu.Unlock()
	if already {
		return
	}
	if err := <-l.over; err != nil {
		l.t.Error(err)
	}
}

// states are the folds of all threads, once nothing is left to be done and every
// run has ended; ok is false before.
func (l *lives) states() (states map[string]thread.State, ok bool) {
	l.t.Helper()
	l.read(func(db *store.Store) { states, ok = l.restingStates(db) })
	return states, ok
}

func (l *lives) restingStates(db *store.Store) (states map[string]thread.State, ok bool) {
	l.t.Helper()
	ctx := l.t.Context()
	s, err := db.Stats(ctx)
	l.must(err)
	if s.Deliveries[thread.Received]+s.Deliveries[thread.Failed]+s.Queued+s.Running > 0 {
		return nil, false
	}
	rows, err := db.Threads(ctx, 10000)
	l.must(err)
	states = map[string]thread.State{}
	for _, row := range rows {
		events, err := db.Events(ctx, row.Thread, 0)
		l.must(err)
		for i, e := range events {
			if e.Seq != int64(i+1) {
				l.t.Fatalf("event %d of %s has number %d", i+1, row.Thread, e.Seq)
			}
		}
		state, err := thread.Fold(events)
		l.must(err)
		if _, running := state.Running(); running || state.Open() {
			return nil, false
		}
		states[row.Thread.String()] = state
	}
	return states, true
}

// settled waits until a server serves, every delivery is handled, every run has
// ended and cond holds; it returns the threads.
func (l *lives) settled(what string, within time.Duration, cond func(map[string]thread.State) bool) (states map[string]thread.State) {
	l.t.Helper()
	before := -1
	for deadline := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		l.serving()
		now := len(l.world.Deliveries())
		l.must(l.world.WaitDelivered(l.t.Context()))
		missed := len(l.missed()) // before the states, which it may still change
		states, ok := l.states()
		if ok && cond(states) && now == before && missed == 0 {
			return states
		}
		before = now
		if time.Now().After(deadline) {
			l.t.Fatalf("%s did not happen; died at %v\n%s", what, l.died(), l.standing())
		}
	}
}

// standing tells how all threads stand, for a test that failed.
func (l *lives) standing() string {
	out, err := exec.Command(pawlBinary, "status", "--config", filepath.Join(l.dir, "pawl.yml")).CombinedOutput()
	return fmt.Sprintf("%s%v", out, err)
}
