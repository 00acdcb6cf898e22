package store_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/internal/store"
)

// After a child process's first writes, the kernel answers EIO to all its fsyncs, like a failing disk.
func TestFailedSyncEndsAllWrites(t *testing.T) {
	const variable = "PAWL_TEST_FSYNC"
	if path := os.Getenv(variable); path != "" {
		failedSync(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "pawl.db")
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), variable+"="+path)
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := string(out); strings.Contains(text, "--- SKIP") {
		t.Skipf("this kernel does not support system call filters:\n%s", text)
	}
	// Acknowledged writes are stored, and the next process can continue.
	s, _, _ := open(t, "sqlite:"+path)
	for n := range 20 {
		if _, err := s.Delivery(t.Context(), fmt.Sprint("before", n)); err != nil {
			t.Error(err)
		}
	}
	works(t, s)
}

// failedSync is the child process. It writes while syncs succeed, and then while they fail.
func failedSync(t *testing.T, path string) {
	s, _, _ := open(t, "sqlite:"+path)
	for n := range 20 {
		check(t, receive(t.Context(), s, fmt.Sprint("before", n), 10))
	}
	if err := failSyncs(); err != nil {
		t.Skip(err)
	}
	err := receive(t.Context(), s, "while", 10)
	wantFatal(t, s, err, "the disk may be failing")
	if _, err := store.Open(context.Background(), "sqlite:"+path+"2", store.Options{}); err == nil {
		t.Error("a database was made on a disk that does not sync")
	}
}

// failSyncs makes fsync and fdatasync of this process fail with EIO from now on.
func failSyncs() error {
	stmt := func(code uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no}
	}
	filter := []unix.SockFilter{
		stmt(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, 0), // the system call's number
		stmt(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SYS_FSYNC, 1, 0),
		stmt(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SYS_FDATASYNC, 0, 1),
		stmt(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ERRNO|uint32(unix.EIO), 0, 0),
		stmt(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW, 0, 0),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	// TSYNC applies the filter to all threads of the process.
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}
