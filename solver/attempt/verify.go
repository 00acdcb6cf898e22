package attempt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/testreport"
	"github.com/pawlbot/pawl/policy"
)

// Limits of one verify command: half an hour equals a long CI job. Tests are parsed from all output; the last lines
// are stored.
const (
	verifyTimeout = 30 * time.Minute
	verifyOutput  = 64 << 10
)

// Verify runs the verify commands and the test evidence before the push. The commands come from the default branch; the
// code comes from the agent. If something else ends the attempt, Verify returns the cause.
func (c *checkout) Verify(ctx context.Context) (all []policy.Verified, err error) {
	if len(c.Ground.Effective.Verify) == 0 {
		return nil, nil
	}
	if err := c.based(ctx); err != nil {
		return nil, err
	}
	defer c.Env.prepare("")
	commit := cmp.Or(c.Receipt.Commit, c.Ground.Start)
	all, err = c.verify(ctx, commit, policy.AtChange)
	c.Receipt.TestEvidence = nil
	if err == nil && c.Ground.From != "" && !(policy.Receipt{Verify: all}).Failing() {
		c.Receipt.TestEvidence, err = c.evidence(ctx, commit, all)
	}
	for i := range all {
		all[i].Ran = nil
		noteRefused(&c.Receipt, all[i].RefusedHosts, "network.verify")
	}
	return all, err
}

// verify runs the commands until one fails, and compares with the base. It repeats a failing command once. at becomes
// each result's At.
func (c *checkout) verify(ctx context.Context, commit, at string) ([]policy.Verified, error) {
	return testreport.Verify(c.Ground.Effective.Verify, c.Ground.Before, func() (testreport.Trial, error) {
		t, err := c.trial(ctx, commit, c.Ground.Layer.Key)
		if err != nil {
			return testreport.Trial{}, err
		}
		run := func(command string) (policy.Verified, error) {
			c.Env.prepare("verifying the change: " + command)
			v, err := t.run(ctx, command)
			v.At = at
			return v, err
		}
		return testreport.Trial{Run: run, Close: t.close}, nil
	})
}

// trial runs programs on one commit in fresh files and a fresh HOME, which close removes.
type trial struct {
	c       *checkout
	footing footing
	ws      *git.Workspace
	home    string
	close   func()
}

func (c *checkout) trial(ctx context.Context, commit, layer string) (*trial, error) {
	dir, leave := c.Env.bay(c.Thread)
	t := &trial{c: c, home: filepath.Join(dir, homeDir), footing: footing{leave: func() {}}}
	t.close = func() {
		defer leave()
		defer func() { t.footing.leave() }()
		if err := git.Remove(dir); err != nil {
			c.Log.Warn().Err(err).Msg("files of a verification left behind")
		}
	}
	err := git.Remove(dir)
	if err == nil {
		err = os.MkdirAll(t.home, 0o700)
	}
	if err == nil {
		g := c.Ground
		t.ws, err = g.cache.Checkout(ctx, git.CheckoutSpec{Commit: commit, Dir: filepath.Join(dir, workDir), Branch: g.Branch, Base: g.Base, From: g.From})
	}
	if err == nil {
		t.footing, err = c.over(ctx, layer, t.ws, t.home, true)
	}
	if err != nil {
		t.close()
		return nil, fmt.Errorf("prepare a verification: %w", err)
	}
	return t, nil
}

func (t *trial) run(ctx context.Context, command string) (policy.Verified, error) {
	began, reports := t.c.Env.Now(), testreport.Watch(t.ws.Dir, config.Reported(t.c.Ground.Effective.Reports))
	kept, tests := render.End{Max: verifyOutput}, testreport.NewReader()
	prog := program{
		argv:  []string{"/bin/sh", "-c", "exec 2>&1\n" + command}, // stdout and stderr in order
		most:  verifyTimeout,
		allow: t.c.Ground.Effective.Network.Verify,
		where: "network.verify",
	}
	report, refused, err := t.inSandbox(ctx, prog, io.MultiWriter(&kept, tests))
	if err != nil {
		return policy.Verified{}, fmt.Errorf("verify command %q: %w", command, err)
	}
	v := policy.Verified{
		Command:      command,
		Passed:       succeeded(report),
		Exit:         report.Exit.Code,
		Output:       kept.Lines(),
		MS:           t.c.Env.Now().Sub(began).Milliseconds(),
		TimedOut:     report.Killed,
		Signal:       report.Exit.Signal,
		RefusedHosts: refused,
	}
	if report.Killed {
		v.Output += fmt.Sprintf("\n[ended after %s]", verifyTimeout)
	}
	if report.Exit.Exceeded != "" {
		v.Output += "\n[" + report.Exit.Exceeded + "]"
	}
	testreport.Count(&v, append([]testreport.Report{tests.Report()}, reports()...)...)
	return v, nil
}

// program describes a program other than an agent.
type program struct {
	argv, env []string
	stdin     []byte
	most      time.Duration
	allow     []policy.HostRule // allowed hosts
	where     string            // key of the allow list
	// apart starts the program in its HOME with read-only files, since an agent wrote the files.
	apart bool
}

// inSandbox runs a program and returns its report and refused hosts. out receives standard output. If something else
// ends the attempt, it returns the cause.
func (t *trial) inSandbox(ctx context.Context, prog program, out io.Writer) (report agent.Report, refused []string, err error) {
	run, end := t.c.Watch(ctx)
	defer end()
	_, home := t.c.Env.inside(t.ws.Dir, t.home)
	list := []string{"HOME=" + home}
	f := t.footing
	if prog.apart { // the operator's program
		f = footing{}
	}
	for k, v := range t.c.environment(prog.env, f.image) {
		list = append(list, k+"="+v)
	}
	spec := sandbox.Spec{
		Argv: prog.argv, Dir: t.ws.Dir, Home: t.home, Env: list, ReadOnly: slices.Clone(t.c.Config.Sandbox.ReadOnly), Stdin: prog.stdin,
		ID: t.c.Env.ProcessPrefix() + t.c.Thread.String() + "/verify",
	}
	t.c.stand(&spec, f)
	if prog.apart {
		spec.DirAt = spec.HomeAt
		spec.Dir, spec.ReadOnly = t.home, append(spec.ReadOnly, t.ws.Dir)
	}
	plain, err := clis.ForStream(config.Plain)
	if err != nil {
		return report, nil, err
	}
	endNetwork := t.c.restrictNetwork(&spec, nil, prog.allow, prog.where)
	proc, err := t.c.Env.Sandbox.Start(run, spec)
	if err != nil {
		endNetwork()
		return report, nil, cmp.Or(context.Cause(run), err)
	}
	report, err = agent.Run(run, process(proc), plain, agent.RunOptions{Total: prog.most, Transcript: out, Now: t.c.Env.Now})
	if refused = endNetwork().Refused; len(refused) > 0 && err == nil {
		_, err = fmt.Fprintf(out, "[Pawl refused: %s; the operator can allow it in %s]\n", strings.Join(refused, ", "), prog.where)
	}
	return report, refused, cmp.Or(context.Cause(run), err)
}

// question is the judge's standard input as JSON.
type question struct {
	Thread  string            `json:"thread"`
	Attempt int               `json:"attempt"`
	Task    string            `json:"task"`
	Diff    string            `json:"diff"`
	Outcome string            `json:"outcome"`
	Verify  []policy.Verified `json:"verify"`
	Final   string            `json:"final_message"`
	// Tree is the path of the agent's files.
	Tree string `json:"tree"`
}

// Judge asks the operator's or the built-in judge for a grade. It returns nil without a judge or work.
func (c *checkout) Judge(ctx context.Context) (*policy.Judged, error) {
	if !c.graded() {
		return nil, nil
	}
	if c.ws == nil {
		return nil, errors.New("the judge was not asked, since the server that ran the attempt was stopped")
	}
	diff, err := c.ws.Diff(ctx, c.ws.StartTree, c.Receipt.EndTree, maxDiff)
	if err != nil {
		return nil, err
	}
	q := question{
		Thread:  c.Thread.String(),
		Attempt: c.N,
		Task:    c.Prompt,
		Diff:    diff,
		Outcome: string(c.Receipt.Outcome),
		Verify:  c.Receipt.Verify,
		Final:   c.Receipt.Final,
	}
	if len(c.Ground.Effective.Policy.Learning.Judge) == 0 {
		return c.askModel(ctx, q)
	}
	return c.askProgram(ctx, q)
}

func (c *checkout) graded() bool {
	l := c.Ground.Effective.Policy.Learning
	if len(l.Judge) == 0 && l.JudgeProvider == "" {
		return false
	}
	if c.NoAgent || c.Receipt.Ending != policy.Completed {
		return false
	}
	return c.Receipt.Progress()
}

func (c *checkout) askProgram(ctx context.Context, q question) (*policy.Judged, error) {
	l := c.Ground.Effective.Policy.Learning
	t, err := c.trial(ctx, cmp.Or(c.Receipt.Commit, c.Ground.Start), "")
	if err != nil {
		return nil, err
	}
	defer t.close()
	q.Tree = t.ws.Dir
	in, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	prog := program{
		argv:  l.Judge,
		env:   l.JudgeEnv,
		stdin: in,
		most:  l.JudgeTimeout,
		apart: true,
		allow: c.Ground.Effective.Network.Judge,
		where: "network.judge",
	}
	printed := render.End{Max: verifyOutput}
	report, refused, err := t.inSandbox(ctx, prog, &printed)
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	noteRefused(&c.Receipt, refused, "network.judge")
	output := printed.Lines()
	name := filepath.Base(l.Judge[0])
	if report.Killed {
		return &policy.Judged{Error: fmt.Sprintf("%s did not answer within %s", name, l.JudgeTimeout)}, nil
	}
	if !succeeded(report) {
		why := agent.Shorten(oneLine(report.Stderr+" "+output), 300)
		return &policy.Judged{Error: fmt.Sprintf("%s ended with exit code %d: %s", name, report.Exit.Code, why)}, nil
	}
	return verdict(name, output), nil
}

func succeeded(r agent.Report) bool {
	if r.Killed || r.Exit.Signal != "" {
		return false
	}
	return r.Exit.Code == 0
}

// verdict parses the last line that is a JSON object with a grade.
func verdict(name, output string) *policy.Judged {
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(output), "\n")) {
		var answer struct {
			Grade  *float64 `json:"grade"`
			Reason string   `json:"reason"`
			Error  string   `json:"error"`
		}
		switch err := json.Unmarshal([]byte(line), &answer); {
		case err != nil:
		case answer.Error != "":
			return &policy.Judged{Error: agent.Shorten(oneLine(answer.Error), 300)}
		case answer.Grade != nil:
			return &policy.Judged{Grade: *answer.Grade, Detail: agent.Shorten(oneLine(answer.Reason), 300)}
		}
	}
	return &policy.Judged{Error: fmt.Sprintf(`%s printed no line such as {"grade": 0.7, "reason": "…"}`, name)}
}
