package solver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/crash"
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
	s.free = sync.OnceFunc(free)
	defer s.free()
	if unheard := s.unheard(p.effective.Triggers); len(unheard) > 0 {
		// Then the decision is taken again: a stop may have come meanwhile.
		return s.record(ctx, KindWithdrawn, Withdrawn{Seqs: unheard, Reason: "the repository's configuration does not listen to this (triggers)"})
	}
	if err := s.room(); err != nil {
		return err
	}
	b := backendNamed(p.effective.Backends, d.Backend)
	start := Started{
		N: len(s.state.Attempts) + 1, Run: s.state.Run, Decision: d, Seen: s.state.Seq,
		Backend: b.Name, Account: b.Account, Kind: b.Kind, Model: b.Model, Effort: effort(b, d), Repo: p.repo,
		Context: s.state.task(s.thread).Context(),
	}
	start.Session, start.Continues = s.session(d, p)
	start.Began = s.Now()
	work := s.state.work(s.state.Seq)
	task := prompt(s.thread, s.state, d, work)
	if err := s.record(ctx, KindAttemptStarted, start); err != nil {
		return err
	}
	crash.Point("attempt_logged")
	// Who tries an account alone must not do so any more when the next one may.
	s.lease.hold(!s.tries)
	defer s.lease.hold(false)
	if err := s.load(ctx); err != nil {
		return err
	}
	s.told(d)
	s.log.Info().Int("run", start.Run).Str("backend", b.Name).Str("rule", d.Rule).Strs("reasons", d.Reasons).Msg("attempt started")
	if err := s.publish(ctx); err != nil {
		// What people see may be late; the work is not.
		s.log.Warn().Err(err).Msg("publish before the attempt")
	}
	during, end := s.span(ctx, "attempt", TraceBackend, b.Name, TraceRule, d.Rule)
	r, broke := s.execute(during, start, b, p, task)
	end(broke, TraceEnding, string(r.Ending), TraceOutcome, string(r.Outcome))
	if err := s.finish(ctx, start, s.hide(slices.Concat(b.Env, s.Config.Policy.Learning.JudgeEnv), r)); err != nil {
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
	last := s.state.Attempts[len(s.state.Attempts)-1].Receipt
	if _, err := os.Stat(s.homeOf(s.thread)); err != nil || last.Place != s.placeName() {
		return "", "a new session: the files of the last one are not on this node"
	}
	return id, why
}

// execute does the attempt and returns its receipt. What goes wrong on Pawl's
// side makes an interrupted attempt with the reason, and is the error.
func (s *step) execute(ctx context.Context, a Started, b config.Backend, p *prepared, task string) (Ended, error) {
	if s.staged != nil {
		return s.staged.execute(ctx, s, a, b, p, task)
	}
	r := Ended{N: a.N, Base: p.start, Place: s.placeName()}
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
	crash.Point("cloned")
	defer s.makeRoom()
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
	look.track.verify = p.effective.Verify
	cause, err := s.runAgent(ctx, a, b, p, ws, task, look, &r)
	s.lease.hold(true)
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
	if look.spoilt != nil {
		err := unusable(&r, look.spoilt)
		r.Outcome = policy.Outcome(r.Ending)
		return r, err
	}
	return s.settle(ctx, a, b, p, ws, task, r)
}

// settle commits what the agent left, verifies it and pushes it. Work that fails
// its verification is pushed, too: people see it in the draft pull request, and
// the next attempt starts from it.
func (s *step) settle(ctx context.Context, a Started, b config.Backend, p *prepared, ws *git.Workspace, task string, r Ended) (Ended, error) {
	err := s.commitTree(ctx, a, b, p, ws, &r)
	crash.Point("committed")
	if err == nil && r.Ending == policy.Completed && r.Commit != "" {
		r.Verify, err = s.verify(ctx, a, p, ws, s.state.about(a.Seen))
		crash.Point("verified")
	}
	if errors.Is(err, errStopped) || errors.Is(err, errClosed) {
		return cancelled(r, err), nil
	}
	if why := context.Cause(ctx); why != nil {
		return cancelled(r, why), nil
	}
	if err == nil && r.Commit != "" {
		err = s.deliver(ctx, a, p, &r)
	}
	if errors.Is(err, errStopped) || errors.Is(err, errClosed) {
		return cancelled(r, err), nil
	}
	if why := context.Cause(ctx); err != nil && why != nil {
		return cancelled(r, why), nil
	}
	if err != nil {
		return broken(r, err), err
	}
	s.judge(&r, p)
	r.Judge, err = s.askJudge(ctx, a, p, ws, task, r)
	if err != nil {
		// The work is done and pushed; only its grade is missing.
		r.Judge = &Judged{Error: err.Error()}
	}
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
