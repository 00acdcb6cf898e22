// Package crashtest kills and restarts servers, and checks that nothing was lost, repeated or forgotten. Only tests
// import it.
package crashtest

import (
	"bufio"
	"cmp"
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

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// Lives is a server that is restarted after each death, as by a supervisor. Each restart moves the clock past the dead
// process's leases, so that no test waits for them.
type Lives struct {
	T       testing.TB
	World   *fakegithub.Server
	Dir     string                   // holds the configuration
	Config  string                   // the configuration's name; empty means pawl.yml
	Data    string                   // the data directory in Dir
	Read    func(func(*store.Store)) // opens the server's database for reading
	Binary  string                   // the program with its crash points
	Addr    string                   // where every life answers webhooks
	Env     func(life int) []string  // a life's environment, in addition to the test's own
	Pause   time.Duration            // how far each restart moves the clock
	Ahead   atomic.Int64             // how far the clock of GitHub and of the next life is ahead
	Log     io.Writer                // gets the log of all lives
	Orderly bool                     // lives end by SIGTERM
	since   time.Time                // when the test first saw a server serve
	checked int64                    // the last delivery that was checked

	mu      sync.Mutex
	server  *exec.Cmd
	ready   chan struct{} // closed when this life's server serves
	deaths  []Death
	asked   time.Time // when this life was asked to stop
	stopped bool
	over    chan error // how the supervisor ended
}

// Death is the end of a life by a signal.
type Death struct {
	At    time.Time // by the server's own clock
	Point string    // the crash point, or how else the life ended
}

// afterLease is how far a restart with SQLite moves the clock: past the dead process's leases and delivery claims.
const afterLease = thread.LeaseTime + 5*time.Second

// StopsWithin limits an orderly stop.
const StopsWithin = 30 * time.Second

// patience limits each wait. It is long, so that no test fails on a busy machine.
const patience = 10 * time.Minute

// New makes a server at a free address. The caller sets World, Dir, Data, Read and Log before Begin.
func New(t testing.TB, binary string) *Lives {
	t.Helper()
	l := &Lives{
		T:      t,
		Binary: binary,
		Env:    func(int) []string { return nil },
		Pause:  afterLease,
		ready:  make(chan struct{}),
		over:   make(chan error, 1),
	}
	l.address()
	return l
}

// address chooses a free address for all lives, so that webhooks are refused between two lives and reach the next one.
// The port is below 32768: the kernel gives higher ones to outgoing connections, also between two lives.
func (l *Lives) address() {
	l.T.Helper()
	for {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		l.must(err)
		l.Addr = listener.Addr().String()
		l.must(listener.Close())
		return
	}
}

func (l *Lives) must(err error) {
	l.T.Helper()
	if err != nil {
		l.T.Fatal(err)
	}
}

// Now is the clock of the fake GitHub and, from each start, of the server.
func (l *Lives) Now() time.Time { return time.Now().Add(time.Duration(l.Ahead.Load())) }

func (l *Lives) config() string { return filepath.Join(l.Dir, cmp.Or(l.Config, "pawl.yml")) }

// Begin starts the first life with the configuration in Dir.
func (l *Lives) Begin() {
	go func() { l.over <- l.supervise() }()
	l.T.Cleanup(l.end)
}

// supervise starts one life after the other until end. It returns an error if a server ends without being killed or
// asked to stop.
func (l *Lives) supervise() error {
	for life := 0; ; life++ {
		ahead := time.Duration(l.Ahead.Load())
		cmd := exec.Command(l.Binary, "serve", "--config", l.config(), "--listen", l.Addr)
		cmd.Env = append(os.Environ(), "PAWL_CRASH_CLOCK="+ahead.String())
		cmd.Env = append(cmd.Env, l.Env(life)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		stderr, err := cmd.StderrPipe()
		if err != nil {
			return err
		}
		started, err := l.start(cmd)
		if err != nil || !started {
			return err
		}
		point := l.listen(bufio.NewReader(stderr))
		if err := l.ended(cmd, cmd.Wait(), ahead, point); err != nil {
			return err
		}
		l.Ahead.Add(int64(l.Pause))
	}
}

// start begins a life, unless the test has ended.
func (l *Lives) start(cmd *exec.Cmd) (started bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return false, nil
	}
	l.server = cmd
	return true, cmd.Start()
}

// ended records how a life ended, and returns an error for an unexpected end.
func (l *Lives) ended(cmd *exec.Cmd, err error, ahead time.Duration, point string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.asked
	l.asked, l.ready = time.Time{}, make(chan struct{})
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	killed := status.Signaled() && status.Signal() == syscall.SIGKILL
	if killed || !asked.IsZero() {
		l.deaths = append(l.deaths, Death{time.Now().Add(ahead), cmp.Or(point, usual(killed))})
	}
	if killed || asked.IsZero() {
		if l.stopped || status.Signaled() {
			return nil
		}
		return fmt.Errorf("the server ended by itself: %w", err)
	}
	// Until a server handles signals, SIGTERM kills it.
	inOrder := err == nil || status.Signaled() && status.Signal() == syscall.SIGTERM
	took := time.Since(asked)
	switch {
	case inOrder && took > StopsWithin:
		return fmt.Errorf("the server took %s to stop, want at most %s", took, StopsWithin)
	case !inOrder && !l.stopped:
		return fmt.Errorf("the server ended by itself: %w", err)
	}
	return nil
}

// Stopped is the Point of a Death by an orderly stop.
const Stopped = "stopped"

// usual names the end of a life that meets no crash point.
func usual(killed bool) string {
	if killed {
		return "killed from outside"
	}
	return Stopped
}

// listen reads a life's log to its end and returns its crash point, if any.
func (l *Lives) listen(lines *bufio.Reader) (point string) {
	for {
		line, err := lines.ReadBytes('\n')
		if _, err := l.Log.Write(line); err != nil {
			return "the log could not be written: " + err.Error()
		}
		var output struct{ Message, Point string }
		if json.Unmarshal(line, &output) == nil {
			switch output.Message {
			case "pawl serves":
				l.mu.Lock()
				close(l.ready)
				l.mu.Unlock()
			case "killed at a crash point":
				point = output.Point
			}
		}
		if err != nil {
			return point
		}
	}
}

// Serving waits until a server serves, and returns it.
func (l *Lives) Serving() *exec.Cmd {
	l.T.Helper()
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
					l.since = l.Now()
				}
				return server
			}
		case err := <-l.over:
			l.over <- nil // so that end can receive it, too
			l.T.Fatal(err)
		case <-deadline:
			l.T.Fatal("no server serves")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Died returns the deaths so far.
func (l *Lives) Died() []Death {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.deaths)
}

// Kill kills the server from outside or, if Orderly, stops it.
func (l *Lives) Kill() {
	if l.Orderly {
		l.Stop()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		_ = l.server.Process.Signal(syscall.SIGKILL) // the server may be dead already
	}
}

// Stop asks the server to stop. A second call does nothing: a second signal would end the server at once.
func (l *Lives) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server == nil || !l.asked.IsZero() {
		return
	}
	l.asked = time.Now()
	_ = l.server.Process.Signal(syscall.SIGTERM) // the server may be dead already
}

// Failed returns why the supervisor gave up, or nil.
func (l *Lives) Failed() error {
	select {
	case err := <-l.over:
		l.over <- nil // so that end can receive it, too
		return err
	default:
		return nil
	}
}

// Serves reports whether this life's server serves.
func (l *Lives) Serves() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// end kills the last life and waits for the supervisor.
func (l *Lives) end() {
	l.mu.Lock()
	l.stopped = true
	if l.server != nil {
		_ = l.server.Process.Kill() // it may have ended
	}
	l.mu.Unlock()
	if err := <-l.over; err != nil {
		l.T.Error(err)
	}
}

// States returns the states of all threads. ok is false while work is left or a run has not ended.
func (l *Lives) States() (states map[string]thread.State, ok bool) {
	l.T.Helper()
	l.Read(func(db *store.Store) { states, ok = l.finalStates(db) })
	return states, ok
}

func (l *Lives) finalStates(db *store.Store) (states map[string]thread.State, ok bool) {
	l.T.Helper()
	ctx := l.T.Context()
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
				l.T.Fatalf("event %d of %s has number %d", i+1, row.Thread, e.Seq)
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

// StatusOutput returns the output of pawl status, for a failed test.
func (l *Lives) StatusOutput() string {
	out, err := exec.Command(l.Binary, "status", "--config", l.config()).CombinedOutput()
	return fmt.Sprintf("%s%v", out, err)
}
