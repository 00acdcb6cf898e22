package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// absent lists calls that programs can do without; the filter answers as if the kernel lacked them. io_uring bypasses
// filters, and clone3 hides its flags from them.
var absent = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_USERFAULTFD, unix.SYS_CLONE3}

// forbidden lists calls that no build or agent needs: keyrings, kernel code, opening files by handle, other programs'
// memory and files, and calls for root.
var forbidden = []uint32{
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_CHROOT,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_ADJTIMEX, unix.SYS_VHANGUP,
}

// namespaces are the clone and unshare flags for namespaces. clone has no flag for time namespaces.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// families are the allowed socket families. netlink is limited to addresses and routes.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// x32 marks the calls of amd64's x32 ABI, which has its own table.
const x32 = 0x40000000

// filter returns a seccomp(2) program that refuses the calls. The common library allows other architectures' calls, and
// compares 64 bits where the kernel reads 32.
func filter() ([]bpf.RawInstruction, error) {
	arch, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("no list of system calls for %s", runtime.GOARCH)
	}
	number, kind := bpf.LoadAbsolute{Off: 0, Size: 4}, bpf.LoadAbsolute{Off: 4, Size: 4}
	argument := func(n uint32) bpf.LoadAbsolute { return bpf.LoadAbsolute{Off: 16 + 8*n, Size: 4} } // lower half (little-endian)
	refuse := func(errno unix.Errno) bpf.RetConstant {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	if1 := func(c bpf.JumpTest, v uint32) bpf.JumpIf { return bpf.JumpIf{Cond: c, Val: v, SkipFalse: 1} } // executes or skips the next instruction
	list := []bpf.Instruction{
		// 32-bit programs have other call numbers.
		kind, if1(bpf.JumpNotEqual, arch), bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS},
		number, if1(bpf.JumpGreaterOrEqual, x32), refuse(unix.ENOSYS),
	}
	for _, call := range absent {
		list = append(list, if1(bpf.JumpEqual, call), refuse(unix.ENOSYS))
	}
	for _, call := range forbidden {
		list = append(list, if1(bpf.JumpEqual, call), refuse(unix.EPERM))
	}
	on := func(call uint32, judge ...bpf.Instruction) {
		list = append(append(append(list, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(len(judge) + 1)}), judge...), number)
	}
	on(unix.SYS_CLONE, argument(0), if1(bpf.JumpBitsSet, namespaces), refuse(unix.EPERM))
	on(unix.SYS_UNSHARE, argument(0), if1(bpf.JumpBitsSet, namespaces|unix.CLONE_NEWTIME), refuse(unix.EPERM))
	for _, call := range []uint32{unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV} {
		on(call, argument(0), if1(bpf.JumpEqual, 1), refuse(unix.EPERM))
	}
	on(unix.SYS_PTRACE, argument(1), if1(bpf.JumpEqual, 1), refuse(unix.EPERM))
	family := []bpf.Instruction{argument(0)}
	for i, f := range families {
		family = append(family, bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipTrue: uint8(len(families) - i)})
	}
	on(unix.SYS_SOCKET, append(family, refuse(unix.EAFNOSUPPORT),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_NETLINK, SkipTrue: 3}, argument(2), if1(bpf.JumpNotEqual, unix.NETLINK_ROUTE), refuse(unix.EPROTONOSUPPORT))...)
	return bpf.Assemble(append(list, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
}

func filterFile() (*os.File, error) {
	list, err := filter()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, i := range list {
		_ = binary.Write(&text, binary.NativeEndian, i) // struct sock_filter has the same fields; buffers accept all writes
	}
	return memoryFile(text.String())
}
