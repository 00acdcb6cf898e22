// Command bench measures the built program from outside, against a fake GitHub
// on loopback, and prints one table: what, measured, aim, met. It judges
// nothing: a missed aim is a line in the table, and only a measurement that could
// not be made is an error. `make bench` runs it; an argument names one section
// to run alone (start, memory, webhooks, agent, calls, streams, ratios, ignored,
// growth, steps).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// longest bounds everything, so that a hanging server cannot hold make bench.
const longest = 15 * time.Minute

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(only []string, out, notes io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if err := bench(ctx, only, out, notes); err != nil {
		fmt.Fprintln(notes, "bench:", err)
		return 1
	}
	return 0
}

// row is one line of the table. An empty aim means that none was set.
type row struct {
	what, measured, aim string
	met                 bool
}

// section measures something with a program in a folder of its own. Its notes
// are lines for below the table.
type section struct {
	name    string
	measure func(ctx context.Context, bin, dir string) (rows []row, notes []string, err error)
}

func sections() []section {
	return []section{
		{"start", measureStart}, {"memory", measureMemory}, {"webhooks", measureWebhooks}, {"agent", measureAgent},
		{"calls", measureCalls}, {"streams", measureStreams}, {"ratios", measureRatios},
		{"ignored", measureIgnored}, {"growth", measureGrowth}, {"steps", measureSteps},
	}
}

func bench(ctx context.Context, only []string, out, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "pawl-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bin := filepath.Join(dir, "pawl")
	if err := build(ctx, bin); err != nil {
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
		more, say, err := s.measure(ctx, bin, own)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		rows, notes = append(rows, more...), append(notes, say...)
	}
	if len(rows) == 0 {
		return fmt.Errorf("no section is called %q", only)
	}
	return table(out, rows, notes)
}

// build makes the program the way a release is made.
func build(ctx context.Context, bin string) error {
	return buildGo(ctx, bin, "github.com/pawlbot/pawl/cmd/pawl")
}

func buildGo(ctx context.Context, bin, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, said)
	}
	return nil
}

// moduleRoot is the folder of go.mod.
func moduleRoot(ctx context.Context) (string, error) {
	file, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(file))), nil
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
