package solver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
)

// attempt runs one attempt from checkout to push. It is logged before anything
// is done, and its receipt is logged whatever happens.
func (s *step) attempt(ctx context.Context, d policy.Decision, p *prepared) error {
	free, err := s.place(ctx, d, p)
	if err != nil || free == nil {
		return err
	}
	defer free()
	if unheard := s.unheard(p.effective.Triggers); len(unheard) > 0 {
		// Then the decision is taken again: a stop may have come meanwhile.
		return s.record(ctx, KindWithdrawn, Withdrawn{Seqs: unheard, Reason: "the repository's configuration does not listen to this (triggers)"})
	}
	b := backendNamed(p.effective.Backends, d.Backend)
	start := Started{
		N: len(s.state.Attempts) + 1, Run: s.state.Run, Decision: d, Seen: s.state.Seq,
		Backend: b.Name, Account: b.Account, Kind: b.Kind, Effort: effort(b, d), Repo: p.repo,
	}
	work := s.state.work(s.state.Seq)
	task := prompt(s.thread, s.state, d, work)
	if err := s.record(ctx, KindAttemptStarted, start); err != nil {
		return err
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	s.told(d)
	s.log.Info().Int("attempt", start.N).Int("run", start.Run).Str("backend", b.Name).Str("rule", d.Rule).Strs("reasons", d.Reasons).Msg("attempt started")
	if err := s.publish(ctx); err != nil {
		// What people see may be late; the work is not.
		s.log.Warn().Err(err).Msg("publish before the attempt")
	}
	r, broke := s.execute(ctx, start, b, p, task)
	if err := s.finish(ctx, start, s.hide(b.Env, r)); err != nil {
		return err
	}
	if final(broke) {
		// Another attempt would end the same way.
		return broke
	}
	return nil
}

// unheard are the pending remarks that the repository does not listen to.
func (s *step) unheard(triggers []string) []int64 {
	var seqs []int64
	for _, r := range s.state.Pending() {
		if !policy.Heard(r.Source, policy.Command{Name: r.Command, Mention: r.Mention}, triggers) {
			seqs = append(seqs, r.Seq)
		}
	}
	return seqs
}

func backendNamed(all []config.Backend, name string) config.Backend {
	for _, b := range all {
		if b.Name == name {
			return b
		}
	}
	return config.Backend{}
}

func effort(b config.Backend, d policy.Decision) string {
	if d.Escalated && b.EscalatedEffort != "" {
		return b.EscalatedEffort
	}
	return b.Effort
}

// execute does the attempt and returns its receipt. What goes wrong on Pawl's
// side makes an interrupted attempt with the reason, and is the error.
func (s *step) execute(ctx context.Context, a Started, b config.Backend, p *prepared, task string) (Ended, error) {
	r := Ended{N: a.N, Base: p.start}
	dir := s.attemptDir(s.thread, a.N)
	if err := s.clear(dir); err != nil {
		return broken(r, err), err
	}
	ws, err := p.cache.Checkout(ctx, git.CheckoutSpec{Commit: p.start, Dir: filepath.Join(dir, workDir), Branch: p.branch})
	if err != nil {
		return broken(r, err), err
	}
	defer func() {
		if err := ws.Close(); err != nil {
			s.log.Warn().Err(err).Msg("workspace left behind")
		}
	}()
	r.StartTree, r.EndTree = ws.StartTree, ws.StartTree
	look, err := newLookout(ws.Dir, Limits(p.effective.Policy).Severity, s.Now())
	if err != nil {
		return broken(r, err), err
	}
	defer look.close()
	report, cause, err := s.runAgent(ctx, a, b, ws, dir, task, look, &r)
	if err != nil {
		return broken(r, err), err
	}
	s.receipt(&r, report, look.edits())
	if loop := (loopCut{}); errors.As(cause, &loop) {
		s.keep(ctx, a, b, p, ws, loop, &r)
		return r, nil
	}
	if cause != nil {
		return cancelled(r, cause), nil
	}
	return s.settle(ctx, a, b, p, ws, dir, r)
}

// settle commits what the agent left, verifies it and pushes it. Work that fails
// its verification is pushed, too: people see it in the draft pull request, and
// the next attempt starts from it.
func (s *step) settle(ctx context.Context, a Started, b config.Backend, p *prepared, ws *git.Workspace, dir string, r Ended) (Ended, error) {
	err := s.commitTree(ctx, a, b, p, ws, &r)
	if err == nil && r.Ending == policy.Completed && r.Commit != "" {
		r.Verify, err = s.verify(ctx, a, p.effective.Verify, ws, dir)
	}
	if errors.Is(err, errStopped) || errors.Is(err, errClosed) {
		return cancelled(r, err), nil
	}
	if why := context.Cause(ctx); why != nil {
		return cancelled(r, why), nil
	}
	if err == nil && r.Commit != "" {
		err = s.push(ctx, p, &r)
	}
	if err != nil {
		return broken(r, err), err
	}
	s.judge(&r, p)
	return r, nil
}

// clear makes an empty folder for an attempt. Of earlier ones it removes the
// homes, which were kept for looking into the agent's session, and checkouts
// that a crash left behind; transcripts stay.
func (s *step) clear(dir string) error {
	earlier, err := os.ReadDir(filepath.Dir(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clear %s: %w", filepath.Dir(dir), err)
	}
	old := []string{dir}
	for _, e := range earlier {
		for _, name := range []string{homeDir, workDir, verifyDir} {
			old = append(old, filepath.Join(filepath.Dir(dir), e.Name(), name))
		}
	}
	for _, path := range old {
		if err := git.Remove(path); err != nil {
			return fmt.Errorf("clear %s: %w", path, err)
		}
	}
	return os.MkdirAll(filepath.Join(dir, homeDir), 0o700)
}

// broken is the receipt of an attempt that Pawl itself could not carry through.
func broken(r Ended, err error) Ended {
	r.Outcome, r.Detail = policy.Interrupted, err.Error()
	r.Reasons = append(r.Reasons, "Pawl could not carry the attempt through: "+err.Error())
	return r
}

// The causes for which a running attempt is ended.
var (
	errStopped  = errors.New("a person asked to stop")
	errClosed   = errors.New("the thread was closed")
	errShutdown = errors.New("the server is stopping")
)

// cancelled is the receipt of an attempt that was ended from outside.
func cancelled(r Ended, cause error) Ended {
	r.Outcome = policy.Cancelled
	if !errors.Is(cause, errStopped) && !errors.Is(cause, errClosed) {
		r.Outcome = policy.Interrupted
		cause = errShutdown
	}
	if r.Ending != policy.UsageLimit && r.Ending != policy.Auth {
		// What the provider said of the account counts whatever ended the
		// attempt.
		r.Ending = policy.Killed
	}
	r.Detail = cause.Error()
	r.Reasons = append(r.Reasons, cause.Error())
	return r
}

// receipt takes over what the stream told.
func (s *step) receipt(r *Ended, p agent.Report, edits policy.Edits) {
	r.Ending = policy.Ending(p.Ending)
	r.Reasons = p.Reasons
	r.Edits = edits
	r.Final = tail(p.FinalMessage, maxOutput)
	r.Detail = tail(oneLine(p.Failure), 500)
	r.Tokens = Tokens(p.Tokens)
	r.CostUSD, r.Session, r.ToolCalls, r.Mentions = p.CostUSD, p.SessionID, p.ToolCalls, p.Mentions
	r.Exit, r.AgentMS = p.Exit.Code, p.Duration.Milliseconds()
	r.Evidence = policy.Fingerprint(p.Evidence())
	if p.Limit != nil {
		r.Limit = &Limit{Kind: string(p.Limit.Kind), Message: tail(p.Limit.Message, 2000), Source: p.Limit.Source}
		if p.Limit.ResetsAt != nil {
			r.Limit.ResetsAt = *p.Limit.ResetsAt
		}
	}
}

// judge says what the attempt came to.
func (s *step) judge(r *Ended, p *prepared) {
	progress := policy.Progress(r.StartTree, r.EndTree)
	failing := false
	for _, v := range r.Verify {
		if !v.Passed {
			failing = true
			r.Evidence = policy.Fingerprint(v.Output)
			r.Tests = policy.FailingTests(v.Output)
			if r.Detail == "" {
				r.Detail = tail(fmt.Sprintf("%s: exit code %d", oneLine(v.Command), v.Exit), 500)
			}
		}
	}
	loop := Limits(p.effective.Policy).Severity.Judge(r.Edits).Class != policy.None
	switch {
	case r.Ending != policy.Completed && loop:
		r.Outcome = policy.EditLoop
	case r.Ending != policy.Completed:
		r.Outcome = policy.Outcome(r.Ending)
	case loop:
		r.Outcome = policy.EditLoop
	case !progress:
		r.Outcome = policy.NoChange
	case failing:
		r.Outcome = policy.VerifyFailed
	default:
		r.Outcome = policy.Edited
	}
}

// finish logs the receipt together with what it means for the account and the
// backend. It is written also while the process stops.
func (s *step) finish(ctx context.Context, a Started, r Ended) error {
	if errors.Is(context.Cause(ctx), ErrLeaseLost) {
		return ErrLeaseLost
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeoutAfterStop)
	defer cancel()
	now := s.Now()
	batch := Batch{Events: []NewEvent{{Kind: KindAttemptEnded, At: now, Data: r}}}
	if r.Ending == policy.UsageLimit || r.Ending == policy.Auth || r.Ending == policy.Completed {
		batch.Account = a.Account
		batch.Breaker = func(b policy.Breaker) policy.Breaker { return b.After(r.Ending, r.Limit.usable(), now) }
	}
	if v := Limits(s.Config.Policy).Severity.Judge(r.Edits); r.Outcome == policy.EditLoop && v.Class != policy.None {
		batch.Cooldown = &Cooldown{Backend: a.Backend, Class: string(v.Class), Until: now.Add(v.Cooldown), Thread: s.thread.String()}
	}
	if seqs := s.agentWroteMeanwhile(a, r); len(seqs) > 0 {
		batch.Events = append(batch.Events, NewEvent{Kind: KindWithdrawn, At: now,
			Data: Withdrawn{Seqs: seqs, Reason: "the agent wrote it itself during the attempt: its text stands in the transcript"}})
	}
	s.log.Info().Int("attempt", a.N).Str("ending", string(r.Ending)).Str("outcome", string(r.Outcome)).
		Bool("progress", policy.Progress(r.StartTree, r.EndTree)).Str("commit", r.Commit).Str("detail", r.Detail).Msg("attempt ended")
	if err := s.append(ctx, batch); err != nil {
		return err
	}
	if s.OnAttempt != nil {
		s.OnAttempt(a.Backend, r.Ending, r.Outcome)
	}
	return nil
}
