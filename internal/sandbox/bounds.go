package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxProcesses bounds the processes and threads of one sandbox. The largest
// builds and test runs have some hundreds. The kernel counts for each user
// namespace (since Linux 5.14), so one sandbox's fork bomb takes nothing from
// another; it does not count for root, so that Pawl should run as an ordinary
// user, as its image does.
const maxProcesses = 4096

// oomScore makes the kernel end a program in the sandbox before anything else,
// and so before Pawl, when the machine is out of memory: the most that
// proc(5) allows in oom_score_adj. No right is needed to raise it.
const oomScore = 1000

// bound sets the bounds of a sandbox on its first process; what it starts has
// them, too. They are a help against what agents do to the machine; a kernel
// that refuses one does not keep the program from running.
func bound(pid int) {
	first(pid)
	limit := unix.Rlimit{Cur: maxProcesses, Max: maxProcesses}
	_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil)
}

// first has a process ended first when memory runs out.
func first(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), fmt.Appendf(nil, "%d", oomScore), 0)
}
