// Package sandbox runs untrusted programs and ends them with all their children.
//
// Mode Auto uses bubblewrap: own user, PID, mount, IPC and UTS namespaces; a read-only system without home directories
// and host data; no capabilities; exactly the given environment. Programs use their own network if requested (Network),
// otherwise the host's with its loopback addresses. A filter refuses system calls, including those that create
// namespaces, so an agent's own sandbox must be off. Landlock enforces the mounts' limits a second time if the kernel
// has it. /tmp is in memory; large builds need a TMPDIR below home. Do not run Pawl as root: only mounts would then
// protect root's files. When Pawl ends, even by kill -9, all programs end.
//
// A Root, such as an unpacked image, replaces the host's files. A host program runs inside if the root has a loader and
// sufficiently new libraries.
//
// Mode None starts ordinary processes of the same user, for trusted agents or in a pod. The environment gets one more
// variable (Marker). Pawl ends the program's descendants and all processes with the marker. It misses a process that
// cleared its environment, left its session and outlived its parents, unless a control group limits it (Limit).
//
//	sandbox.go modes and specs; remedies for setup errors
//	bwrap.go   visible files of the host
//	overlay.go shared read-only files
//	root.go    images, and host programs in images
//	network.go own networks and listeners; landlock (secondWall)
//	seccomp.go refused system calls
//	limits.go  memory, CPUs, processes and disk
//	process.go start and end of programs
//	family.go  finding and killing processes
package sandbox
