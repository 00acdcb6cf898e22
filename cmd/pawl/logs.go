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
		Short: "Show what an agent printed",
		Args:  cobra.ExactArgs(1),
		Long: "Show what the agent of a thread's last attempt printed, the last lines of it, on the machine where it ran.\n" +
			"With --follow what it prints from now on, until the attempt ends.",
		Example: "  pawl logs --config pawl.yml -f acme/widgets#7\n  pawl logs --config pawl.yml --attempt 2 -n 0 --raw acme/widgets#7 > session.jsonl",
	}
	f := cmd.Flags()
	f.IntVar(&o.attempt, "attempt", 0, "of this attempt instead of the last one")
	f.IntVarP(&o.lines, "lines", "n", 100, "how many lines; 0 shows all")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on until the attempt ends")
	f.BoolVar(&o.raw, "raw", false, "as it was printed, with control characters")
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
		// The output before the end is read after the end was seen.
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

// whichAttempt is the requested attempt, 0 for the last one, and whether it runs.
func whichAttempt(ctx context.Context, db *store.Store, t thread.ID, n int) (which int, running bool, err error) {
	_, s, err := thread.Load(ctx, db, t)
	if err != nil {
		return 0, false, err
	}
	if len(s.Attempts) == 0 {
		return 0, false, fmt.Errorf("logs: %s has had no attempt; pawl status lists the threads", t)
	}
	last := s.Attempts[len(s.Attempts)-1].N
	if n == 0 {
		n = last
	}
	if n < 0 || n > last {
		return 0, false, usageError{fmt.Errorf("%s has had attempts 1 to %d", t, last)}
	}
	_, running = s.Running()
	return n, running && n == last, nil
}

// openTranscript looks in the folders of all servers in a data directory.
func openTranscript(dataDir string, t thread.ID, n int) (*os.File, error) {
	for _, dir := range server.Folders(dataDir) {
		f, err := os.Open(attempt.TranscriptIn(dir, t, n))
		if !errors.Is(err, os.ErrNotExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("logs: no output of attempt %d on %s is in %s: it ran on another machine, has printed nothing yet, or is older than retention.transcripts", n, t, dataDir)
}

// tail writes a file's last lines, or all of them, and leaves it at its end.
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
	rest []byte // of an unfinished line
}

// maxRest is the length from which a line is not waited for.
const maxRest = 64 << 10

func (c *cleaning) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	n := bytes.LastIndexByte(c.rest, '\n') + 1
	if n == 0 && len(c.rest) > maxRest {
		n = len(c.rest)
	}
	_, err := io.WriteString(c.to, render.Clean(string(c.rest[:n])))
	c.rest = c.rest[n:]
	return len(p), err
}

func (c *cleaning) flush() {
	_, _ = io.WriteString(c.to, render.Clean(string(c.rest))) // it fails only if the reader is gone
}
