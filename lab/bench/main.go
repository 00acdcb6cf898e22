package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/pawlbot/pawl/lab/rig"
)

// longest limits the time of all measurements together, so that a hanging server cannot block make bench.
const longest = 40 * time.Minute

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(only []string, out, notes io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if err := measureAll(ctx, only, out, notes); err != nil {
		fmt.Fprintln(notes, "bench:", err)
		return 1
	}
	return 0
}

// row is one line of the table. An empty aim means none.
type row struct {
	what, measured, aim string
	met                 bool
}

// section is a group of measurements, which run in their own folder. Their notes are printed below the table.
type section struct {
	name    string
	measure func(ctx context.Context, bin, dir string) (rows []row, notes []string, err error)
}

func sections() []section {
	return []section{
		{"start", measureStart}, {"memory", measureMemory}, {"webhooks", measureWebhooks}, {"agent", measureAgent},
		{"calls", measureCalls}, {"streams", measureStreams}, {"proxy", measureProxy}, {"ratios", measureRatios},
		{"ignored", measureIgnored}, {"growth", measureGrowth}, {"steps", measureSteps}, {"takeover", measureTakeOver}, {"warm", measureWarm}, {"scale", measureScale}, {"nodes", measureNodes}, {"ground", measureGround}, {"walls", measureWalls},
	}
}

func measureAll(ctx context.Context, only []string, out, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "pawl-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bin := filepath.Join(dir, "pawl")
	if err := rig.Build(ctx, bin); err != nil {
		return err
	}
	if err := describe(out, dir); err != nil {
		return err
	}
	var rows []row
	var notes []string
	for _, s := range sections() {
		if len(only) > 0 && !slices.Contains(only, s.name) {
			continue
		}
		fmt.Fprintf(progress, "measuring %s\n", s.name)
		own := filepath.Join(dir, s.name)
		if err := os.Mkdir(own, 0o700); err != nil {
			return err
		}
		more, added, err := s.measure(ctx, bin, own)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		rows, notes = append(rows, more...), append(notes, added...)
	}
	if len(rows) == 0 {
		return fmt.Errorf("no section is called %q", only)
	}
	return table(out, rows, notes)
}

func table(out io.Writer, rows []row, notes []string) error {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "what\t measured\t aim\t met")
	for _, r := range rows {
		met := ""
		switch {
		case r.aim == "":
		case r.met:
			met = "yes"
		default:
			met = "no"
		}
		fmt.Fprintf(w, "%s\t %s\t %s\t %s\n", r.what, r.measured, r.aim, met)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, n := range notes {
		fmt.Fprintln(out, n)
	}
	return nil
}

// quantile returns the value that a share q of the measurements does not exceed (nearest rank). It sorts them.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

// ms formats a duration in milliseconds, with one decimal below ten.
func ms(d time.Duration) string {
	v := float64(d) / float64(time.Millisecond)
	if v < 10 {
		return fmt.Sprintf("%.1f ms", v)
	}
	return fmt.Sprintf("%.0f ms", v)
}

// spread formats the median and the 95th percentile.
func spread(all []time.Duration) string {
	return fmt.Sprintf("median %s, p95 %s", ms(quantile(all, 0.5)), ms(quantile(all, 0.95)))
}

// middle returns the median (nearest rank).
func middle(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// minMedianMax formats the minimum, median and maximum of some rounds.
func minMedianMax(all []float64, format string) string {
	return fmt.Sprintf(format+" / "+format+" / "+format, slices.Min(all), middle(all), slices.Max(all))
}

// describe prints the machine's data, omitting unknown facts.
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

// field returns the first "name: value" of a file in /proc; empty if missing.
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

// kilobytes reads a field such as VmRSS from /proc/PID/status in KiB.
func kilobytes(pid int, name string) (int, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	n, err := strconv.Atoi(strings.TrimSuffix(field(path, name), " kB"))
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", name, path, err)
	}
	return n, nil
}

// cpuTime returns a process's CPU time, or 0 if it is unknown. Fields 14 and 15 of /proc/PID/stat count hundredths of a
// second (proc_pid_stat(5)).
func cpuTime(pid int) time.Duration { return statTime(pid, 14) }

// waitedTime returns the CPU time of a process's ended children, from fields 16 and 17.
func waitedTime(pid int) time.Duration { return statTime(pid, 16) }

// statTime adds two fields of /proc/PID/stat. Field 2, in brackets, may contain anything.
func statTime(pid, first int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from field 3 on
	if len(fields) < first-1 {
		return 0
	}
	user, _ := strconv.Atoi(fields[first-3])
	system, _ := strconv.Atoi(fields[first-2])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// syncTime returns the median time of a durable write of 4 KiB. Storing a delivery takes at least this time.
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
