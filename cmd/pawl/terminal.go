package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/replay"
	"github.com/pawlbot/pawl/internal/status"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// shownLine limits a line of untrusted text, in bytes.
const shownLine = 200

// shownProblem limits a file's error message, in bytes.
const shownProblem = 300

// showThread prints a thread's result, reasons, attempts and used resources. It gives no advice, because a local run and
// a thread on GitHub need different advice.
func showThread(w io.Writer, v checkrun.View) {
	fmt.Fprintln(w, checkrun.Headline(v))
	for _, reason := range v.Reasons.Texts() {
		fmt.Fprintf(w, "  %s\n", render.Line(reason, shownLine))
	}
	for _, p := range v.Problems {
		fmt.Fprintf(w, "  %s:%d: %s\n", render.Line(p.Path, shownLine), p.Line, render.Line(p.Message, shownProblem))
	}
	if len(v.Attempts) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "ATTEMPT\tBACKEND\tOUTCOME\tVERIFICATION\tEDITS\tTOOK\tUSED\n")
	for _, a := range v.Attempts {
		verified, took, edits := "", "", strconv.Itoa(a.Edits.Operations)
		if a.Unreported() {
			edits = "–"
		}
		if a.Ending != "" {
			verified = "none ran"
			if len(a.Verify) > 0 {
				verified = a.VerifiedWords(v.Base)
			}
			took = render.Span(a.Duration)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", a.N, render.Label(a.Backend)+render.When(a.Effort != "", " "+render.Label(a.Effort)), a.Result(), render.Line(verified, shownLine),
			edits, took, strings.Join(checkrun.Used(a), ", "))
	}
	t.Flush()
	last := v.Attempts[len(v.Attempts)-1]
	for i, path := range last.LeftOut {
		fmt.Fprintf(w, "%s  %s\n", render.When(i == 0, "\nLeft out of the work:\n"), render.Line(path, shownLine))
	}
	who, message := "The agent says:", strings.TrimSpace(last.LastMessage())
	if message == "" {
		who, message = "How it ended:", strings.TrimSpace(last.Detail)
	}
	if message != "" {
		fmt.Fprintf(w, "\n%s\n%s\n", who, "  "+strings.ReplaceAll(render.Head(message, maxMessage), "\n", "\n  "))
	}
}

// maxMessage limits the last message, in bytes.
const maxMessage = 4_000

func threadReport(cmd *cobra.Command, cfg config.Server, db *store.Store, name string) error {
	t, err := named(cmd.Context(), db, name)
	if err != nil {
		return err
	}
	s := &solver.Solver{Env: attempt.Env{Store: db, Config: cfg, Now: time.Now, Log: zerolog.Nop()}}
	v, err := s.View(cmd.Context(), t)
	if err != nil {
		return err
	}
	return printReport(cmd, status.ThreadOf(v), func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s\n", v.Thread, render.Line(v.Title, shownLine))
		for _, link := range []string{v.IssueURL, v.PullURL} {
			if link != "" {
				fmt.Fprintln(w, link)
			}
		}
		fmt.Fprintln(w)
		showThread(w, v)
	})
}

// showWork shows the new branch's changes. At a terminal it opens the full diff in git's pager; otherwise it prints the
// diffstat.
func showWork(ctx context.Context, l solver.Folder, w io.Writer) error {
	if terminal(w) {
		cmd := exec.CommandContext(ctx, "git", "-C", l.Dir, "diff", "--no-ext-diff", "--stat", "--patch", "HEAD..."+l.Branch)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, w, os.Stderr
		return cmd.Run()
	}
	out, err := exec.CommandContext(ctx, "git", "-C", l.Dir, "--no-pager", "diff", "--no-ext-diff", "--stat", "HEAD..."+l.Branch).Output()
	if err == nil {
		_, err = io.WriteString(w, render.Clean(string(out)))
	}
	return err
}

// lineBegin returns to the beginning of a terminal's line and clears it.
const lineBegin = "\r\x1b[2K"

// opener returns a function that opens a command's input file, or standard input for "-". At a terminal, reading a
// large file shows its progress.
func opener(cmd *cobra.Command) replay.Opener {
	return func(name string) (io.ReadCloser, error) {
		if name == "-" {
			return io.NopCloser(cmd.InOrStdin()), nil
		}
		f, err := os.Open(name)
		if err != nil || !terminal(os.Stderr) {
			return f, err
		}
		return withProgress(f, os.Stderr), nil
	}
}

// slowRead is the size in bytes above which reading a file shows its progress.
const slowRead = 16 << 20

// reading is a file with a progress display.
type reading struct {
	*os.File
	w          io.Writer
	size, done int64
	shown      time.Time
}

func withProgress(f *os.File, w io.Writer) io.ReadCloser {
	info, err := f.Stat()
	if err != nil || info.Size() < slowRead {
		return f
	}
	return &reading{File: f, w: w, size: info.Size()}
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.File.Read(p)
	r.done += int64(n)
	if now := time.Now(); err == nil && now.Sub(r.shown) >= time.Second/4 {
		r.shown = now
		fmt.Fprintf(r.w, "%s%s: %s of %s read", lineBegin, render.Line(filepath.Base(r.Name()), 60), humanize.IBytes(uint64(r.done)), humanize.IBytes(uint64(r.size)))
	}
	return n, err
}

func (r *reading) Close() error {
	fmt.Fprint(r.w, lineBegin)
	return r.File.Close()
}

// progress prints lines during the work. At a terminal it keeps a status line below them.
type progress struct {
	w        io.Writer
	status   bool                   // whether there is a status line
	prepared atomic.Pointer[string] // running setup or verify command; empty or nil for none
	writing  sync.Mutex
}

func (p *progress) prepares(what string) { p.prepared.Store(&what) }

// print writes a line above the status line.
func (p *progress) print(line string) {
	p.writing.Lock()
	defer p.writing.Unlock()
	fmt.Fprintln(p.w, render.When(p.status, lineBegin)+line)
}

// show updates the status line every second until the context ends.
func (p *progress) show(ctx context.Context, s *solver.Solver, t thread.ID) {
	if !p.status {
		return
	}
	began := time.Now()
	for wait.For(ctx, time.Second) == nil {
		v, err := s.View(ctx, t)
		if err != nil {
			continue
		}
		line := checkrun.Headline(v)
		if what := p.prepared.Load(); what != nil && *what != "" {
			line = *what
		}
		p.write(lineBegin + render.Line(line, 100) + ", " + render.Span(time.Since(began)))
	}
	p.write(lineBegin)
}

func (p *progress) write(text string) {
	p.writing.Lock()
	defer p.writing.Unlock()
	fmt.Fprint(p.w, text)
}
