package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// namespace follows bubblewrap's PID namespace by what bubblewrap reports.
type namespace struct {
	mu       sync.Mutex
	pid      int           // of its first process, as the host sees it; 0 until known
	handle   int           // its pidfd, or -1
	ran      bool          // the program was started, by bubblewrap's account
	reported chan struct{} // closed when the report has ended
}

// watch reads the report: one JSON object with the child's PID, and one with its
// exit code if the program could be started.
//
// The first process waits before it starts the program, until its bounds are set.
func watch(status, release *os.File) *namespace {
	n := &namespace{handle: -1, reported: make(chan struct{})}
	go func() {
		defer close(n.reported)
		defer status.Close()
		defer release.Close() // which lets a program begin whose report was not understood
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
				bound(report.Pid)
				release.Close()
			}
			n.mu.Unlock()
		}
	}()
	return n
}

// first is the PID of the namespace's first process, 0 if it is unknown.
func (n *namespace) first() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pid
}

// finish waits for the end of the namespace after bubblewrap itself ended, and
// says so if the program never ran. The kernel lets the first process end only
// after all others.
func (n *namespace) finish(exit Exit) error {
	var problem error
	n.mu.Lock()
	handle := n.handle
	n.mu.Unlock()
	if handle >= 0 {
		defer unix.Close(handle)
		poll := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
		for end := time.Now().Add(dying); ; {
			ready, err := unix.Poll(poll, int(pollEvery.Milliseconds()))
			if ready > 0 {
				break
			}
			if err != nil && err != unix.EINTR || time.Now().After(end) {
				problem = errors.New("the sandbox did not end after bubblewrap did")
				break
			}
		}
	}
	if problem != nil {
		return problem
	}
	<-n.reported
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ran && exit.Signal == "" {
		return fmt.Errorf("%w (status %d)", ErrSetup, exit.Code)
	}
	return nil
}
