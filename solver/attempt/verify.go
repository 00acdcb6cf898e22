package attempt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/testreport"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
)

// Bounds of one verify command: half an hour is a long CI job, and its last
// lines say what failed.
const (
	verifyTimeout = 30 * time.Minute
	verifyOutput  = 64 << 10
)

// Verify runs the repository's commands on the work tree, in the sandbox, until
// one fails. They come from the default branch, what they run comes from the
// agent. A test that failed before Pawl began does not count. Where it is ended
// from outside, the error is the cause.
func (c *checkout) Verify(ctx context.Context) (all []policy.Verified, err error) {
	if len(c.Ground.Effective.Verify) == 0 {
		return nil, nil
	}
	ctx, end := c.Span(ctx, "verify")
	defer func() { end(err) }()
	for _, command := range c.Ground.Effective.Verify {
		v, whole, err := c.verifyOne(ctx, command, c.ws)
		if err == nil && !v.Passed && len(v.Failing) > 0 && !v.TimedOut && whole {
			err = c.forgive(ctx, &v)
		}
		if err != nil {
			return all, err
		}
		all = append(all, v)
		if !v.Passed {
			break
		}
	}
	return all, nil
}

// verifyOne runs one command and reads what it says of the tests. It also reports
// whether all of the output was kept.
func (c *checkout) verifyOne(ctx context.Context, command string, ws *git.Workspace) (_ policy.Verified, whole bool, err error) {
	began, before := c.Now(), stamps(ws.Dir, c.Ground.Effective)
	report, printed, err := c.inSandbox(ctx, ws, program{argv: []string{"/bin/sh", "-c", command}, most: verifyTimeout})
	if err != nil {
		return policy.Verified{}, false, fmt.Errorf("verify command %q: %w", command, err)
	}
	v := policy.Verified{Command: command, Exit: report.Exit.Code, Output: printed.String(), MS: c.Now().Sub(began).Milliseconds(), TimedOut: report.Killed, Signal: report.Exit.Signal}
	v.Passed = report.Exit.Code == 0 && report.Exit.Signal == "" && !report.Killed
	if report.Killed {
		v.Output += fmt.Sprintf("\n[ended after %s]", verifyTimeout)
	}
	tests := []testreport.Report{testreport.Read(v.Output)}
	for _, text := range reports(ws.Dir, c.Ground.Effective, before) {
		tests = append(tests, testreport.Read(text))
	}
	count(&v, tests)
	return v, printed.all <= verifyOutput, nil
}

type program struct {
	argv, env []string
	stdin     []byte
	most      time.Duration
	// apart starts it in an empty folder, with the work tree to read only: what
	// lies in the tree was written by an agent. What it prints on standard error is
	// kept apart, too.
	apart bool
}

// inSandbox runs a program on a work tree with a HOME of its own and returns how
// it ended and the end of what it printed. Where it is ended from outside, the
// error is the cause.
func (c *checkout) inSandbox(ctx context.Context, ws *git.Workspace, prog program) (agent.Report, *lastBytes, error) {
	home := filepath.Join(c.attemptDir(c.Thread, c.N), verifyDir)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return agent.Report{}, nil, err
	}
	defer func() {
		if err := git.Remove(home); err != nil {
			c.Log.Warn().Err(err).Msg("HOME of a verify command left behind")
		}
	}()
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer c.Watch(run, cancel)()
	list := []string{"HOME=" + home}
	for k, v := range c.environment(prog.env) {
		list = append(list, k+"="+v)
	}
	spec := sandbox.Spec{
		Argv: prog.argv, Dir: ws.Dir, Home: home, Env: list, ReadOnly: c.shown(ws, nil), Stdin: prog.stdin,
		ID: c.ProcessPrefix() + c.Thread.String() + "/verify",
	}
	if prog.apart {
		spec.Dir, spec.ReadOnly = home, append(spec.ReadOnly, ws.Dir)
	}
	plain, err := clis.ForStream(config.Plain)
	if err != nil {
		return agent.Report{}, nil, err
	}
	proc, err := c.Sandbox.Start(run, spec)
	if err != nil {
		return agent.Report{}, nil, cmp.Or(context.Cause(run), err)
	}
	var printed lastBytes
	reading := process(proc)
	if !prog.apart {
		reading.Stderr = io.TeeReader(reading.Stderr, &printed)
	}
	report, err := agent.Run(run, reading, plain, agent.RunOptions{Total: prog.most, Transcript: &printed, Now: c.Now})
	return report, &printed, cmp.Or(context.Cause(run), err)
}

// count takes over what the tests came to. Runners tell the same failure in
// several places; it counts once.
func count(v *policy.Verified, all []testreport.Report) {
	seen, text, counted := map[string]bool{}, 0, false
	for _, t := range all {
		if t.Runner == "" {
			continue
		}
		v.Runner = t.Runner
		v.PassedTests, v.FailedTests = max(v.PassedTests, t.Passed), max(v.FailedTests, t.Failed)
		counted = counted || t.Passed != testreport.NotCounted
		for _, f := range t.Failures {
			if seen[f.Name] || len(seen) == maxFailures {
				continue
			}
			seen[f.Name] = true
			if text += len(f.Text); text > maxFailureText {
				f.Text = ""
			}
			v.Failing = append(v.Failing, f)
		}
	}
	v.FailedTests = max(v.FailedTests, len(v.Failing))
	v.NoTests = counted && v.PassedTests+v.FailedTests == 0
}

// Bounds of the failures that a receipt keeps: how many, and how many bytes of
// their texts together. Beyond that only the number is told.
const (
	maxFailures    = 200
	maxFailureText = 64 << 10
)

// Bounds of reading report files: how many entries of the work tree are looked
// at, and how many files are read.
const (
	maxReportEntries = 100_000
	maxReports       = 200
)

// stamps are the report files of a work tree as they are. What cannot be read is
// left out: the exit code decides.
func stamps(dir string, e config.Effective) map[string]look {
	found := map[string]look{}
	if len(e.Reports) == 0 {
		return found
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return found
	}
	defer root.Close()
	seen := 0
	// An error of the walk ends it; what was found by then is what there is.
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		seen++
		switch {
		case err != nil:
			return nil
		case seen > maxReportEntries:
			return fs.SkipAll
		case d.IsDir() && path.Base(name) == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular() || !e.Reported(name):
			return nil
		}
		if info, err := d.Info(); err == nil {
			found[name] = look{info.ModTime(), info.Size()}
		}
		return nil
	})
	return found
}

// reports are the texts of the report files that changed since a time.
func reports(dir string, e config.Effective, before map[string]look) []string {
	var changed []string
	for name, now := range stamps(dir, e) {
		if was, ok := before[name]; !ok || was != now {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	var texts []string
	for _, name := range changed[:min(len(changed), maxReports)] {
		if text, err := readRegular(root, name); err == nil {
			texts = append(texts, string(text))
		}
	}
	return texts
}

// lastBytes keeps the end of what is written to it, at most verifyOutput bytes
// from two writers at a time. The zero value is ready.
type lastBytes struct {
	mu  sync.Mutex
	end text.End
	all int // bytes written
}

func (l *lastBytes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end.Max = verifyOutput
	l.all += len(p)
	return l.end.Write(p)
}

// String is the kept text, from a line's beginning where something was cut.
func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := strings.ToValidUTF8(l.end.String(), "\uFFFD")
	if _, rest, ok := strings.Cut(s, "\n"); ok && l.all > verifyOutput {
		s = "[cut]\n" + rest
	}
	return s
}

// question is what the judge gets on standard input, as JSON.
type question struct {
	Thread  string            `json:"thread"`
	Attempt int               `json:"attempt"`
	Task    string            `json:"task"`
	Diff    string            `json:"diff"`
	Outcome string            `json:"outcome"`
	Verify  []policy.Verified `json:"verify"`
	Final   string            `json:"final_message"`
	// Tree is where the judge can read the files, which the agent wrote.
	Tree string `json:"tree"`
}

// Judge lets the operator's judge grade the work of an attempt, in the
// sandbox. It is nil where there is no judge or nothing to grade.
func (c *checkout) Judge(ctx context.Context) (*policy.Judged, error) {
	l := c.Ground.Effective.Policy.Learning
	if len(l.Judge) == 0 || c.Receipt.Ending != policy.Completed || !c.Receipt.Progress() {
		return nil, nil
	}
	if c.ws == nil {
		return nil, errors.New("the judge was not asked, since another server ran the attempt")
	}
	diff, err := c.ws.Diff(ctx, c.Receipt.StartTree, c.Receipt.EndTree, maxDiff)
	if err != nil {
		return nil, err
	}
	in, err := json.Marshal(question{Thread: c.Thread.String(), Attempt: c.N, Task: c.Prompt, Diff: diff, Outcome: string(c.Receipt.Outcome), Verify: c.Receipt.Verify, Final: c.Receipt.Final, Tree: c.ws.Dir})
	if err != nil {
		return nil, err
	}
	report, printed, err := c.inSandbox(ctx, c.ws, program{argv: l.Judge, env: l.JudgeEnv, stdin: in, most: l.JudgeTimeout, apart: true})
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	said := printed.String()
	name := filepath.Base(l.Judge[0])
	switch {
	case report.Killed:
		return &policy.Judged{Error: fmt.Sprintf("%s did not answer within %s", name, l.JudgeTimeout)}, nil
	case report.Exit.Code != 0 || report.Exit.Signal != "":
		return &policy.Judged{Error: fmt.Sprintf("%s ended with exit code %d: %s", name, report.Exit.Code, clip(oneLine(report.Stderr+" "+said), 300))}, nil
	}
	return verdict(name, said), nil
}

// verdict reads the judge's answer: the last line that is a JSON object with a
// grade.
func verdict(name, said string) *policy.Judged {
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(said), "\n")) {
		var answer struct {
			Grade  *float64 `json:"grade"`
			Reason string   `json:"reason"`
			Error  string   `json:"error"`
		}
		switch err := json.Unmarshal([]byte(line), &answer); {
		case err != nil:
		case answer.Error != "":
			return &policy.Judged{Error: clip(oneLine(answer.Error), 300)}
		case answer.Grade != nil:
			return &policy.Judged{Grade: *answer.Grade, Detail: clip(oneLine(answer.Reason), 300)}
		}
	}
	return &policy.Judged{Error: fmt.Sprintf(`%s printed no line such as {"grade": 0.7, "reason": "…"}`, name)}
}
