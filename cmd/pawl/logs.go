package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

type logsOptions struct {
	attempt int
	lines   int
	follow  bool
	raw     bool
}

func logsCommand() *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs --config FILE OWNER/REPO#NUMBER",
		Short: "Show an agent's output",
		Args:  cobra.ExactArgs(1),
		Long: "Show the last lines of the agent's output in a thread's last attempt. Run this on the machine where the attempt ran.\n" +
			"--follow also shows new output until the attempt ends.",
		Example: "  pawl logs --config pawl.yml -f acme/widgets#7\n  pawl logs --config pawl.yml --attempt 2 -n 0 --raw acme/widgets#7 > session.jsonl",
	}
	f := cmd.Flags()
	f.IntVar(&o.attempt, "attempt", 0, "the attempt's number (default: the last attempt)")
	f.IntVarP(&o.lines, "lines", "n", 100, "number of lines; 0 shows all")
	f.BoolVarP(&o.follow, "follow", "f", false, "show new output until the attempt ends")
	f.BoolVar(&o.raw, "raw", false, "do not remove control characters")
	return onDatabase(cmd, store.Reading, func(cfg config.Server, db *store.Store, args []string) error {
		return o.show(cmd.Context(), cfg.DataDir, db, args[0], cmd.OutOrStdout())
	})
}

func (o logsOptions) show(ctx context.Context, dataDir string, db *store.Store, name string, w io.Writer) error {
	t, err := named(ctx, db, name)
	if err != nil {
		return err
	}
	n, running, err := whichAttempt(ctx, db, t, o.attempt)
	if err != nil {
		return err
	}
	f, err := openTranscript(dataDir, t, n)
	if err != nil {
		return err
	}
	defer f.Close()
	if !o.raw {
		c := &cleaning{to: w}
		defer c.flush()
		w = c
	}
	if err := tail(f, o.lines, w); err != nil {
		return err
	}
	for o.follow && running {
		// Reading the state before the output ensures that the last output is shown.
		if _, running, err = whichAttempt(ctx, db, t, n); err != nil {
			return err
		}
		if _, err := io.Copy(w, f); err != nil {
			return err
		}
		if running && wait.For(ctx, time.Second/2) != nil {
			return nil
		}
	}
	return nil
}

// whichAttempt returns attempt n, or the last attempt if n is 0, and whether it is running.
func whichAttempt(ctx context.Context, db *store.Store, t thread.ID, n int) (which int, running bool, err error) {
	_, s, err := thread.Load(ctx, db, t)
	if err != nil {
		return 0, false, err
	}
	if len(s.Attempts) == 0 {
		return 0, false, fmt.Errorf("logs: %s has no attempts; pawl status lists the threads", t)
	}
	last := s.Attempts[len(s.Attempts)-1].N
	if n == 0 {
		n = last
	}
	if n < 0 || n > last {
		return 0, false, usageError{fmt.Errorf("%s has attempts 1 to %d", t, last)}
	}
	_, running = s.Running()
	return n, running && n == last, nil
}

// openTranscript opens an attempt's transcript. It looks in the folders of all servers in a data directory.
func openTranscript(dataDir string, t thread.ID, n int) (*os.File, error) {
	for _, dir := range server.Folders(dataDir) {
		f, err := os.Open(attempt.TranscriptIn(dir, t, n))
		if !errors.Is(err, os.ErrNotExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("logs: no output of attempt %d on %s is in %s: it ran on another machine, has printed nothing yet, or is older than retention.transcripts", n, t, dataDir)
}

// tail writes a file's last lines, or all lines if lines is 0. It leaves the file's offset at the end.
func tail(f *os.File, lines int, w io.Writer) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	from, block := int64(0), make([]byte, 64<<10)
	for at, found := end, 0; lines > 0 && at > 0; {
		n := min(at, int64(len(block)))
		at -= n
		if _, err := f.ReadAt(block[:n], at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for i := n - 1; i >= 0; i-- {
			if block[i] != '\n' || at+i == end-1 {
				continue
			}
			if found++; found == lines {
				from, at = at+i+1, 0
				break
			}
		}
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return err
	}
	_, err = bufio.NewReader(io.LimitReader(f, end-from)).WriteTo(w)
	return err
}

// cleaning makes an agent's output harmless to a terminal, line by line.
type cleaning struct {
	to   io.Writer
	line []byte // unfinished
}

// maxLine is the length in bytes at which an unfinished line is printed. Our choice.
const maxLine = 64 << 10

func (c *cleaning) Write(p []byte) (int, error) {
	c.line = append(c.line, p...)
	n := bytes.LastIndexByte(c.line, '\n') + 1
	if n == 0 && len(c.line) > maxLine {
		n = len(c.line)
	}
	_, err := io.WriteString(c.to, render.Clean(string(c.line[:n])))
	c.line = c.line[n:]
	return len(p), err
}

func (c *cleaning) flush() {
	_, _ = io.WriteString(c.to, render.Clean(string(c.line))) // this write fails only if the output is closed
}
