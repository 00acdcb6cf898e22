package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// describe prints what the numbers depend on. A fact that the system does not
// tell is left out.
func describe(out io.Writer, dir string) error {
	sync, err := syncTime(dir)
	if err != nil {
		return err
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(out, "CPU     %s, %d cores\n", field("/proc/cpuinfo", "model name"), runtime.NumCPU())
	fmt.Fprintf(out, "memory  %s\n", field("/proc/meminfo", "MemTotal"))
	fmt.Fprintf(out, "kernel  %s, %s\n", strings.TrimSpace(string(kernel)), runtime.Version())
	fmt.Fprintf(out, "disk    write and fsync of 4 KiB in %s: median %s\n", filepath.Dir(dir), ms(sync))
	fmt.Fprintf(out, "load    %s (run queue over 1, 5, 15 minutes; well below the cores on a quiet machine)\n\n", strings.Join(first(strings.Fields(string(load)), 3), " "))
	return nil
}

func first(all []string, n int) []string { return all[:min(n, len(all))] }

// field reads the first "name: value" of a file in /proc; empty when it has none.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(text) {
		key, value, ok := strings.Cut(string(line), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kilobytes reads a field such as VmRSS from /proc/PID/status, in KiB.
func kilobytes(pid int, name string) (int, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	n, err := strconv.Atoi(strings.TrimSuffix(field(path, name), " kB"))
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", name, path, err)
	}
	return n, nil
}

// cpuTime is the processor time that a process has used; 0 when the system does
// not tell. The 14th and 15th field of /proc/PID/stat count hundredths of a
// second (proc_pid_stat(5)); the second, in brackets, may hold anything.
func cpuTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// syncTime is the median time to make 4 KiB durable: each stored delivery waits
// for at least that.
func syncTime(dir string) (_ time.Duration, err error) {
	f, err := os.CreateTemp(dir, "sync")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	page := make([]byte, 4096)
	var took []time.Duration
	for range 100 {
		began := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return quantile(took, 0.5), nil
}
