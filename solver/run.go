package solver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/sandbox"
)

// maxTranscript bounds what is kept of an agent's output, in bytes. The longest
// recorded healthy session is below 1 MiB, the log of the 1,249-restart
// incident 140 MB.
const maxTranscript = 256 << 20

// watchInterval is how often a running attempt looks for a reason to end: a
// stop must be obeyed within 5 s, on whichever node it arrives.
const watchInterval = 500 * time.Millisecond

// runAgent starts the agent in the sandbox and reads it to its end. A non-nil
// cause is why it was ended from outside.
func (s *step) runAgent(ctx context.Context, a Started, b config.Backend, p *prepared, ws *git.Workspace, task string, look *lookout, r *Ended) (cause, err error) {
	adapter, err := agent.For(b.Kind, b.Stream)
	if err != nil {
		s.receipt(r, missing(agent.Adapter{Name: b.Kind}, err), look.edits())
		return nil, nil
	}
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	door, err := s.open(run, a, b, p.effective.Policy, cancel)
	if err != nil {
		s.receipt(r, missing(adapter, err), look.edits())
		return nil, nil
	}
	noted := s.keepNoting(run, door)
	home, dir := s.homeOf(s.thread), s.attemptDir(s.thread, a.N)
	inside, end := s.span(run, "agent run", TraceBackend, b.Name)
	report, cause, err := s.runIn(inside, cancel, a, b, p, ws, adapter, door, task, look)
	end(err, TraceEnding, string(report.Ending))
	r.Transcript = filepath.Join(dir, transcriptFile)
	if cause == nil && err == nil && adapter.ReadSession != nil && report.SessionID != "" {
		s.refine(adapter, home, &report)
		look.session(adapter, home, report.SessionID)
	}
	s.receipt(r, report, look.edits())
	r.Trajectory = look.track.Trajectory
	for _, path := range look.replaced {
		r.LeftOut = append(r.LeftOut, path+" (configuration of the agent)")
	}
	if limit := (limitCut{}); errors.As(cause, &limit) {
		r.Reasons = append(r.Reasons, limit.Error())
		cause = nil
	}
	door.close(r)
	// Commands that verify may take long, and the process may end meanwhile.
	noted()
	s.note(ctx, door.ledger, spentIn(*r))
	s.ranTests(home, r)
	return cause, err
}

// runIn starts the agent with what it may see and reads it to its end. What the
// CLI would run of the repository in spite of its switches is withheld until the
// agent is dead.
func (s *step) runIn(run context.Context, cancel context.CancelCauseFunc, a Started, b config.Backend, p *prepared, ws *git.Workspace, adapter agent.Adapter, door door, task string, look *lookout) (_ agent.Report, cause, err error) {
	spec, err := s.spec(a, b, p, ws, adapter, door, task)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		return missing(adapter, refused.err), nil, nil
	}
	if err != nil {
		return agent.Report{}, nil, err
	}
	held, err := ws.Withhold(adapter.Unguarded)
	defer func() {
		look.replaced, look.spoilt = ws.Restore(context.WithoutCancel(run), held)
	}()
	if err != nil {
		return agent.Report{}, nil, err
	}
	out, err := os.OpenFile(filepath.Join(s.attemptDir(s.thread, a.N), transcriptFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return agent.Report{}, nil, err
	}
	defer out.Close()
	defer s.watch(run, a.Seen, cancel)()
	proc, err := s.Sandbox.Start(run, spec)
	if cause := context.Cause(run); err != nil && cause != nil {
		return agent.Report{}, cause, nil
	}
	if err != nil {
		return missing(adapter, err), nil, nil
	}
	crash.Point("agent_started")
	report, err := agent.Run(run, process(proc), adapter, agent.RunOptions{
		Dir: ws.Dir, Total: b.Timeout, Idle: b.IdleTimeout, Startup: b.StartupTimeout,
		Transcript: out, MaxTranscript: maxTranscript, Now: s.Now,
		OnDeed:  func(d agent.Deed) { look.deed(d, cancel) },
		OnEvent: func(e agent.Event) { look.track.event(e); door.steps.event(e) },
	})
	crash.Point("agent_done")
	look.track.Bytes = report.OutputBytes
	return report, context.Cause(run), err
}

// refusedError is an agent that cannot be started as it is configured.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }

// spec is the agent's process: its command line, and what it may see. HOME holds
// its configuration afterwards. A *refusedError is for the operator to mend.
func (s *step) spec(a Started, b config.Backend, p *prepared, ws *git.Workspace, adapter agent.Adapter, door door, task string) (sandbox.Spec, error) {
	home := s.homeOf(s.thread)
	tool, err := s.testTool(b, p, ws.Dir, home)
	if err != nil {
		return sandbox.Spec{}, err
	}
	request := agent.Request{
		Prompt: task, Dir: ws.Dir, Home: home, Model: b.Model, Effort: a.Effort, Session: a.Session, Argv: b.Argv, Env: s.environment(b.Env),
		Endpoint: door.endpoint, TestTool: tool, Attempt: a.N, Thread: s.thread.String(), Rung: itoa(a.Decision.Rung),
	}
	cmd, err := adapter.Command(request)
	if errors.Is(err, agent.ErrSession) {
		s.log.Warn().Err(err).Msg("the session has no name that the agent could continue it by; it starts afresh")
		request.Session = ""
		cmd, err = adapter.Command(request)
	}
	if err != nil {
		return sandbox.Spec{}, &refusedError{err}
	}
	if err := writeFiles(home, cmd.Files); err != nil {
		return sandbox.Spec{}, err
	}
	spec := sandbox.Spec{
		Argv: cmd.Argv, Dir: ws.Dir, Home: home, Env: cmd.Env, ReadOnly: s.shown(ws, tool),
		Stdin: []byte(cmd.Stdin), ID: s.ProcessPrefix() + fmt.Sprintf("%s/%d", s.thread, a.N),
	}
	if err := s.login(b, adapter, home, &spec); err != nil {
		return sandbox.Spec{}, &refusedError{err}
	}
	return spec, nil
}

// process is a sandboxed process as the runner reads it.
func process(p *sandbox.Process) agent.Process {
	return agent.Process{
		Stdout: p.Stdout(), Stderr: p.Stderr(), Kill: p.Kill,
		Wait: func() (agent.Exit, error) {
			e, err := p.Wait()
			return agent.Exit(e), err
		},
	}
}

// refine corrects a report by the CLI's session file. A file that cannot be read
// leaves it as it is.
func (s *step) refine(a agent.Adapter, home string, report *agent.Report) {
	session, err := a.ReadSession(home, report.SessionID)
	if err != nil {
		s.log.Info().Err(err).Msg("the agent's session file was not read")
		return
	}
	report.Refine(session, s.Now())
}

// missing is the report of an agent that could not be started: its program is
// not there, or may not be run. That is for the operator to mend.
func missing(a agent.Adapter, err error) agent.Report {
	return agent.Report{CLI: a.Name, Ending: agent.Misconfigured, Failure: err.Error(), Reasons: []string{"the agent could not be started: " + err.Error()}}
}

// environment is what reaches the agent beside its own variables: a search
// path, a locale, and the variables that the operator listed by name.
func (s *Solver) environment(names []string) map[string]string {
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb", "TZ": "UTC"}
	for _, n := range append([]string{"PATH"}, names...) {
		if v, ok := s.Lookup(n); ok {
			env[n] = v
		}
	}
	return env
}

// watch ends a running attempt when a person asks to stop or the thread closes,
// and attends to what else comes after the last event that the attempt has
// seen. The caller must call end, which waits until nothing of it runs any more.
func (s *step) watch(ctx context.Context, seen int64, cancel context.CancelCauseFunc) (end func()) {
	if _, _, why := s.look(ctx, seen); why != nil {
		// It came while GitHub was told of the attempt, which may take minutes.
		cancel(why)
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	aside := *s
	var work sync.WaitGroup
	// GitHub may be slow to take an answer, and a stop must not wait for that.
	free := make(chan struct{}, 1)
	work.Go(func() {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		wanted := false
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			last, asked, why := aside.look(ctx, seen)
			if why != nil {
				cancel(why)
				return
			}
			seen, wanted = last, wanted || asked
			if !wanted || s.Forge == nil {
				continue
			}
			select {
			case free <- struct{}{}:
				wanted = false
				attendant := aside
				work.Go(func() { attendant.attend(ctx); <-free })
			default:
			}
		}
	})
	return func() { stop(); work.Wait() }
}

// look reads what came after an event. It returns the last event that it saw,
// whether something wants an answer, and why the attempt must end, if it must.
func (s *step) look(ctx context.Context, seen int64) (last int64, wanted bool, why error) {
	var events []Event
	err := within(ctx, renewTime, func(ctx context.Context) (err error) {
		events, err = s.Store.Events(ctx, s.thread, seen)
		return err
	})
	if err != nil {
		// The next look asks again; a lost store ends the lease first.
		return seen, false, nil
	}
	return s.tell(events, seen)
}

// tell is look for events that were read.
func (s *step) tell(events []Event, seen int64) (last int64, wanted bool, why error) {
	probe := State{Acts: map[string]ActState{}}
	for _, e := range events {
		if err := probe.apply(e); err != nil {
			s.log.Error().Err(err).Int64("seq", e.Seq).Msg("event cannot be read")
		}
		seen, wanted = e.Seq, wanted || asks(e)
	}
	switch {
	case probe.Stopped != "":
		why = errStopped
	case probe.Closed != "":
		why = errClosed
	}
	return seen, wanted, why
}
