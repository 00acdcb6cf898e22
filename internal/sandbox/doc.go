// Package sandbox starts programs that may do anything, and ends them with all their children.
//
// Mode Auto uses bubblewrap: own user, PID, mount, IPC and UTS namespaces, a read-only system without the
// host's home directories, run-time state and data, no capabilities, and an environment that is exactly what
// was given. The network is the program's own where it is asked for (Network), with listeners that are handed out before it
// begins; else the host's, including its loopback addresses. System calls pass a filter; programs inside
// cannot make namespaces of their own, so an agent's own sandbox must be switched off. Landlock is a second wall where
// the kernel has it. /tmp is in memory, so large builds want a TMPDIR
// below the home directory. Pawl should not run as root: then whatever the kernel grants to root as an owner is
// kept away by mounts alone. When Pawl ends, even by kill -9, everything inside ends with it.
//
// With a root, such as an unpacked image, its files take the place of the host's. A program of the host, such as an
// agent, is shown inside with its package; it needs a loader and libraries of the root that are new enough.
//
// Mode None is an ordinary process of the same user, for trusted agents only. It gets the same environment,
// with one variable (Marker) more, and is ended as a whole: its process group, its descendants, and everything
// that carries the marker. What None cannot find is a process that cleared its environment, left its session
// and outlived its parents, unless it had a control group (Limit).
//
//	question                                                     file
//	what can a program be given, and what if it cannot start     sandbox.go
//	what of the host does a program see                          bwrap.go
//	how do programs share files that none of them writes         overlay.go
//	how do the files of an image take its place                  root.go
//	how does a program of the host run in an image               root.go (guest, runnable)
//	what has a network of its own, who makes its listeners       network.go
//	which system calls are refused                               seccomp.go
//	what holds where a mount does not                            network.go (secondWall)
//	what may a program use, and who sees to it                   limits.go
//	how is a program started, bounded and ended                  process.go
//	how is bubblewrap's PID namespace followed                   process.go
//	how are processes found that an earlier Pawl left            family.go
package sandbox
