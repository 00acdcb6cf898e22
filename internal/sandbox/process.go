package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Time limits. grace plus dying is less than 5 s, the limit for stopping a program.
const (
	grace     = 2 * time.Second       // between SIGTERM and SIGKILL
	dying     = 2 * time.Second       // until the kernel has ended killed processes
	drain     = 5 * time.Second       // for reading output after the last process has ended
	emptying  = 30 * time.Second      // for the kernel to end a sandbox; thousands of processes take seconds
	pollEvery = 10 * time.Millisecond // between checks while processes end
)

type Exit struct {
	Code int // exit status, or 128 plus the signal
	// Signal names the signal, such as "SIGKILL", or is empty. An exit status above 128 also counts as a signal.
	Signal string
	// Exceeded names the limit that the program exceeded, or is empty.
	Exceeded string
}

type Process struct {
	stdout, stderr *os.File
	marker         string
	cmd            *exec.Cmd
	status         *os.File // bubblewrap's report; nil in mode None
	release        *os.File // closing release lets the program begin
	inside         *namespace
	hand           *hand  // nil on the host's network
	group          *group // nil without control groups
	exceeded       atomic.Pointer[string]

	cancel context.CancelFunc
	begun  chan struct{} // closed after the start
	done   chan struct{} // closed after the end
	exit   Exit          // set before done closes, like err
	err    error
}

// Stdout returns the program's standard output, which ends when its last writer ends. Call it once.
func (p *Process) Stdout() io.Reader { return &output{f: p.stdout} }

// Stderr returns standard error, like Stdout.
func (p *Process) Stderr() io.Reader { return &output{f: p.stderr} }

// output reads a pipe and closes it at the end.
type output struct {
	f    *os.File
	late int // bytes read after the deadline
}

// pipeMost is an ordinary user's maximum pipe size in bytes (/proc/sys/fs/pipe-max-size).
const pipeMost = 1 << 20

// Read reads to the end of the pipe. After the last known process has ended, a stray process cannot keep the pipe
// open.
func (o *output) Read(b []byte) (int, error) {
	n, err := o.f.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) && o.late < pipeMost {
		if err = o.f.SetReadDeadline(time.Now().Add(pollEvery)); err == nil {
			n, err = o.f.Read(b)
			o.late += n
		}
	}
	if err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
		o.f.Close()
		err = io.EOF
	}
	return n, err
}

// Wait waits until the program and its children have ended. The error concerns the sandbox (failed setup, unkillable
// processes), not the program.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// Kill sends the program and its children SIGTERM and, after two seconds, SIGKILL. It waits until they have ended.
func (p *Process) Kill() {
	p.cancel()
	<-p.done
}

// start starts the command and its watchers, and closes files that only the command needs.
func (p *Process) start(ctx context.Context, cmd *exec.Cmd, s *Sandbox, spec Spec) (err error) {
	var in, stdout, stderr *os.File
	defer func() {
		closeAll(append(cmd.ExtraFiles, in, stdout, stderr)...)
		if err != nil {
			closeAll(p.stdout, p.stderr, p.status, p.release)
			p.hand.close()
			if p.group != nil {
				p.group.end()
			}
		}
	}()
	if in, err = memoryFile(string(spec.Stdin)); err != nil {
		return err
	}
	if p.stdout, stdout, err = os.Pipe(); err != nil {
		return err
	}
	if p.stderr, stderr, err = os.Pipe(); err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, stdout, stderr
	// The death signal ends the program if Pawl is killed. Setsid detaches the program from Pawl's terminal.
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	if p.group, err = s.newGroup(); err != nil {
		return err
	}
	if p.group != nil {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(p.group.handle.Fd())
	}
	p.cmd, cmd.Cancel, cmd.WaitDelay = cmd, p.ask, grace
	started := make(chan error)
	go p.run(s.limits, started)
	if err := <-started; err != nil {
		return err
	}
	if p.hand != nil {
		go p.hand.take()
	}
	if s.limits.Disk > 0 || s.limits.Memory > 0 && p.group == nil {
		dirs := []string{spec.Dir, spec.Home}
		for _, f := range spec.Folders {
			dirs = append(dirs, f.From)
		}
		go p.watch(ctx, s.limits, dirs)
	}
	return nil
}

// run starts and awaits the command on one thread, since the kernel sends the death signal when the starting thread
// ends. Then it ends the remaining processes.
func (p *Process) run(l Limits, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A new keyring keeps the keys of Pawl's user from the program. An error does not matter: the kernel may lack
	// keyrings, and the sandbox also blocks the calls.
	_, _ = unix.KeyctlJoinSessionKeyring("")
	err := p.cmd.Start()
	if err == nil && p.status != nil {
		p.inside = follow(p.status, p.release, l)
	} else if err == nil {
		first(p.cmd.Process.Pid)
	}
	close(p.begun)
	started <- err
	if err != nil {
		return
	}
	if err := p.cmd.Wait(); p.cmd.ProcessState == nil {
		p.err = err
	} else { // neither a non-zero status nor a requested end is our error
		p.exit = ExitOf(p.cmd.ProcessState)
	}
	if p.inside != nil {
		p.err = errors.Join(p.err, p.inside.finish(p.exit))
	} else if left := killAll(twice(func() []int { return family(p.marker+"\x00", 0) })); left > 0 {
		p.err = errors.Join(p.err, fmt.Errorf("%d processes of %s did not die", left, p.marker))
	}
	if p.group != nil {
		p.exit.Exceeded = p.group.end()
	}
	if why := p.exceeded.Load(); why != nil {
		p.exit.Exceeded = *why
	}
	if p.hand != nil {
		p.hand.end()
	}
	until := time.Now().Add(drain)
	_ = p.stdout.SetReadDeadline(until)
	_ = p.stderr.SetReadDeadline(until)
	p.cancel()
	close(p.done)
}

// ask sends SIGTERM to the program's processes. After grace, the command's WaitDelay, os/exec kills the command. That ends
// bubblewrap's namespace; without bubblewrap, run ends what remains.
func (p *Process) ask() error {
	<-p.begun
	for _, pid := range p.members() {
		signal(pid, syscall.SIGTERM)
	}
	return nil
}

// members returns the program's processes, without bubblewrap's two.
func (p *Process) members() []int {
	pid := p.cmd.Process.Pid
	if p.inside == nil {
		return family(p.marker+"\x00", pid)
	}
	own := []int{pid, p.inside.first()}
	return slices.DeleteFunc(family("", pid), func(member int) bool { return slices.Contains(own, member) })
}

func ExitOf(state *os.ProcessState) Exit {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: 128 + int(ws.Signal()), Signal: unix.SignalName(ws.Signal())}
	}
	code := state.ExitCode()
	if code > 128 {
		return Exit{Code: code, Signal: unix.SignalName(syscall.Signal(code - 128))}
	}
	return Exit{Code: code}
}

// oomScore makes the kernel kill sandboxed programs first: the maximum of oom_score_adj (proc(5)).
const oomScore = 1000

// bound limits the sandbox's first process and thereby all others. It continues if the kernel refuses a limit. The
// process limit counts per user namespace (since Linux 5.14), and does not apply to root.
func bound(pid int, l Limits) {
	first(pid)
	for which, most := range map[int]uint64{unix.RLIMIT_NPROC: uint64(l.PIDs), unix.RLIMIT_FSIZE: uint64(l.Disk)} {
		if most > 0 {
			_ = unix.Prlimit(pid, which, &unix.Rlimit{Cur: most, Max: most}, nil)
		}
	}
}

// first makes the kernel kill a process first when memory runs out.
func first(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), fmt.Appendf(nil, "%d", oomScore), 0)
}

// namespace tracks bubblewrap's PID namespace through bubblewrap's report.
type namespace struct {
	mu       sync.Mutex
	pid      int           // host PID of the first process; 0 if unknown
	handle   int           // pidfd or -1
	ran      bool          // the program started
	reported chan struct{} // closed after the report
}

// follow reads the report: the child's PID, then the exit code if the program started. The program starts once its
// limits are set.
func follow(status, release *os.File, l Limits) *namespace {
	n := &namespace{handle: -1, reported: make(chan struct{})}
	go func() {
		defer close(n.reported)
		defer status.Close()
		defer release.Close() // start the program even if the report was not understood
		for in := json.NewDecoder(status); ; {
			var report struct {
				Pid  int  `json:"child-pid"`
				Code *int `json:"exit-code"`
			}
			if in.Decode(&report) != nil {
				return
			}
			n.mu.Lock()
			n.ran = n.ran || report.Code != nil
			if report.Pid > 0 && n.handle < 0 {
				n.pid = report.Pid
				if fd, err := unix.PidfdOpen(report.Pid, 0); err == nil {
					n.handle = fd
				}
				bound(report.Pid, l)
				release.Close()
			}
			n.mu.Unlock()
		}
	}()
	return n
}

func (n *namespace) first() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pid
}

// finish waits for the namespace's end and reports a program that never ran. The first process ends after all others.
func (n *namespace) finish(exit Exit) error {
	n.mu.Lock()
	handle := n.handle
	n.mu.Unlock()
	if handle >= 0 {
		defer unix.Close(handle)
		// The process should die with its parent, but a program may have changed that.
		_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0)
		poll := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
		for end := time.Now().Add(emptying); ; {
			ready, err := unix.Poll(poll, int(pollEvery.Milliseconds()))
			if ready > 0 {
				break
			}
			if err != nil && err != unix.EINTR || time.Now().After(end) {
				return errors.New("the sandbox did not end after bubblewrap did")
			}
		}
	}
	<-n.reported
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ran && exit.Signal == "" {
		return fmt.Errorf("bubblewrap could not set up the sandbox (status %d)", exit.Code)
	}
	return nil
}
