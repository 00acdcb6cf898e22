package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/replay"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/simhash"
)

// detectHead is how much of a transcript is looked at to name its CLI.
const detectHead = 64 << 10

// maxStderr bounds how much of a recorded standard error is read.
const maxStderr = 1 << 20

// inspectFlags are the flags of pawl inspect as they were given, and what they mean.
type inspectFlags struct {
	cli, now, zone string
	config         string
	exitCode       int
	exitKnown      bool

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
standard input, or a folder with stdout.jsonl and, where they are, stderr.txt and exit.txt. It exits with 1
where it cannot tell how the run ended.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.exitKnown = cmd.Flags().Changed("exit-code")
			v, err := inspect(args[0], opener(cmd), f)
			if err != nil {
				return err
			}
			if err := printReport(cmd, v, v.print); err != nil || !v.unread {
				return err
			}
			return fmt.Errorf("inspect %s: %s", args[0], strings.Join(v.Reasons, "; "))
		},
	}
	cmd.Flags().StringVar(&f.cli, "cli", "", strings.Join(replay.Streams(), ", ")+" (default: detected)")
	cmd.Flags().IntVar(&f.exitCode, "exit-code", 0, "the exit code of the run (default: unknown); 124 means that the time ran out")
	cmd.Flags().StringVar(&f.now, "now", "", "when the run ended, RFC 3339 (default: now); times like \"in 2 hours\" count from it")
	cmd.Flags().StringVar(&f.zone, "zone", "UTC", "the zone of clock times without one, such as Europe/Rome")
	cmd.Flags().StringVar(&f.config, "config", "", "a server's configuration file, for its severity (default: the published numbers)")
	jsonFlag(cmd)
	return cmd
}

func (f *inspectFlags) check() (err error) {
	if f.cli != "" && !slices.Contains(replay.Streams(), f.cli) {
		return fmt.Errorf("--cli %q: use %s", f.cli, strings.Join(replay.Streams(), ", "))
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

type inspection struct {
	agent.Report
	Limit       *limitView    `json:"limit"`
	Severity    severityView  `json:"severity"`
	Loops       []policy.Loop `json:"loops"`
	Fingerprint simhash.Print `json:"fingerprint"`

	unread bool // the input was not understood
}

// limitView is a limit whose unknown reset is null.
type limitView struct {
	policy.Limit
	ResetsAt *time.Time `json:"resets_at"`
}

type severityView struct {
	Class           policy.Class `json:"class"`
	CooldownSeconds int64        `json:"cooldown_seconds"`
	Grade           float64      `json:"grade"`
	Reasons         []string     `json:"reasons"`
}

func inspect(name string, open replay.Opener, f inspectFlags) (inspection, error) {
	cfg, err := loadOrDefault(f.config)
	if err != nil {
		return inspection{}, err
	}
	source, err := openRun(name, open)
	if err != nil {
		return inspection{}, err
	}
	defer source.stdout.Close()
	if f.exitKnown {
		source.exit = &agent.Exit{Code: f.exitCode}
	}
	in, err := source.transcript()
	if err != nil {
		return unread(f.cli, err), nil
	}
	guessed := f.cli == ""
	if guessed {
		head, err := in.Peek(detectHead)
		if err != nil && err != io.EOF {
			return unread("", err), nil
		}
		f.cli = clis.Detect(head)
	}
	a, err := clis.ForStream(f.cli)
	if err != nil {
		return inspection{}, err
	}
	var whole strings.Builder
	var read io.Reader = in
	if f.cli == config.Plain {
		read = io.TeeReader(in, &whole)
	}
	r, err := agent.Inspect(read, a, agent.InspectOptions{
		Stderr: source.stderr,
		Exit:   source.exit,
		Now:    f.at,
		Zone:   f.location,
	})
	if err != nil {
		return unread(f.cli, err), nil
	}
	v := inspectionOf(r, cfg.Policy.Severity)
	if f.cli == config.Plain {
		v.plain(whole.String(), guessed)
	}
	return v, nil
}

// inspectionOf is what a report says of a run.
func inspectionOf(r agent.Report, limits policy.SeverityLimits) inspection {
	judged := limits.Judge(r.Edits)
	v := inspection{
		Report:      r,
		Loops:       limits.Loops(r.Edits),
		Fingerprint: simhash.Fingerprint(r.Evidence()),
		Severity: severityView{
			Class:           judged.Class,
			CooldownSeconds: int64(judged.Cooldown.Seconds()),
			Grade:           judged.Grade,
			Reasons:         judged.Reasons,
		},
	}
	if r.Limit != nil {
		v.Limit = &limitView{Limit: *r.Limit}
		if !r.Limit.ResetsAt.IsZero() {
			v.Limit.ResetsAt = &r.Limit.ResetsAt
		}
	}
	return v
}

// plain reports on plain text, which holds no edits and no exit code. Text whose kind was guessed may be no agent's
// transcript at all.
func (v *inspection) plain(text string, guessed bool) {
	v.Fingerprint = simhash.Fingerprint(text)
	v.Severity.Reasons = []string{"plain text tells no edits, so a loop of them is not seen"}
	if v.ExitKnown || v.Ending != policy.Completed {
		return
	}
	v.Ending, v.unread = policy.Unknown, guessed
	v.Reasons = []string{"how the program ended is not known; --exit-code N says it"}
	if guessed {
		v.Reasons = []string{"it is no transcript of an agent that Pawl knows, and how the program ended is not known; --exit-code N or --cli plain says more"}
	}
}

// unread is what is said of input that cannot be read to its end, or is no transcript.
func unread(cli string, why error) inspection {
	return inspection{
		unread: true,
		Report: agent.Report{
			CLI:     cmp.Or(cli, config.Plain),
			Ending:  policy.Unknown,
			Reasons: []string{why.Error()},
		},
		Severity: severityView{Class: policy.None, Reasons: []string{}},
		Loops:    []policy.Loop{},
	}
}

type recordedRun struct {
	stdout io.ReadCloser
	stderr string
	exit   *agent.Exit
}

// transcript is the output, out of whatever it is packed in. A CLI that refused its arguments printed nothing, which is
// understood where its exit code is known.
func (r recordedRun) transcript() (*bufio.Reader, error) {
	opened, start, err := replay.Open(r.stdout)
	_, empty := errors.AsType[replay.NotUnderstood](err)
	refused := empty && len(start) == 0 && r.exit != nil
	if err != nil && !refused {
		return nil, err
	}
	return bufio.NewReaderSize(replay.Unwrap(opened, start), detectHead), nil
}

// openRun opens a transcript, or a recorded run as a folder. A CLI that refused its arguments
// printed nothing, so the output may be missing where the exit code is there.
func openRun(name string, open replay.Opener) (r recordedRun, err error) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		if r.stdout, err = open(name); err != nil {
			return r, fmt.Errorf("open the transcript: %w", err)
		}
		return r, nil
	}
	r.stdout = io.NopCloser(strings.NewReader(""))
	code, exitErr := readSome(filepath.Join(name, "exit.txt"))
	if exitErr == nil {
		first, _, _ := strings.Cut(strings.TrimSpace(code), " ")
		n, err := strconv.Atoi(first)
		if err != nil {
			return r, fmt.Errorf("%s/exit.txt does not begin with an exit code", name)
		}
		r.exit = &agent.Exit{Code: n}
	}
	if r.stderr, err = readSome(filepath.Join(name, "stderr.txt")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("read standard error: %w", err)
	}
	if f, err := os.Open(filepath.Join(name, "stdout.jsonl")); err == nil {
		r.stdout = f
	} else if exitErr != nil {
		return r, fmt.Errorf("%s is not a recorded run: it has neither stdout.jsonl nor exit.txt", name)
	}
	return r, nil
}

func readSome(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxStderr))
	return string(b), err
}

// maxLine is how much of a text of the agent is printed, in characters.
const maxLine = 300

func (v inspection) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("ending", "%s (%s)", v.Ending, v.CLI)
	for _, reason := range v.Reasons {
		row("", "%s", render.Line(reason, maxLine))
	}
	if l := v.Limit; l != nil {
		until := "reset unknown"
		if l.ResetsAt != nil {
			until = fmt.Sprintf("until %s (%s)", l.ResetsAt.Format(time.RFC3339), l.Source)
		}
		row("limit", "%s, %s, %s", l.Kind, l.Certainty, until)
	}
	edits := fmt.Sprintf("%d in %s", v.Edits.Operations, policy.Plural(v.Edits.Files, "file"))
	if v.Edits.MaxRepeat > 1 {
		edits += fmt.Sprintf(", %d of them on %s", v.Edits.MaxRepeat, render.Line(v.Edits.MaxRepeatPath, maxLine))
	}
	plain := v.CLI == config.Plain
	if plain {
		edits = "not told"
	}
	row("edits", "%s", edits)
	severity := string(v.Severity.Class)
	if v.Severity.Class != policy.None {
		severity += fmt.Sprintf(", cooldown %s, grade %g", time.Duration(v.Severity.CooldownSeconds)*time.Second, v.Severity.Grade)
	}
	row("severity", "%s", severity)
	for _, reason := range v.Severity.Reasons {
		row("", "%s", render.Line(reason, maxLine))
	}
	for _, l := range v.Loops {
		row("loop", "%s %d times %s", l.Kind, l.Count, render.Line(l.What, maxLine))
	}
	cost := ""
	if v.CostUSD != nil {
		cost = fmt.Sprintf(", %.4f USD", *v.CostUSD)
	}
	if v.Tokens.Estimated > 0 {
		cost += fmt.Sprintf(", %d of them estimated", v.Tokens.Estimated)
	}
	if !plain {
		row("tokens", "%d in (%d cached), %d out%s", v.Tokens.Input, v.Tokens.CachedInput, v.Tokens.Output, cost)
		row("calls", "%d in %s", v.ToolCalls, policy.Plural(v.Turns, "turn"))
	}
	row("mentions", "%d of a limit, ignored", v.Mentions)
	row("fingerprint", "%s", v.Fingerprint)
	if v.SessionID != "" {
		row("session", "%s", render.Line(v.SessionID, maxLine))
	}
	if v.FinalMessage != "" {
		row("message", "%s", render.Line(v.FinalMessage, maxLine))
	}
	t.Flush()
}

func replayCommand() *cobra.Command {
	var file, cli string
	cmd := &cobra.Command{
		Use: "replay FILE...", Short: "Show what policy would have decided after each recorded attempt",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("replay needs a recording: a trail (pawl status --export), a wrapper's log, or transcripts in order; - reads standard input")
			}
			if cli != "" && !slices.Contains(replay.Streams(), cli) {
				return fmt.Errorf("unknown --cli %q: use one of %s", cli, strings.Join(replay.Streams(), ", "))
			}
			return nil
		},
		Long: "Read a recorded sequence of attempts and show after each what policy would have decided, where it\n" +
			"would have stopped and why, and what that saves. A recording is a thread's log (pawl status --export),\n" +
			"the log of a wrapper that restarts an agent, or several transcripts in order, one attempt each.\n" +
			"Files may be compressed with gzip; - reads standard input.",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadOrDefault(file)
			if err != nil {
				return err
			}
			r, err := replay.Files(cfg, cli, args, opener(cmd))
			if err != nil {
				return err
			}
			return printReport(cmd, r, r.Print)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "a server's configuration file, for its policy (default: the published numbers)")
	cmd.Flags().StringVar(&cli, "cli", "", "read each file as one transcript of "+strings.Join(replay.Streams(), ", ")+" (default: detected)")
	jsonFlag(cmd)
	return cmd
}
