package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// streamSize is the length of the log, in bytes: that of the largest one
	// that a wrapper wrote before Pawl.
	streamSize = 140_000_000
	// streamRounds is how often each program reads it, in turn. The fastest round
	// of each counts: what else the machine does can only slow them down.
	streamRounds = 7
	// jqAim and grepAim are how many times as fast as these pawl inspect should be.
	jqAim   = 5.0
	grepAim = 0.3
	// streamMemoryAim is the peak of the resident memory, in KiB.
	streamMemoryAim = 32 << 10
)

// measureStreams measures what is done to the bytes of agents, as ratios to
// known programs on the same bytes in the same run.
func measureStreams(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	rows, err = fingerprintRows(ctx)
	if err != nil {
		return nil, nil, err
	}
	log, err := writeCodexLog(filepath.Join(dir, "codex.jsonl"), streamSize)
	if err != nil {
		return nil, nil, err
	}
	speed, err := streamSpeed(ctx, bin, log)
	if err != nil {
		return nil, nil, err
	}
	memory, err := streamMemory(ctx, bin, dir, log)
	if err != nil {
		return nil, nil, err
	}
	note := fmt.Sprintf("Streams: the log has %d lines, the longest of %d bytes, %d calls and %d file changes; it is read from the page cache.",
		log.lines, log.longestLine, log.calls, log.edits)
	return append(append(rows, speed...), memory...), []string{note}, nil
}

// streamSpeed lets the programs read the log in turn and compares the
// fastest rounds.
func streamSpeed(ctx context.Context, bin string, log codexLog) (rows []row, err error) {
	yardsticks := []struct {
		argv []string
		aim  float64
	}{{[]string{"jq", "-c", ".type", log.path}, jqAim}, {[]string{"grep", "-c", "turn.completed", log.path}, grepAim}}
	var own []time.Duration
	others := make([][]time.Duration, len(yardsticks))
	for range streamRounds {
		d, _, err := inspectLog(ctx, bin, log)
		if err != nil {
			return nil, err
		}
		own = append(own, d)
		for i, y := range yardsticks {
			if _, err := exec.LookPath(y.argv[0]); err != nil {
				continue
			}
			began := time.Now()
			// The output goes through a pipe: with /dev/null, grep stops at
			// the first match.
			cmd := exec.CommandContext(ctx, y.argv[0], y.argv[1:]...)
			cmd.Stdout = &discard{}
			if err := cmd.Run(); err != nil {
				return nil, fmt.Errorf("%s: %w", strings.Join(y.argv, " "), err)
			}
			others[i] = append(others[i], time.Since(began))
		}
	}
	best := slices.Min(own)
	rows = append(rows, row{fmt.Sprintf("pawl inspect, codex log of %d MB", log.bytes/1e6),
		fmt.Sprintf("%s, %.0f MB/s", ms(best), float64(log.bytes)/1e6/best.Seconds()), "", false})
	for i, y := range yardsticks {
		what, aim := "the same, to "+strings.Join(y.argv[:len(y.argv)-1], " "), fmt.Sprintf("≥ %g ×", y.aim)
		if len(others[i]) == 0 {
			rows = append(rows, row{what, fmt.Sprintf("not measured: %s is not installed", y.argv[0]), "", false})
			continue
		}
		other := slices.Min(others[i])
		ratio := other.Seconds() / best.Seconds()
		rows = append(rows, row{what, fmt.Sprintf("%.2f ×, which takes %s", ratio, ms(other)), aim, ratio >= y.aim})
	}
	return rows, nil
}

// discard takes everything; unlike io.Discard it is given through a pipe.
type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }

// streamMemory compares the peak memory on the log with that on one of twice
// the length.
func streamMemory(ctx context.Context, bin, dir string, log codexLog) (rows []row, err error) {
	double, err := writeCodexLog(filepath.Join(dir, "double.jsonl"), 2*streamSize)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(double.path)) }()
	for _, l := range []codexLog{log, double} {
		_, peak, err := inspectLog(ctx, bin, l)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{fmt.Sprintf("peak memory of pawl inspect, codex log of %d MB", l.bytes/1e6), fmt.Sprintf("%.1f MB", float64(peak)/1024),
			fmt.Sprintf("< %d MB", streamMemoryAim>>10), peak < streamMemoryAim})
	}
	return rows, nil
}

// inspectLog runs pawl inspect as a process, checks that it found what the log
// holds, and returns how long it took and its peak memory in KiB.
//
// The peak is VmHWM, looked at every few milliseconds. The maximum that wait4
// tells begins with the memory of the process that started this one.
func inspectLog(ctx context.Context, bin string, log codexLog) (took time.Duration, peak int, err error) {
	cmd := exec.CommandContext(ctx, bin, "inspect", "--cli", "codex", "--json", log.path)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for running := true; running; {
		select {
		case err = <-done:
			running = false
		case <-ticker.C:
			// At its end the process has no memory any more.
			if n, err := kilobytes(cmd.Process.Pid, "VmHWM"); err == nil {
				peak = max(peak, n)
			}
		}
	}
	took = time.Since(began)
	if err != nil {
		return 0, 0, fmt.Errorf("pawl inspect: %w\n%s", err, said.Bytes())
	}
	var found struct {
		Ending string
		Edits  struct{ Operations int }
		Calls  int `json:"tool_calls"`
	}
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		return 0, 0, fmt.Errorf("pawl inspect: %w", err)
	}
	if found.Ending != "completed" || found.Edits.Operations != log.edits || found.Calls != log.calls {
		return 0, 0, fmt.Errorf("pawl inspect found %+v in a log with %d calls and %d edits", found, log.calls, log.edits)
	}
	return took, peak, nil
}
