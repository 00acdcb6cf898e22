package solver

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// prepare fetches the repository and its configuration. It returns a decision if no attempt can run.
func (s *step) prepare(ctx context.Context, p policy.Purpose) (*attempt.Ground, *thread.Decided, error) {
	if nothingAsked(s.pub.state) && !s.pub.state.Updates() {
		d := thread.Refuse(policy.RuleEmptyTask, "Describe what is wanted in the description, or comment /pawl solve followed by the task.",
			"the description is empty and the command says nothing")
		d.Action = policy.DoAsk
		return nil, d, nil
	}
	if err := s.pub.complete(ctx); err != nil {
		return nil, nil, err
	}
	if s.pub.state.Closed != "" {
		return nil, thread.Refuse(policy.RuleClosed, "", s.pub.state.Closed), nil
	}
	if refused := refusedPull(s.pub.state.Snapshot); refused != nil {
		return nil, refused, nil
	}
	g := s.ground()
	if p == policy.ToChange {
		g.Pins = s.pub.state.Pins()
	}
	refused, err := s.pub.solver.Host.fetch(ctx, s.pub, g)
	if err != nil || refused != nil {
		return g, s.movedRound(refused), err
	}
	switch {
	case s.pub.state.Updates():
		err = s.update(ctx, g)
	case p == policy.ToChange && s.mergesBase(g.Effective.Triggers):
		err = s.pub.solver.Host.reconcile(ctx, g)
	}
	return g, nil, err
}

// movedRound ends a round after a force-push, instead of asking users. The watch then looks at the new head.
func (s *step) movedRound(refused *thread.Decided) *thread.Decided {
	switch {
	case refused == nil, !s.pub.state.BeginsRound():
		return refused
	case refused.Rule != policy.RuleRewritten:
		return refused
	}
	moved := policy.Decision{Action: policy.DoDone, Rule: policy.RuleMoved, Reasons: policy.Because(policy.RuleMoved, refused.Reasons.Texts()...)}
	return &thread.Decided{Decision: moved, On: refused.On}
}

// refusedPull says why Pawl cannot push to a pull request's branch, or returns nil.
func refusedPull(n thread.Details) *thread.Decided {
	if !n.Pull {
		return nil
	}
	known := n.HeadRepoID != 0 && n.RepoID != 0
	if known && n.HeadRepoID != n.RepoID {
		return thread.Refuse(policy.RuleFork, "Push the branch to this repository, or describe the work in an issue.",
			"the pull request comes from a fork, and Pawl pushes only to the repository on which it is installed")
	}
	if n.HeadRef == n.DefaultBranch {
		return thread.Refuse(policy.RuleDefaultBranch, "Open the pull request from another branch.",
			"the pull request's branch is the default branch, which Pawl never pushes to")
	}
	return nil
}

func (s *step) ground() *attempt.Ground {
	return &attempt.Ground{
		Lease:      s.pub.lease,
		Log:        s.pub.log,
		Branch:     s.pub.solver.Host.branch(s.pub.state, s.pub.thread),
		Unknown:    s.pub.branchUnknown(),
		Unfinished: s.pub.state.Unfinished,
		Remote: func(ctx context.Context, renew bool) (git.Remote, error) {
			return s.pub.solver.Host.remote(ctx, s.pub, renew)
		},
	}
}

// branchUnknown reports whether an issue's log has no push to the branch.
func (p *publisher) branchUnknown() bool {
	if p.state.Snapshot.Pull {
		return false
	}
	pushes := thread.PushKey(p.solver.Host.branch(p.state, p.thread), "")
	for key := range p.state.Acts {
		if strings.HasPrefix(key, pushes) {
			return false
		}
	}
	return true
}

func nothingAsked(s thread.State) bool {
	if strings.TrimSpace(feedback.Content(s.Snapshot.Body)) != "" {
		return false
	}
	return !slices.ContainsFunc(s.Feedback, func(r thread.Request) bool {
		return r.Withdrawn == "" && strings.TrimSpace(feedback.Visible(r.Text)) != ""
	})
}

// attempt runs one attempt from checkout to push. It logs the start first, and the receipt in any case.
func (s *step) attempt(ctx context.Context, d policy.Decision, r *ready) error {
	if again, err := s.outdated(ctx, d, r.ground); again || err != nil {
		return err
	}
	a, err := s.compose(ctx, d, r)
	if err != nil || a == nil {
		return err
	}
	// Reading the discussion may take minutes under GitHub's limits.
	if err := s.pub.load(ctx); err != nil || s.pub.ended() {
		return err // the next decision handles a stop
	}
	if reserved, err := s.reserve(ctx, a); err != nil || !reserved {
		return err // if a ledger is full, the step decides again and reports it
	}
	if err := s.logStart(ctx, d, a); err != nil {
		return err
	}
	// A probe must end before the next one may begin.
	s.pub.lease.Patient(!s.probes)
	defer s.pub.lease.Patient(false)
	// The start is logged, so read the log even if the server stops now.
	logged, done := lease.AfterStop(ctx)
	err = s.pub.load(logged)
	done()
	if err != nil {
		return err
	}
	s.count(d)
	s.pub.log.Info().Int("run", a.Started.Run).Str("backend", a.Backend).Str("rule", string(d.Rule)).Strs("reasons", d.Reasons.Texts()).Msg("attempt started")
	if begins := s.pub.env.OnBegin; begins != nil {
		begins(a.Started)
	}
	s.inBackground(ctx, (*publisher).publishInBackground)
	a.State, a.Log, r.ground.Log = s.pub.state, s.pub.log, s.pub.log
	return s.finish(ctx, a, a.Run(ctx, s.pub.solver.Host.executor(a)))
}

// outdated reports whether to decide again: requests no longer count, or a merge was requested meanwhile. An error says
// why no attempt may begin now.
func (s *step) outdated(ctx context.Context, d policy.Decision, g *attempt.Ground) (bool, error) {
	if seqs := s.untriggered(g.Effective.Triggers); len(seqs) > 0 {
		// Decide again: a stop may have come meanwhile.
		ignored := thread.Withdrawn{Seqs: seqs, Reason: "the repository's configuration does not listen to this (triggers)"}
		return true, s.pub.lease.Record(ctx, thread.KindWithdrawn, ignored)
	}
	if s.pub.state.Updates() && !g.Updates {
		return true, nil // the merge was requested meanwhile
	}
	if err := s.stillAllowed(ctx, d); err != nil {
		return false, err
	}
	if s.pub.env.Closing() {
		return false, errStopping
	}
	return false, s.pub.env.Room()
}

// compose returns the attempt with its prompt, or nil if it was refused and logged.
func (s *step) compose(ctx context.Context, d policy.Decision, r *ready) (*attempt.Attempt, error) {
	plan, refused, err := s.plan(ctx, d.Purpose)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, s.pub.lease.Record(ctx, thread.KindDecision, s.seen(refused, d.Purpose))
	}
	if d.Purpose != policy.ToChange { // changes made for an answer or a plan are discarded
		r.ground.Unfinished, r.ground.Merging = nil, nil
	}
	a := s.newAttempt(s.pub.env.Begin(s.pub.thread, s.pub.state, d, r.ground), r.ground)
	a.Plan, a.Release = plan, r.release
	a.Receipt = policy.Receipt{N: a.N, Base: r.ground.Start}
	if a.NoAgent {
		return a, nil
	}
	parts, err := s.pub.discussion(ctx, s.pub.state.Work(d.Purpose))
	if err != nil {
		return nil, err
	}
	if err := r.ground.Since(ctx, parts); err != nil {
		return nil, err
	}
	context, manifest, files := attempt.Compose(parts, s.pub.Config.Context.MaxBytes)
	a.Receipt.Manifest, a.ContextFiles = manifest, files
	a.Prompt = attempt.Prompt(s.pub.thread, s.pub.state, a.Started, r.ground, context)
	a.Pictures = attempt.Pictures(parts)
	for _, part := range parts {
		a.Receipt.Open = append(a.Receipt.Open, part.Open...)
	}
	return a, nil
}

func (s *step) logStart(ctx context.Context, d policy.Decision, a *attempt.Attempt) error {
	batch := thread.Batch{Events: []thread.NewEvent{{Kind: thread.KindAttemptStarted, At: s.pub.env.Now(), Data: a.Started}}}
	if d.Lifts {
		batch.Cooldown = &thread.Cooldown{
			Backend:  a.Backend,
			Model:    a.Model,
			Effort:   a.Effort,
			Cooldown: policy.Lifted(s.pub.env.Now()),
			Thread:   s.pub.thread.String(),
		}
	}
	if err := s.pub.lease.Append(ctx, batch); err != nil {
		return err
	}
	crash.Point("attempt_logged")
	if nodes := s.pub.solver.Nodes; nodes != nil {
		if err := nodes.Began(ctx, s.pub.thread, a.Place); err != nil {
			s.pub.log.Warn().Err(err).Msg("the next attempts of this repository may begin on a node without its caches")
		}
	}
	return nil
}

func (p *publisher) publishInBackground(ctx context.Context) error {
	err := p.publish(ctx)
	if err != nil {
		p.log.Warn().Err(err).Msg("publish during the attempt")
	}
	return err
}

func (s *step) finish(ctx context.Context, a *attempt.Attempt, broke error) error {
	a.Hide()
	if err := a.Finish(ctx); err != nil || broke == nil {
		return err
	}
	if final(broke) {
		return broke // another attempt would end the same way
	}
	_, err := s.mend(ctx, broke)
	return err
}

// deliver pushes the work of an attempt that was handed over with its receipt.
func (s *step) deliver(ctx context.Context, begun thread.Attempt) error {
	a := s.newAttempt(begun.Started, s.ground())
	if begun.Decision.Round == 0 { // a round's push checks the commit on which it began
		a.Ground.Pins = s.pub.state.Pins()
	}
	refused, err := s.pub.solver.Host.fetch(ctx, s.pub, a.Ground)
	if err != nil {
		return err
	}
	if refused != nil {
		return s.interrupt(ctx, begun)
	}
	a.Seen = s.pub.state.Seq
	s.pub.lease.Patient(true)
	defer s.pub.lease.Patient(false)
	return s.finish(ctx, a, a.Deliver(ctx, s.pub.solver.Host.executor(a)))
}

func (s *step) newAttempt(begun thread.Started, g *attempt.Ground) *attempt.Attempt {
	copied := *s.pub
	a := &attempt.Attempt{
		Env: s.pub.env, Config: s.pub.Config, Thread: s.pub.thread, Started: begun, State: s.pub.state, Lease: s.pub.lease, Log: s.pub.log, Ground: g,
		SigningKey: s.pub.Config.GitHub.App.SigningKeyFile, Release: func() {},
		Allowed: func(ctx context.Context) error { return s.pub.allowedFor(ctx, begun.Decision) },
		Attend: func(ctx context.Context) {
			answering := copied
			if s.acknowledged != nil {
				if err := s.acknowledged(ctx); err != nil {
					answering.log.Warn().Err(err).Msg("acknowledge during an attempt")
				}
			}
			answering.attend(ctx)
		},
	}
	a.Author, a.Email, a.Trailer = s.pub.solver.Host.commit(s.pub.thread, s.pub.app)
	return a
}

// reserve counts an attempt in the global ledgers in a transaction, since other nodes may have started attempts.
func (s *step) reserve(ctx context.Context, a *attempt.Attempt) (bool, error) {
	now := s.pub.env.Now()
	e := thread.Entry{N: a.N, Installation: s.pub.state.Snapshot.Installation, Account: a.Account, At: now, Since: now.Add(-policy.Day)}
	return s.pub.env.Store.Reserve(ctx, s.pub.lease.Current(), e, func(u policy.Usage) bool {
		l := a.Ground.Effective.Policy
		full := func(l policy.Ledger) bool { why, _ := l.Full(); return why != "" }
		return !slices.ContainsFunc(append(l.Ledgers(u), l.Account(a.Account, u)), full)
	})
}

func (s *step) interrupt(ctx context.Context, a thread.Attempt) error {
	commit, err := s.pushed(ctx, a)
	if errors.Is(err, git.ErrUnavailable) || ctx.Err() != nil {
		return err
	}
	if err != nil {
		// Assume that nothing was pushed: the next attempt starts from the branch.
		s.pub.log.Warn().Err(err).Msg("cannot tell whether the attempt pushed its work")
	}
	s.pub.log.Warn().Str("commit", commit).Msg("attempt interrupted: the node that ran it stopped")
	cut := s.newAttempt(a.Started, s.ground())
	cut.Began, cut.Ground.Effective, cut.Ground.Start = a.At, effective(s.pub.Config, s.pub.state.Repo), a.Base
	var left *thread.Unfinished
	if a.Decision.Purpose == policy.ToChange {
		left, err = cut.Salvage(ctx)
	}
	if err != nil {
		s.pub.log.Warn().Err(err).Msg("the attempt's files could not be kept")
	}
	if commit != "" {
		left = nil // the work is on the branch
	}
	return cut.Interrupt(ctx, commit, left)
}

// pushed returns the commit that a cut-off attempt pushed, or empty. It checks the branch, since the log may lack the
// push.
func (s *step) pushed(ctx context.Context, a thread.Attempt) (string, error) {
	g, begun := s.ground(), thread.ActState{}
	for key, act := range s.pub.state.Acts {
		if !strings.HasPrefix(key, thread.PushKey(g.Branch, "")) || act.At.Before(a.At) {
			continue
		}
		if act.At.After(begun.At) {
			begun = act
		}
	}
	if begun.SHA == "" || begun.Done {
		return begun.SHA, nil
	}
	if there, err := s.pub.solver.Host.pushed(ctx, s.pub, g, begun.SHA); !there || err != nil {
		return "", err
	}
	return begun.SHA, nil
}
