package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// detectHead is how much of a transcript is looked at to name its CLI.
const detectHead = 64 << 10

// maxStderr bounds how much of a recorded standard error is read.
const maxStderr = 1 << 20

// inspectFlags are the flags of pawl inspect as they were given, and what they mean.
type inspectFlags struct {
	cli, now, zone string
	exitCode       int
	exitKnown      bool
	asJSON         bool

	at       time.Time
	location *time.Location
}

func inspectCommand() *cobra.Command {
	var f inspectFlags
	cmd := &cobra.Command{
		Use: "inspect FILE", Short: "Say how a recorded agent run ended, and why",
		Args: func(cmd *cobra.Command, args []string) error {
			return errors.Join(cobra.ExactArgs(1)(cmd, args), f.check())
		},
		Long: `Read the transcript of one agent run (its standard output) and say how it ended, whether a limit
stopped it and until when, what it edited, and the fingerprint of the evidence. FILE may be - for
standard input, or a folder with stdout.jsonl and, where they are, stderr.txt and exit.txt.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.exitKnown = cmd.Flags().Changed("exit-code")
			v, err := inspect(args[0], cmd.InOrStdin(), f)
			if err != nil {
				return err
			}
			if f.asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(v)
			}
			return v.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&f.cli, "cli", "", "codex, claude, gemini, opencode or plain (default: detected)")
	cmd.Flags().IntVar(&f.exitCode, "exit-code", 0, "the exit code of the run (default: unknown); 124 means that the time ran out")
	cmd.Flags().StringVar(&f.now, "now", "", "when the run ended, RFC 3339 (default: now); times like \"in 2 hours\" count from it")
	cmd.Flags().StringVar(&f.zone, "zone", "UTC", "the zone of clock times without one, such as Europe/Rome")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

// check reads the flags and refuses those that mean nothing.
func (f *inspectFlags) check() (err error) {
	switch f.cli {
	case "", agent.StreamPlain, agent.StreamCodex, agent.StreamClaude, agent.StreamGemini, agent.StreamOpencode:
	default:
		return fmt.Errorf("--cli %q: use codex, claude, gemini, opencode or plain", f.cli)
	}
	if f.location, err = time.LoadLocation(f.zone); err != nil || f.zone == "Local" {
		return fmt.Errorf("--zone %q is unknown: use a name like Europe/Rome", f.zone)
	}
	if f.at = time.Now(); f.now != "" {
		if f.at, err = time.Parse(time.RFC3339, f.now); err != nil {
			return fmt.Errorf("--now %q: use RFC 3339, such as 2026-11-21T08:30:00Z", f.now)
		}
	}
	return nil
}

// inspection is what pawl inspect prints.
type inspection struct {
	agent.Report
	Edits       editsView    `json:"edits"`
	Severity    severityView `json:"severity"`
	Fingerprint policy.Print `json:"fingerprint"`
}

// editsView is the counts of the edits and what shows whether they went in circles.
type editsView struct {
	agent.Edits
	Seen         int    `json:"seen"`
	Again        int    `json:"again"`
	Returned     int    `json:"returned"`
	Rounds       int    `json:"rounds"`
	CirclePath   string `json:"circle_path,omitempty"`
	CircleEdits  int    `json:"circle_edits"`
	SameFailures int    `json:"same_failures"`
}

type severityView struct {
	Class           policy.Class `json:"class"`
	CooldownSeconds int64        `json:"cooldown_seconds"`
	Grade           float64      `json:"grade"`
	Reasons         []string     `json:"reasons"`
}

func inspect(name string, stdin io.Reader, f inspectFlags) (inspection, error) {
	source, err := openRun(name, stdin)
	if err != nil {
		return inspection{}, err
	}
	defer source.close()
	in := bufio.NewReaderSize(source.stdout, detectHead)
	if f.cli == "" {
		head, err := in.Peek(detectHead)
		if err != nil && err != io.EOF {
			return inspection{}, fmt.Errorf("read %s: %w", name, err)
		}
		f.cli = agent.Detect(head)
	}
	a, err := agent.ForStream(f.cli)
	if err != nil {
		return inspection{}, err
	}
	circles := policy.NewCircles()
	o := agent.InspectOptions{Stderr: source.stderr, Exit: source.exit, Now: f.at, Zone: f.location,
		OnDeed: func(d agent.Deed) { solver.Observe(circles, d) }}
	if f.exitKnown {
		o.Exit = &agent.Exit{Code: f.exitCode}
	}
	var whole strings.Builder
	var read io.Reader = in
	if f.cli == agent.StreamPlain {
		read = io.TeeReader(in, &whole)
	}
	r, err := agent.Inspect(read, a, o)
	if err != nil {
		return inspection{}, fmt.Errorf("inspect %s: %w", name, err)
	}
	evidence := r.Evidence()
	if f.cli == agent.StreamPlain {
		evidence = whole.String()
	}
	e := circles.Edits()
	s := policy.Defaults().Severity.Judge(e)
	return inspection{Report: r, Fingerprint: policy.Fingerprint(evidence),
		Edits:    editsView{r.Edits, e.Seen, e.Again, e.Returned, e.Rounds, e.CirclePath, e.CircleEdits, e.SameFailures},
		Severity: severityView{s.Class, int64(s.Cooldown.Seconds()), s.Grade, s.Reasons}}, nil
}

// recordedRun is a run to inspect: what is known of it beside its output.
type recordedRun struct {
	stdout io.Reader
	stderr string
	exit   *agent.Exit
	close  func() error
}

func openRun(name string, stdin io.Reader) (recordedRun, error) {
	if name == "-" {
		return recordedRun{stdout: stdin, close: func() error { return nil }}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return recordedRun{}, fmt.Errorf("open the transcript: %w", err)
	}
	if info.IsDir() {
		return openFolder(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return recordedRun{}, fmt.Errorf("open the transcript: %w", err)
	}
	return recordedRun{stdout: f, close: f.Close}, nil
}

// openFolder reads a recorded run as a folder. A CLI that refused its arguments
// printed nothing, so the output may be missing where the exit code is there.
func openFolder(dir string) (recordedRun, error) {
	r := recordedRun{stdout: strings.NewReader(""), close: func() error { return nil }}
	f, err := os.Open(filepath.Join(dir, "stdout.jsonl"))
	if err == nil {
		r.stdout, r.close = f, f.Close
	}
	code, exitErr := readSome(filepath.Join(dir, "exit.txt"))
	if err != nil && exitErr != nil {
		return r, fmt.Errorf("%s is not a recorded run: it has neither stdout.jsonl nor exit.txt", dir)
	}
	if exitErr == nil {
		first, _, _ := strings.Cut(strings.TrimSpace(code), " ")
		n, err := strconv.Atoi(first)
		if err != nil {
			return r, errors.Join(fmt.Errorf("%s/exit.txt does not begin with an exit code", dir), r.close())
		}
		r.exit = &agent.Exit{Code: n}
	}
	if r.stderr, err = readSome(filepath.Join(dir, "stderr.txt")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, errors.Join(fmt.Errorf("read standard error: %w", err), r.close())
	}
	return r, nil
}

// readSome reads the beginning of a small file.
func readSome(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxStderr))
	return string(b), err
}
