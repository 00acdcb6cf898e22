package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/internal/wait"
)

// Limits bound a program and its children. Zero means no limit.
type Limits struct {
	Memory int64
	CPUs   float64
	PIDs   int   // processes and threads
	Disk   int64 // bytes in Dir, Home and Folders
}

// Limit sets the limits of later programs. Without control groups, Pawl measures their use.
func (s *Sandbox) Limit(l Limits) {
	s.limits = l
	s.groups, s.noGroups = delegated()
}

// Limited describes how limits are enforced, and whether by control groups.
func (s *Sandbox) Limited() (how string, groups bool) {
	if s.groups != "" {
		return "limits: control groups", true
	}
	unlimited := "CPUs are not limited"
	if s.mode == None || os.Geteuid() == 0 {
		unlimited = "CPUs and processes are not limited"
	}
	how = fmt.Sprintf("limits without control groups (%v): Pawl measures memory and disk every %s; %s", s.noGroups, lookEvery, unlimited)
	return how, false
}

// ownGroup is the name of this process's control group.
const ownGroup = "pawl-server"

// controllers are the controllers that the control group must have.
var controllers = []string{"memory", "pids", "cpu"}

// delegated returns a control group (version 2) in which this process may create others. The group must have no
// processes, so this process moves into a child group.
func delegated() (dir string, err error) {
	dir, err = currentGroup()
	if err != nil {
		return "", err
	}
	if filepath.Base(dir) == ownGroup {
		dir = filepath.Dir(dir)
	}
	has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return "", err
	}
	for _, c := range controllers {
		if !slices.Contains(strings.Fields(string(has)), c) {
			return "", fmt.Errorf("%s is not bounded in %s", c, dir)
		}
	}
	if err := moveInto(dir); err != nil {
		return "", fmt.Errorf("not delegated: %w", err)
	}
	removeLeft(dir)
	return dir, nil
}

// currentGroup returns this process's control group (version 2).
func currentGroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	none := errors.New("the machine has none of version 2")
	_, own, ok := strings.Cut("\n"+string(text), "\n0::")
	if !ok {
		return "", none
	}
	own, _, _ = strings.Cut(own, "\n")
	for _, at := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var system unix.Statfs_t
		if unix.Statfs(at, &system) == nil && system.Type == unix.CGROUP2_SUPER_MAGIC {
			return filepath.Join(at, own), nil
		}
	}
	return "", none
}

// Ceiling returns the lowest value of memory.max or pids.max in this process's control group and its parents, or
// zero.
func Ceiling(file string) (lowest int64) {
	dir, err := currentGroup()
	if err != nil {
		return 0
	}
	for ; strings.HasPrefix(dir, "/sys/fs/cgroup"); dir = filepath.Dir(dir) {
		text, _ := os.ReadFile(filepath.Join(dir, file)) // the topmost group has no such file
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && (lowest == 0 || limit < lowest) {
			lowest = limit
		}
	}
	return lowest
}

// moveInto moves this process into a child group of dir and enables limits for child groups.
func moveInto(dir string) error {
	leaf := filepath.Join(dir, ownGroup)
	err := os.Mkdir(leaf, 0o755)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	self := strconv.Itoa(os.Getpid())
	err = put(leaf, "cgroup.procs", self)
	if err == nil {
		err = put(dir, "cgroup.subtree_control", "+"+strings.Join(controllers, " +"))
	}
	if err != nil { // for example, the group has other processes
		_ = put(dir, "cgroup.procs", self)
		_ = os.Remove(leaf)
	}
	return err
}

// removeLeft removes the groups of Pawl processes that have ended.
func removeLeft(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, "pawl-[0-9]*")) // constant, well-formed pattern
	for _, group := range left {
		var pid int
		if n, _ := fmt.Sscanf(filepath.Base(group), "pawl-%d-", &pid); n == 1 && unix.Kill(pid, 0) == unix.ESRCH {
			_ = os.Remove(group) // fails while a process remains
		}
	}
}

func put(dir, file, text string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644)
}

type group struct {
	dir    string
	pids   int // process limit
	handle *os.File
}

var counter atomic.Int64

func (s *Sandbox) newGroup() (g *group, err error) {
	if s.groups == "" {
		return nil, nil
	}
	g = &group{pids: s.limits.PIDs, dir: filepath.Join(s.groups, fmt.Sprintf("pawl-%d-%d", os.Getpid(), counter.Add(1)))}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	defer func() {
		if err != nil {
			g.remove()
		}
	}()
	l := s.limits
	for _, set := range []struct {
		is         bool
		file, text string
	}{
		{l.Memory > 0, "memory.max", strconv.FormatInt(l.Memory, 10)},
		{l.PIDs > 0, "pids.max", strconv.Itoa(l.PIDs)},
		{l.CPUs > 0, "cpu.max", fmt.Sprintf("%d 100000", int(l.CPUs*100000))},
	} {
		if set.is {
			if err := put(g.dir, set.file, set.text); err != nil {
				return nil, fmt.Errorf("limit a program: %w", err)
			}
		}
	}
	if l.Memory > 0 {
		_ = put(g.dir, "memory.swap.max", "0") // the file is missing on a machine without swap
	}
	g.handle, err = os.Open(g.dir)
	return g, err
}

// end kills the group's processes and removes the group. met names the limit that the kernel enforced, or is empty.
func (g *group) end() (met string) {
	_ = put(g.dir, "cgroup.kill", "1") // since Linux 5.14; older kernels rely on the namespace and the marker
	count := func(file, event string) (n int) {
		if text, err := os.ReadFile(filepath.Join(g.dir, file)); err == nil {
			_, after, _ := strings.Cut("\n"+string(text), "\n"+event+" ")
			_, _ = fmt.Sscan(after, &n)
		}
		return n
	}
	if n := count("memory.events", "oom_kill"); n > 0 {
		met = fmt.Sprintf("the kernel ended %d of its processes for lack of memory, which sandbox.memory limits", n)
	} else if n := count("pids.events", "max"); n > 0 {
		met = fmt.Sprintf("the kernel refused it %d processes beyond the %d that sandbox.pids allows", n, g.pids)
	}
	g.remove()
	return met
}

func (g *group) remove() {
	if g.handle != nil {
		g.handle.Close()
	}
	for end := time.Now().Add(dying); os.Remove(g.dir) != nil && time.Now().Before(end); {
		time.Sleep(pollEvery)
	}
}

const (
	// lookEvery is the minimum time between measurements.
	lookEvery = 2 * time.Second
	// Measuring takes at most 1/lookShare of the time.
	lookShare = 20
)

// watch ends a program that uses too much disk or, without a control group, memory.
func (p *Process) watch(ctx context.Context, l Limits, dirs []string) {
	for pause := lookEvery; wait.For(ctx, pause) == nil; {
		began := time.Now()
		over := p.over(l, dirs)
		if over != "" {
			p.exceeded.Store(&over)
			p.cancel()
			return
		}
		pause = max(lookEvery, lookShare*time.Since(began))
	}
}

// over describes the exceeded limit, or returns empty.
func (p *Process) over(l Limits, dirs []string) string {
	if l.Disk > 0 && used(dirs, l.Disk) > l.Disk {
		return fmt.Sprintf("it used more than the %s of disk that sandbox.disk allows", size(l.Disk))
	}
	grouped := p.group != nil
	if l.Memory > 0 && !grouped && p.memory() > l.Memory {
		return fmt.Sprintf("it used more than the %s of memory that sandbox.memory allows", size(l.Memory))
	}
	return ""
}

// used returns the disk use of folders in bytes. It stops counting above most.
func used(dirs []string, most int64) (sum int64) {
	seen := map[[2]uint64]bool{} // count hard links once
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // gone or unreadable
			}
			info, err := e.Info()
			if err != nil {
				return nil
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				if id := [2]uint64{st.Dev, st.Ino}; st.Nlink > 1 && !e.IsDir() {
					if seen[id] {
						return nil
					}
					seen[id] = true
				}
				sum += st.Blocks * 512
			}
			if sum > most {
				return fs.SkipAll
			}
			return nil
		})
	}
	return sum
}

// memory returns the processes' private memory in bytes.
func (p *Process) memory() (sum int64) {
	for _, pid := range p.members() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			continue // the process ended
		}
		var all, resident, shared int64
		if _, err := fmt.Sscan(string(text), &all, &resident, &shared); err == nil {
			sum += (resident - shared) * int64(os.Getpagesize())
		}
	}
	return sum
}

func size(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.3g GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.3g MiB", float64(n)/(1<<20))
}
