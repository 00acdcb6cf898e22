package solver

import (
	"context"
	"errors"
	"fmt"
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
		Backend: b.Name, Account: b.Account, Kind: b.Kind, Model: b.Model, Effort: effort(b, d), Repo: p.repo,
	}
	start.Session, start.Continues = s.session(d, p)
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

// effort is the effort that an attempt works with.
func effort(b config.Backend, d policy.Decision) string {
	switch {
	case d.Rung == policy.RungAnswer:
		return opposite(b)
	case d.Escalated && b.EscalatedEffort != "":
		return b.EscalatedEffort
	}
	return b.Effort
}

// opposite is the effort of the opposite thinking mode: one that thinks much for
// a backend that thinks little, and the other way round. "low" and "high" are
// known to every CLI that knows efforts.
func opposite(b config.Backend) string {
	switch b.Effort {
	case "none", "minimal", "low":
		return "high"
	}
	return "low"
}

// session is the agent's session that an attempt continues, and why it does or
// does not. Where its files are gone, as on another node, it starts afresh.
func (s *step) session(d policy.Decision, p *prepared) (id, why string) {
	f := s.state.Facts(s.Now())
	f.Limits = Limits(p.effective.Policy)
	if id, why = policy.Resume(f, d, p.start); id == "" {
		return "", why
	}
	if _, err := os.Stat(s.homeOf(s.thread)); err != nil {
		return "", "a new session: the files of the last one are not on this node"
	}
	return id, why
}

// execute does the attempt and returns its receipt. What goes wrong on Pawl's
// side makes an interrupted attempt with the reason, and is the error.
func (s *step) execute(ctx context.Context, a Started, b config.Backend, p *prepared, task string) (Ended, error) {
	r := Ended{N: a.N, Base: p.start}
	leave, err := s.rooms.enter(ctx, s.thread)
	if err != nil {
		return broken(r, err), err
	}
	defer leave()
	dir := s.attemptDir(s.thread, a.N)
	if err := s.clear(dir, a.Session != ""); err != nil {
		return broken(r, err), err
	}
	ws, err := p.cache.Checkout(ctx, git.CheckoutSpec{Commit: p.start, Dir: s.workOf(s.thread), Branch: p.branch})
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
	cause, err := s.runAgent(ctx, a, b, p, ws, task, look, &r)
	if err != nil {
		return broken(r, err), err
	}
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
	climbed(a, &r)
	return r, nil
}

// clear makes an empty folder for an attempt and removes the checkout that a
// crash left behind, and the agent's HOME unless its session goes on.
func (s *step) clear(dir string, keepHome bool) error {
	home := s.homeOf(s.thread)
	old := []string{dir, s.workOf(s.thread)}
	if !keepHome {
		old = append(old, home)
	}
	for _, path := range old {
		if err := git.Remove(path); err != nil {
			return fmt.Errorf("clear %s: %w", path, err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.MkdirAll(home, 0o700)
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
	r.CostUSD, r.Session, r.ToolCalls, r.Turns, r.Mentions = p.CostUSD, p.SessionID, p.ToolCalls, p.Turns, p.Mentions
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
	if r.Ending == policy.Completed && !progress && r.Limit != nil {
		// The agent called a refusal a success.
		r.Ending = policy.Ending(r.Limit.Kind)
	}
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
	said := r.Ending
	if r.Limit != nil && said == policy.Completed {
		said = policy.Ending(r.Limit.Kind) // the account is limited all the same
	}
	if said == policy.UsageLimit || said == policy.Auth || said == policy.Completed {
		batch.Account = a.Account
		batch.Breaker = func(b policy.Breaker) policy.Breaker { return b.After(said, r.Limit.usable(), now) }
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
