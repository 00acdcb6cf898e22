// Package sandbox starts programs that may do anything, and ends them with all their children.
//
// Mode Auto uses bubblewrap: own user, PID, mount, IPC and UTS namespaces; a read-only system without the host's
// home directories, run-time state and data; no capabilities; and exactly the given environment. The network is the
// program's own if requested (Network), with listeners made before its start; otherwise it is the host's, with its
// loopback addresses. System calls pass a filter; programs inside cannot make namespaces, so an agent's own sandbox
// must be switched off. Landlock is a second barrier if the kernel has it. /tmp is in memory, so large builds want
// a TMPDIR below the home directory. Pawl should not run as root: then only mounts protect what the kernel grants
// to root as an owner. When Pawl ends, even by kill -9, everything inside ends with it.
//
// With a root, such as an unpacked image, its files replace the host's. A host's program, such as an agent, is
// shown inside with its package; it needs a sufficiently new loader and libraries in the root.
//
// Mode None is an ordinary process of the same user, for trusted agents only. It gets the same environment with one
// more variable (Marker), and is ended as a whole: its process group, its descendants, and everything with the
// marker. None cannot find a process that cleared its environment, left its session and outlived its parents,
// unless it had a control group (Limit).
//
//	question                                                     file
//	what can a program be given, and what if it cannot start     sandbox.go
//	what of the host does a program see                          bwrap.go
//	how do programs share files that none of them writes         overlay.go
//	how do the files of an image replace the host's              root.go
//	how does a program of the host run in an image               root.go (guest, runnable)
//	what has a network of its own, who makes its listeners       network.go
//	which system calls are refused                               seccomp.go
//	what holds where a mount does not                            network.go (secondWall)
//	what may a program use, and who sees to it                   limits.go
//	how is a program started, bounded and ended                  process.go
//	how is bubblewrap's PID namespace followed                   process.go
//	how are processes found that an earlier Pawl left            family.go
package sandbox
