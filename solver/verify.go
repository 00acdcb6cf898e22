package solver

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/policy"
)

// Bounds of one verify command: half an hour is a long CI job, and its last
// lines say what failed.
const (
	verifyTimeout = 30 * time.Minute
	verifyOutput  = 64 << 10
)

// verify runs the repository's commands on the work tree, in the sandbox, until
// one fails. They come from the default branch, what they run comes from the
// agent. A test that failed before Pawl began does not count. Where it is ended
// from outside, the error is the cause.
func (s *step) verify(ctx context.Context, a Started, p *prepared, ws *git.Workspace, task string) (all []Verified, err error) {
	if len(p.effective.Verify) == 0 {
		return nil, nil
	}
	ctx, end := s.span(ctx, "verify")
	defer func() { end(err) }()
	for _, c := range p.effective.Verify {
		v, err := s.verifyOne(ctx, a, p, c, ws)
		if err == nil && !v.Passed && len(v.Failing) > 0 && !v.TimedOut && !v.cut {
			err = s.forgive(ctx, a, p, task, &v)
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

// verifyOne runs one command and reads what it says of the tests.
func (s *step) verifyOne(ctx context.Context, a Started, p *prepared, command string, ws *git.Workspace) (Verified, error) {
	began, before := s.Now(), stamps(ws.Dir, p.effective)
	report, printed, err := s.inSandbox(ctx, a, ws, program{argv: []string{"/bin/sh", "-c", command}, most: verifyTimeout, both: true})
	if err != nil {
		return Verified{}, fmt.Errorf("verify command %q: %w", command, err)
	}
	v := Verified{Command: command, Exit: report.Exit.Code, Output: printed.String(), MS: s.Now().Sub(began).Milliseconds(), TimedOut: report.Killed, Signal: report.Exit.Signal}
	v.cut = printed.cut
	v.Passed = report.Exit.Code == 0 && report.Exit.Signal == "" && !report.Killed
	if report.Killed {
		v.Output += fmt.Sprintf("\n[ended after %s]", verifyTimeout)
	}
	tests := []policy.TestReport{policy.ReadTests(v.Output)}
	for _, text := range reports(ws.Dir, p.effective, before) {
		tests = append(tests, policy.ReadTests(text))
	}
	v.count(tests)
	return v, nil
}

// program is something to run on a work tree that is no agent.
type program struct {
	argv, env []string
	stdin     []byte
	most      time.Duration
	// both keeps what it prints on standard error, too.
	both bool
	// apart starts it in an empty folder, with the work tree to read only: what
	// lies in the tree was written by an agent.
	apart bool
}

// inSandbox runs a program on a work tree with a HOME of its own and returns how
// it ended and the end of what it printed. Where it is ended from outside, the
// error is the cause.
func (s *step) inSandbox(ctx context.Context, a Started, ws *git.Workspace, prog program) (agent.Report, *lastBytes, error) {
	home := filepath.Join(s.attemptDir(s.thread, a.N), verifyDir)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return agent.Report{}, nil, err
	}
	defer func() {
		if err := git.Remove(home); err != nil {
			s.log.Warn().Err(err).Msg("HOME of a verify command left behind")
		}
	}()
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.watch(run, a.Seen, cancel)()
	list := []string{"HOME=" + home}
	for k, v := range s.environment(prog.env) {
		list = append(list, k+"="+v)
	}
	spec := sandbox.Spec{
		Argv: prog.argv, Dir: ws.Dir, Home: home, Env: list, ReadOnly: s.shown(ws, nil), Stdin: prog.stdin,
		ID: s.ProcessPrefix() + s.thread.String() + "/verify",
	}
	if prog.apart {
		spec.Dir, spec.ReadOnly = home, append(spec.ReadOnly, ws.Dir)
	}
	proc, err := s.Sandbox.Start(run, spec)
	if cause := context.Cause(run); err != nil && cause != nil {
		return agent.Report{}, nil, cause
	}
	if err != nil {
		return agent.Report{}, nil, err
	}
	plain, err := agent.ForStream(agent.StreamPlain)
	if err != nil {
		return agent.Report{}, nil, err
	}
	var printed lastBytes
	reading := process(proc)
	if prog.both {
		reading.Stderr = io.TeeReader(reading.Stderr, &printed)
	}
	report, err := agent.Run(run, reading, plain, agent.RunOptions{Total: prog.most, Transcript: &printed, Now: s.Now})
	if cause := context.Cause(run); cause != nil {
		return report, &printed, cause
	}
	return report, &printed, err
}
