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

// Time limits. Grace and dying together stay under the 5 s of a stopped program.
const (
	grace     = 2 * time.Second       // between SIGTERM and SIGKILL
	dying     = 2 * time.Second       // for the kernel to end killed processes
	drain     = 5 * time.Second       // for the outputs to end after the last process
	emptying  = 30 * time.Second      // for the kernel to end a sandbox: on a busy machine thousands of processes take seconds
	pollEvery = 10 * time.Millisecond // while waiting for processes to vanish
)

type Exit struct {
	Code int // the exit status, or 128 plus the signal
	// Signal is that signal's name, such as "SIGKILL", or empty. Under bubblewrap a program that itself exits with
	// such a status looks the same.
	Signal string
	// Exceeded names the limit that the program met, for people; empty if unknown.
	Exceeded string
}

type Process struct {
	stdout, stderr *os.File
	marker         string
	cmd            *exec.Cmd
	status         *os.File // bubblewrap's report; nil in mode None
	release        *os.File // closing it lets the program in bubblewrap begin
	inside         *namespace
	hand           *hand  // nil with the host's network
	group          *group // nil without control groups
	exceeded       atomic.Pointer[string]

	cancel context.CancelFunc // ends the program
	begun  chan struct{}      // closed after the start
	done   chan struct{}      // closed when all has ended
	exit   Exit               // set before done is closed, like err
	err    error
}

// Stdout is the program's standard output, until its last writer has ended. Call it once.
func (p *Process) Stdout() io.Reader { return &output{f: p.stdout} }

// Stderr is the program's standard error, and ends as Stdout does.
func (p *Process) Stderr() io.Reader { return &output{f: p.stderr} }

// output is the reading end of a pipe, closed at its end.
type output struct {
	f    *os.File
	late int // bytes read after the deadline
}

// pipeMost is the size limit of an ordinary user's pipe (/proc/sys/fs/pipe-max-size).
const pipeMost = 1 << 20

// Read reads until the end of the pipe. A stray process cannot keep it open: some time after the last known process
// ended, only the pipe's content is read.
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

// Wait waits until the program and all its children have ended. The error is the sandbox's (failed setup, as
// standard error says, or unkillable processes), never about how the program ended.
func (p *Process) Wait() (Exit, error) {
	<-p.done
	return p.exit, p.err
}

// Kill ends the program with all its children: SIGTERM, two seconds of grace, SIGKILL. It waits for the end.
func (p *Process) Kill() {
	p.cancel()
	<-p.done
}

// start starts the command and its watchers, and closes the files that were only for it.
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
	// The death signal ends the program when Pawl is killed. Setsid detaches it from Pawl's terminal and makes it
	// the head of a process group.
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

// run starts and waits for the command on one thread: the death signal comes when the thread that started the child
// ends, and Go ends threads as it likes. Then it ends the rest.
func (p *Process) run(l Limits, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The keys of Pawl's starter are not the program's: this thread gets its own keyring, which the child inherits.
	// The kernel may have none; the sandbox also blocks the calls.
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
	} else { // a non-zero status, or a requested end, is no error of ours
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
	// Only a closed file cannot have a deadline here.
	_ = p.stdout.SetReadDeadline(until)
	_ = p.stderr.SetReadDeadline(until)
	p.cancel()
	close(p.done)
}

// ask asks all processes to end. After grace the command is killed: without its head bubblewrap's namespace dies as
// a whole, and the rest of a plain program run ends next.
func (p *Process) ask() error {
	<-p.begun
	for _, pid := range p.members() {
		signal(pid, syscall.SIGTERM)
	}
	return nil
}

// members are the processes that get the first signal: all except bubblewrap's own two.
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

// oomScore makes the kernel end a sandboxed program first when memory runs out: the most that proc(5) allows in
// oom_score_adj, which needs no privilege.
const oomScore = 1000

// bound sets a sandbox's limits on its first process, for all. It continues if a kernel refuses one. The kernel
// counts processes per user namespace (since Linux 5.14), so a fork bomb takes nothing from others, but not for
// root, as which Pawl should not run.
func bound(pid int, l Limits) {
	first(pid)
	for which, most := range map[int]uint64{unix.RLIMIT_NPROC: uint64(l.PIDs), unix.RLIMIT_FSIZE: uint64(l.Disk)} {
		if most > 0 {
			_ = unix.Prlimit(pid, which, &unix.Rlimit{Cur: most, Max: most}, nil)
		}
	}
}

// first makes a process end first when memory runs out.
func first(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), fmt.Appendf(nil, "%d", oomScore), 0)
}

// namespace follows bubblewrap's PID namespace by bubblewrap's report.
type namespace struct {
	mu       sync.Mutex
	pid      int           // of its first process, in the host's numbers; 0 until known
	handle   int           // its pidfd, or -1
	ran      bool          // bubblewrap reported the program's start
	reported chan struct{} // closed when the report has ended
}

// follow reads the report: one JSON object with the child's PID, and one with its exit code if the program could
// start. The program waits until the limits are set.
func follow(status, release *os.File, l Limits) *namespace {
	n := &namespace{handle: -1, reported: make(chan struct{})}
	go func() {
		defer close(n.reported)
		defer status.Close()
		defer release.Close() // it lets a program begin whose report was not understood
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

// first is the PID of the namespace's first process, 0 if unknown.
func (n *namespace) first() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pid
}

// finish waits for the end of the namespace after bubblewrap's, and reports a program that never ran. The kernel
// lets the first process end only after all others.
func (n *namespace) finish(exit Exit) error {
	n.mu.Lock()
	handle := n.handle
	n.mu.Unlock()
	if handle >= 0 {
		defer unix.Close(handle)
		// It should die with its parent, but a program that controls it could have changed that.
		_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) // it may be gone
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
