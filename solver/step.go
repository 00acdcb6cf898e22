package solver

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// step is one holder of a thread's lease at work.
type step struct {
	pub      *publisher
	beside   sync.WaitGroup // what is told to people while the step goes on
	next     time.Time      // when a wait without an end is looked at again
	checksAt time.Time      // when the checks of the head are looked at again; zero for never
	waited   bool           // for a slot, in vain
	probes   bool           // the attempt is a probe of an account that was limited
	// acknowledged waits until users know that they were heard; nil where nobody is told.
	acknowledged func(context.Context) error
}

// progress says how a stage left the thread.
type progress int

const (
	nothing  progress = iota // there was nothing to do; the next stage is tried
	changed                  // the log has changed; the step begins anew
	finished                 // nothing is left to do for now
)

// stages are what a step may have to do, in the order in which they are tried. What is owed to people and to the log
// comes before new work.
func (s *step) stages() []func(context.Context) (progress, error) {
	return []func(context.Context) (progress, error){
		s.endRunning,
		s.dropUnfinished,
		s.greet,
		s.learn,
		s.answerQuestion,
		s.offerPull,
		s.lookAtChecks,
		s.rest,
		s.work,
	}
}

// effect carries out the first stage that has something to do. It reports whether there may be another effect.
func (s *step) effect(ctx context.Context) (again bool, err error) {
	s.pub.Config = s.pub.env.Current()
	if err := s.pub.load(ctx); err != nil {
		return false, s.pub.unread(ctx, err)
	}
	// After the log: what becomes of an error depends on it.
	if err := s.pub.reach(ctx); err != nil {
		return false, err
	}
	defer s.beside.Wait()
	for _, stage := range s.stages() {
		done, err := stage(ctx)
		if err != nil {
			return false, err
		}
		if done != nothing {
			return done == changed, nil
		}
	}
	return false, nil
}

// endRunning ends an attempt that was cut off with the process that ran it. What it had finished is delivered.
func (s *step) endRunning(ctx context.Context) (progress, error) {
	a, running := s.pub.state.Running()
	if !running {
		return nothing, nil
	}
	if s.delivers() {
		return changed, s.deliver(ctx, a)
	}
	return changed, s.interrupt(ctx, a)
}

// delivers reports whether the running attempt was handed over with its receipt, and nobody has ended the work since.
func (s *step) delivers() bool {
	u := s.pub.state.Unfinished
	if u == nil || u.Receipt == nil {
		return false
	}
	return !s.pub.ended()
}

// dropUnfinished removes the reference of unfinished work at GitHub that was continued or given up.
func (s *step) dropUnfinished(ctx context.Context) (progress, error) {
	if s.pub.state.Unfinished != nil || s.pub.state.Acts[thread.ActUnfinished].SHA == "" {
		return nothing, nil
	}
	if err := s.ground().Drop(ctx, s.pub.env, s.pub.thread); err != nil {
		s.pub.log.Warn().Err(err).Msg("the reference of unfinished work stays until the thread's next step")
	}
	return nothing, s.pub.load(ctx)
}

// greet acknowledges what was asked in the background, so that no agent waits for it. An error counts where there is
// no agent.
func (s *step) greet(ctx context.Context) (progress, error) {
	s.acknowledged = s.aside(ctx, (*publisher).acknowledge)
	return nothing, nil
}

func (s *step) answerQuestion(ctx context.Context) (progress, error) {
	asked := s.pub.questions()
	if len(asked) == 0 {
		return nothing, nil
	}
	if err := s.acknowledged(ctx); err != nil {
		return nothing, err
	}
	return changed, s.pub.answer(ctx, asked[0])
}

// offerPull opens the pull request for what was pushed. What GitHub refuses once the run has ended stays refused.
func (s *step) offerPull(ctx context.Context) (progress, error) {
	err := s.pub.openPull(ctx)
	if err == nil {
		return nothing, nil
	}
	if final(err) && !s.pub.state.Open() {
		return nothing, nil
	}
	return nothing, fmt.Errorf("open the pull request: %w", err)
}

// lookAtChecks looks at the checks of others on the head once they are over.
func (s *step) lookAtChecks(ctx context.Context) (progress, error) {
	logged, next, err := s.look(ctx)
	s.checksAt = next
	if logged {
		return changed, err
	}
	return nothing, err
}

// rest is for a thread on which nothing is asked: its base may have moved, threads of remarks may be resolved.
func (s *step) rest(ctx context.Context) (progress, error) {
	if s.pub.state.Open() {
		return nothing, nil
	}
	asked, due, err := s.follow(ctx)
	if err != nil {
		return nothing, err
	}
	if asked {
		return changed, nil
	}
	if err := s.show(ctx); err != nil {
		return nothing, err
	}
	again, err := s.resolve(ctx)
	if err != nil {
		return nothing, err
	}
	next := earliest(s.checksAt, due, again)
	if next.IsZero() {
		return finished, nil
	}
	return finished, s.pub.lease.Append(ctx, thread.Batch{WakeAt: next})
}

// earliest is the first of some times; zero ones do not count.
func earliest(times ...time.Time) time.Time {
	times = slices.DeleteFunc(times, time.Time.IsZero)
	if len(times) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(times, time.Time.Compare)
}

// work decides what to do next, and does or records it.
func (s *step) work(ctx context.Context) (progress, error) {
	d, ready, err := s.decide(ctx)
	switch {
	case err != nil:
		return nothing, err
	case ready != nil:
		defer ready.release()
		return changed, s.attempt(ctx, d.Decision, ready)
	case d == nil:
		return changed, nil
	case s.waitsBy(d):
		// The wake-up is armed again: it may have been this one.
		if err := s.pub.lease.Append(ctx, thread.Batch{WakeAt: s.wakeAt(*d)}); err != nil {
			return nothing, err
		}
		return finished, s.show(ctx)
	}
	return changed, s.record(ctx, d)
}

// waitsBy reports whether a decision is the wait with which the log already ends.
func (s *step) waitsBy(d *thread.Decided) bool {
	if d.Action != policy.DoWait || s.pub.state.Decision == nil {
		return false
	}
	if !same(*s.pub.state.Decision, *d) {
		return false
	}
	return !d.Until.IsZero() || s.awaits(d.Rule)
}

func (s *step) record(ctx context.Context, d *thread.Decided) error {
	if needsPerson(s.pub.state, d) {
		d.Like = s.like(ctx)
	}
	s.pub.log.Info().Str("action", string(d.Action)).Str("rule", string(d.Rule)).Strs("reasons", d.Reasons.Texts()).Msg("decided")
	event := thread.NewEvent{Kind: thread.KindDecision, At: s.pub.env.Now(), Data: d}
	if err := s.pub.lease.Append(ctx, thread.Batch{WakeAt: s.wakeAt(*d), Events: []thread.NewEvent{event}}); err != nil {
		return err
	}
	crash.Point("decided")
	s.count(d.Decision)
	return s.shortWait(ctx, d.Decision)
}

// show publishes how the thread stands, once those who are heard know it.
func (s *step) show(ctx context.Context) error {
	if err := s.acknowledged(ctx); err != nil {
		return err
	}
	return s.pub.publish(ctx)
}

// aside tells people something while the step goes on: a copy of its publisher does
// it, with acts of its own. The function that it returns waits for it.
func (s *step) aside(ctx context.Context, do func(*publisher, context.Context) error) (wait func(context.Context) error) {
	p, done := *s.pub, make(chan struct{})
	p.state.Acts = maps.Clone(p.state.Acts)
	var err error
	s.beside.Go(func() {
		defer close(done)
		err = do(&p, ctx)
	})
	return func(ctx context.Context) error {
		select {
		case <-done:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// shortWait sits out a wait of a few seconds. It is stored like every other, and
// the queue would end it too, up to a second later.
func (s *step) shortWait(ctx context.Context, d policy.Decision) error {
	if d.Action != policy.DoWait || d.Until.IsZero() {
		return nil
	}
	left := d.Until.Sub(s.pub.env.Now())
	if left > maxShortWait {
		return nil
	}
	return wait.For(ctx, left)
}

// maxShortWait is the wait that a step sits out itself.
const maxShortWait = 5 * time.Second

func (s *step) count(d policy.Decision) {
	if s.pub.solver.OnDecision != nil {
		s.pub.solver.OnDecision(d.Rule, d.Action)
	}
}

func same(a, b thread.Decided) bool {
	if a.Action != b.Action || a.Rule != b.Rule {
		return false
	}
	return a.Until.Equal(b.Until) && reflect.DeepEqual(a.Reasons, b.Reasons)
}

// ready is what an attempt starts with: the repository and a slot, which release gives back.
type ready struct {
	ground  *attempt.Ground
	release func()
}

// decide asks policy with what is known. Before an attempt it fetches the repository, whose configuration may
// narrow the answer, and has policy confirm it. Nothing at all means that the decision has to be taken again.
func (s *step) decide(ctx context.Context) (*thread.Decided, *ready, error) {
	facts, err := s.facts(ctx, effective(s.pub.Config, s.pub.state.Repo))
	if err != nil {
		return nil, nil, err
	}
	first := policy.Next(facts)
	if first.Action != policy.DoAttempt {
		return &thread.Decided{Decision: first, Seen: s.pub.state.Seq}, nil, nil
	}
	account, most := entry(facts, first)
	wait, err := s.mayAcquire(ctx, account, most)
	if err != nil {
		return nil, nil, err
	}
	if wait != nil {
		return s.seen(wait, first.Purpose), nil, nil
	}
	asked := s.pub.state.Pending()
	ground, refused, err := s.prepare(ctx, first.Purpose)
	if err != nil {
		return nil, nil, err
	}
	if refused != nil {
		return s.seen(refused, first.Purpose), nil, nil
	}
	if len(s.pub.state.Pending()) < len(asked) { // what was asked for is done already
		return nil, nil, nil
	}
	return s.agree(ctx, ground, first, account, most)
}

// agree acquires a slot for what policy wants, and asks policy again with what is known then, until the answer fits the
// slot. most is how many attempts may run on the account.
func (s *step) agree(ctx context.Context, ground *attempt.Ground, want policy.Decision, account string, most int) (*thread.Decided, *ready, error) {
	for {
		release, err := s.acquire(ctx, account, most)
		if err != nil || release == nil {
			return nil, nil, err
		}
		now, bound, err := s.confirm(ctx, ground, want)
		if err != nil || now.Action != policy.DoAttempt {
			release()
			return now, nil, err
		}
		sameWork := now.Backend == want.Backend && now.Purpose == want.Purpose
		if sameWork && (bound == 0 || bound == most) {
			return now, &ready{ground, release}, nil
		}
		release()
		want = now.Decision
		account, most = attempt.BackendNamed(ground.Effective.Backends, want.Backend).Account, bound
	}
}

// confirm has the base verified, and asks policy with that and with what has come meanwhile: a stop above all, and a
// limit that another thread met on the account. bound is how many attempts may run on the account of the answer's backend.
func (s *step) confirm(ctx context.Context, ground *attempt.Ground, want policy.Decision) (now *thread.Decided, bound int, err error) {
	trial := s.newAttempt(thread.Started{Seen: s.pub.state.Seq, Decision: want}, ground)
	refused, err := s.pub.solver.Host.verifyBase(ctx, trial)
	if err != nil {
		return nil, 0, err
	}
	if refused != nil {
		return s.seen(refused, want.Purpose), 0, nil
	}
	return s.decideOn(ctx, ground)
}

// seen has a decision, if there is one, take all into account that the step has read, about the work for a purpose.
func (s *step) seen(d *thread.Decided, p policy.Purpose) *thread.Decided {
	if d != nil {
		d.Seen, d.Purpose = s.pub.state.Seq, p
	}
	return d
}

// needsPerson reports whether a decision stops the work after an attempt, so that a person must act.
func needsPerson(s thread.State, d *thread.Decided) bool {
	if d == nil || d.Action != policy.DoStop {
		return false
	}
	if d.Failed || d.Rule == policy.RulePaused {
		return false
	}
	if len(s.Attempts) == 0 {
		return false
	}
	return !ended(s)
}

// like names an open thread of the repository that stopped on a task of nearly the same words, the one of
// late first; empty for none. It helps people and decides nothing, so what cannot be read is left out.
func (s *step) like(ctx context.Context) string {
	near, err := s.pub.env.Store.Near(ctx, s.pub.thread)
	if err != nil {
		s.pub.log.Warn().Err(err).Msg("other threads cannot be read; none is named")
	}
	for _, n := range near {
		_, other, err := thread.Load(ctx, s.pub.env.Store, n)
		if err != nil || other.Open() || !needsPerson(other, other.Decision) {
			continue
		}
		if policy.SaysAgain(s.pub.state.Begun(), other.Begun()) {
			return fmt.Sprintf("like #%d, which stopped because %s", n.Number, other.Decision.Reasons)
		}
	}
	return ""
}

// decideOn asks policy with all that is known once the repository is there. bound is
// how many attempts may run on the account of the backend that was chosen.
func (s *step) decideOn(ctx context.Context, g *attempt.Ground) (_ *thread.Decided, bound int, err error) {
	if err := s.pub.load(ctx); err != nil {
		return nil, 0, err
	}
	f, err := s.facts(ctx, g.Effective)
	if err != nil {
		return nil, 0, err
	}
	untriggered := s.untriggered(g.Effective.Triggers)
	before := g.Before
	if len(s.pub.solver.Verify) > 0 { // where no comment can ask for the first test, or a build that works, in spite of it
		before = slices.DeleteFunc(slices.Clone(before), func(v policy.Verified) bool { return v.NoTests })
	}
	f.Unable = policy.Unable(before)
	f.Fresh = slices.DeleteFunc(f.Fresh, func(r policy.Request) bool { return slices.Contains(untriggered, r.Seq) })
	d := policy.Next(f)
	_, bound = entry(f, d)
	decided := &thread.Decided{Decision: d, Seen: s.pub.state.Seq}
	if d.Rule == policy.RuleVerifyBroken {
		decided.On = g.From
	}
	return decided, bound, nil
}

// untriggered are the pending remarks that the repository's configuration does not listen to.
func (s *step) untriggered(triggers []string) []int64 {
	var seqs []int64
	for _, r := range s.pub.state.Pending() {
		if !feedback.Triggers(r.Source, feedback.Command{Name: r.Command, Mention: r.Mention}, triggers) {
			seqs = append(seqs, r.Seq)
		}
	}
	return seqs
}

// effective is the configuration for a thread whose repository has one of its own.
func effective(server *config.Server, repo config.Repo) config.Effective {
	e, problems := server.Narrow(repo)
	if len(problems) > 0 {
		// The server's configuration changed under a recorded narrowing.
		e, _ = server.Narrow(config.Repo{})
	}
	return e
}

func (s *step) facts(ctx context.Context, e config.Effective) (policy.Facts, error) {
	now := s.pub.env.Now()
	f := s.pub.state.Facts(now)
	f.Limits = e.Policy.Limits
	repoLog, err := s.pub.env.Store.Events(ctx, thread.RepoLog(s.pub.thread.Owner, s.pub.thread.Name), 0)
	if err != nil {
		return f, err
	}
	switch by, err := thread.Paused(repoLog); {
	case e.Policy.Paused:
		f.Paused = "the operator paused Pawl (policy.paused)"
	case err != nil:
		return f, fmt.Errorf("what was done to %s: %w", s.pub.thread.Repo(), err)
	case by != nil:
		f.Paused = fmt.Sprintf("%s paused %s %s", by.By, s.pub.thread.Repo(), by.Where)
	}
	breakers, err := s.pub.env.Store.Breakers(ctx)
	if err != nil {
		return f, fmt.Errorf("breakers: %w", err)
	}
	rests, err := s.pub.solver.rests(ctx, s.pub.thread.Repo(), e.Policy.Severity.CooldownScope, now)
	if err != nil {
		return f, err
	}
	if f.Choose, err = s.choice(ctx, e); err != nil {
		return f, err
	}
	used, err := s.pub.env.Store.Usage(ctx, s.pub.thread.Repo(), s.pub.state.Snapshot.Installation, now.Add(-policy.Day))
	if err != nil {
		return f, err
	}
	if u := s.pub.state.Unfinished; u != nil && u.Times > 0 { // the attempt that goes on is counted already
		used = used.Without(attempt.BackendNamed(e.Backends, u.Backend).Account)
	}
	f.Above = f.Limits.Ledgers(used)
	for _, b := range e.Backends {
		arm := policy.Backend{Name: b.Name, Account: b.Account, CanEscalate: b.EscalatedEffort != "", Breaker: breakers[b.Account].For(s.pub.thread.String()),
			Day: f.Limits.Account(b.Account, used)}
		if arm.Rest = rests(b, b.Effort); arm.CanEscalate {
			arm.Escalated = rests(b, b.EscalatedEffort)
		}
		f.Backends = append(f.Backends, arm)
	}
	return f, nil
}
