package inspect

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/replay"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/simhash"
)

// detectHead limits the bytes used to detect the CLI.
const detectHead = 64 << 10

// maxStderr limits recorded standard error in bytes.
const maxStderr = 1 << 20

// Options add what a transcript lacks.
type Options struct {
	CLI      string      // one of replay.Streams; empty to detect
	Exit     *agent.Exit // nil for the recorded one
	Now      time.Time   // end of the run, for relative times
	Zone     *time.Location
	Severity policy.SeverityLimits
}

// Report is printed by pawl inspect.
type Report struct {
	agent.Report
	Outcome policy.Outcome `json:"outcome"`
	// Verification is always none: transcripts have no verify commands.
	Verification policy.Verification `json:"verification"`
	Limit        *limitView          `json:"limit"`
	Severity     severityView        `json:"severity"`
	Loops        []policy.Loop       `json:"loops"`
	Fingerprint  simhash.Print       `json:"fingerprint"`

	unread bool
}

// Understood reports whether the whole input is a transcript, or text with a known end.
func (v Report) Understood() bool { return !v.unread }

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

// Read reads one run's transcript. Input that it does not understand gives a Report, not an error.
func Read(name string, open replay.Opener, o Options) (Report, error) {
	source, err := openRun(name, open)
	if err != nil {
		return Report{}, err
	}
	defer source.stdout.Close()
	if o.Exit != nil {
		source.exit = o.Exit
	}
	in, err := source.transcript()
	if err != nil {
		return unread(o.CLI, err), nil
	}
	cli := o.CLI
	guessed := cli == ""
	if guessed {
		head, err := in.Peek(detectHead)
		if err != nil && err != io.EOF {
			return unread("", err), nil
		}
		cli = clis.Detect(head)
	}
	a, err := clis.ForStream(cli)
	if err != nil {
		return Report{}, err
	}
	var whole strings.Builder
	var read io.Reader = in
	if cli == config.Plain {
		read = io.TeeReader(in, &whole)
	}
	r, err := agent.Inspect(read, a, agent.InspectOptions{
		Stderr: source.stderr,
		Exit:   source.exit,
		Now:    o.Now,
		Zone:   o.Zone,
	})
	if err != nil {
		return unread(cli, err), nil
	}
	v := reportOf(r, o.Severity)
	if cli == config.Plain {
		v.plain(whole.String(), guessed)
	}
	return v, nil
}

func reportOf(r agent.Report, limits policy.SeverityLimits) Report {
	judged := limits.Judge(r.Edits)
	v := Report{
		Report:       r,
		Outcome:      outcomeOf(r, limits),
		Verification: policy.Unverified,
		Loops:        limits.Loops(r.Edits),
		Fingerprint:  simhash.Fingerprint(r.Evidence()),
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

// outcomeOf returns the attempt's outcome. Edits count as a change, since the files are unknown.
func outcomeOf(r agent.Report, limits policy.SeverityLimits) policy.Outcome {
	before := "before"
	receipt := policy.Receipt{
		Ending:    r.Ending,
		Edits:     r.Edits,
		StartTree: before,
		EndTree:   before,
		Declined:  policy.Declining(r.FinalMessage),
	}
	if r.Edits.Operations > 0 {
		receipt.EndTree = "after"
	}
	return receipt.Came(policy.ToChange, limits)
}

// plain reports on plain text, which has no edits and no exit code. If its kind was guessed, it may not be a transcript.
func (v *Report) plain(text string, guessed bool) {
	v.Fingerprint = simhash.Fingerprint(text)
	v.Severity.Reasons = []string{"plain text contains no edits, so an edit loop cannot be detected"}
	if v.ExitKnown || v.Ending != policy.Completed {
		return
	}
	v.Ending, v.Outcome, v.unread = policy.Unknown, policy.NotKnown, guessed
	v.Reasons = []string{"the exit code is unknown; add --exit-code N"}
	if guessed {
		v.Reasons = []string{"this is not a known agent's transcript, and the exit code is unknown; add --exit-code N or --cli plain"}
	}
}

// unread returns the report for input that cannot be read to its end or is not a transcript.
func unread(cli string, why error) Report {
	return Report{
		unread:       true,
		Outcome:      policy.NotKnown,
		Verification: policy.Unverified,
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

// transcript unpacks the output. A CLI that refused its arguments printed nothing, which is valid with a known exit code.
func (r recordedRun) transcript() (*bufio.Reader, error) {
	opened, start, err := replay.Open(r.stdout)
	_, empty := errors.AsType[replay.NotUnderstood](err)
	refused := empty && len(start) == 0 && r.exit != nil
	if err != nil && !refused {
		return nil, err
	}
	return bufio.NewReaderSize(replay.Unwrap(opened, start), detectHead), nil
}

// openRun opens a transcript, or the folder of a recorded run. The output may be missing if the exit code exists: a CLI that
// refused its arguments printed nothing.
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

// maxLine limits a line of the agent's text, in characters.
const maxLine = 300

// used describes the usage that the output reports.
func (v Report) used() string {
	tokens := "unknown"
	if t := v.Tokens; t != (policy.Tokens{}) {
		tokens = fmt.Sprintf("%d in (%d cached), %d out", t.Input, t.CachedInput, t.Output)
	}
	if v.CostUSD != nil {
		tokens += fmt.Sprintf(", %.4f USD", *v.CostUSD)
	}
	if v.Tokens.Estimated > 0 {
		tokens += fmt.Sprintf(", %d of them estimated", v.Tokens.Estimated)
	}
	return tokens
}

func (v Report) Print(w io.Writer) {
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
		edits = "not reported"
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
	if !plain {
		row("tokens", "%s", v.used())
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
