package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Sweep kills processes of an earlier Pawl whose Marker starts with prefix and returns their number. In mode Auto they
// are sandboxes whose bubblewrap was killed during setup. Call Sweep before starting programs, with a unique prefix.
func Sweep(prefix string) (int, error) {
	if prefix == "" {
		return 0, errors.New("sweep: no prefix")
	}
	find := func() []int { return family(Marker+"="+prefix, 0) }
	n := 0
	for found := twice(find)(); len(found) > 0; found = twice(find)() {
		n += len(found)
		if left := killAll(find); left > 0 {
			return n, fmt.Errorf("sweep: %d of %d processes did not die: end them by hand (%s=%s…)", left, n, Marker, prefix)
		}
	}
	return n, nil
}

// EndAll kills the processes that Sweep would, and all children of this process. Call it before exit.
func EndAll(prefix string) error {
	_, err := Sweep(prefix)
	left := killAll(func() (found []int) {
		for pid, p := range processes("") {
			if p.parent == os.Getpid() {
				found = append(found, family("", pid)...)
			}
		}
		return found
	})
	if left > 0 {
		err = errors.Join(err, fmt.Errorf("%d processes did not die", left))
	}
	return err
}

// twice retries an empty search, because a process has no environment during exec.
func twice(find func() []int) func() []int {
	return func() []int {
		if pids := find(); len(pids) > 0 {
			return pids
		}
		time.Sleep(pollEvery)
		return find()
	}
}

type process struct {
	parent int
	marked bool
}

// family finds live processes by root PID (unless 0) or marker prefix (unless empty), and their descendants. A final
// NUL byte makes the marker exact. Pawl and its ancestors are never included.
func family(mark string, root int) []int {
	all := processes(mark)
	own := map[int]bool{}
	for pid := os.Getpid(); pid != 0 && !own[pid]; pid = all[pid].parent {
		own[pid] = true
	}
	in := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if own[pid] || in[pid] {
				continue
			}
			belongs := p.marked || pid == root || in[p.parent]
			if belongs {
				in[pid], grown = true, true
			}
		}
	}
	return slices.Collect(maps.Keys(in))
}

// processes reads the live processes from /proc.
func processes(mark string) map[int]process {
	all := map[int]process{}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // constant, well-formed pattern
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // the process ended
		}
		// "pid (name) state parent …"; the name may contain anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			continue
		}
		all[pid] = process{parent: parent, marked: mark != "" && marked(dir, mark)}
	}
	return all
}

// marked reports whether a process's initial environment has an entry that begins with mark.
func marked(dir, mark string) bool {
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return false
	}
	return bytes.HasPrefix(env, []byte(mark)) || bytes.Contains(env, []byte("\x00"+mark))
}

// killAll kills the processes that find returns, until none remains or dying has passed. It returns how many remain.
// Finding thousands takes seconds.
func killAll(find func() []int) int {
	pids := find()
	for end := time.Now().Add(dying); len(pids) > 0 && time.Now().Before(end); pids = find() {
		for _, pid := range pids {
			signal(pid, syscall.SIGKILL)
		}
		time.Sleep(pollEvery)
	}
	return len(pids)
}

func signal(pid int, sig syscall.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Signal(sig) // fails if the process is gone or belongs to another user
		_ = p.Release()
	}
}
