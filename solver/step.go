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
	*publisher
	beside sync.WaitGroup // what is told to people while the step goes on
	next   time.Time      // when a wait without an end is looked at again
	waited bool           // for a place, in vain
	tries  bool           // the attempt tries an account that was limited, alone
	// acknowledged waits until those who are heard know it; nil where nobody is told.
	acknowledged func(context.Context) error
}

// effect does one effect. It reports whether there may be another one.
func (s *step) effect(ctx context.Context) (again bool, err error) {
	s.Config = s.Current()
	if err := s.load(ctx); err != nil {
		return false, err
	}
	// After the log: what becomes of an error depends on it.
	if err := s.reach(ctx); err != nil {
		return false, err
	}
	if a, running := s.state.Running(); running {
		if u := s.state.Unfinished; u != nil && u.Receipt != nil && s.state.Stopped == "" && s.state.Closed == "" {
			return true, s.deliver(ctx, a)
		}
		return true, s.interrupt(ctx, a)
	}
	if err := dropUnfinished(ctx, s); err != nil {
		return false, err
	}
	// The agent does not wait for it. What it ended with counts where there is none.
	defer s.beside.Wait()
	s.acknowledged = s.aside(ctx, (*publisher).acknowledge)
	if err := s.learn(ctx); err != nil {
		return false, err
	}
	if asked := s.questions(); len(asked) > 0 {
		if err := s.acknowledged(ctx); err != nil {
			return false, err
		}
		return true, s.answer(ctx, asked[0])
	}
	if err := openPull(ctx, s.publisher); err != nil && (s.state.Open() || !final(err)) {
		return false, fmt.Errorf("open the pull request: %w", err)
	}
	looked, next, err := s.look(ctx)
	if looked || err != nil {
		return looked, err
	}
	if !s.state.Open() {
		return s.rest(ctx, next)
	}
	d, ready, err := s.decide(ctx)
	switch {
	case err != nil:
		return false, err
	case ready != nil:
		defer ready.free()
		return true, s.attempt(ctx, d.Decision, ready)
	case d == nil:
		return true, nil
	case d.Action == policy.DoWait && s.state.Decision != nil && same(*s.state.Decision, *d) && (!d.Until.IsZero() || s.awaits(d.Rule)):
		// The wake-up is armed again: it may have been this one.
		if err := s.lease.Append(ctx, thread.Batch{WakeAt: s.wakeAt(*d)}); err != nil {
			return false, err
		}
		return false, s.show(ctx)
	}
	if needsPerson(s.state, d) {
		d.Like = s.like(ctx)
	}
	s.log.Info().Str("action", string(d.Action)).Str("rule", string(d.Rule)).Strs("reasons", d.Reasons.Texts()).Msg("decided")
	if err := s.lease.Append(ctx, thread.Batch{WakeAt: s.wakeAt(*d), Events: []thread.NewEvent{{Kind: thread.KindDecision, At: s.Now(), Data: d}}}); err != nil {
		return false, err
	}
	crash.Point("decided")
	s.count(d.Decision)
	return true, s.shortWait(ctx, d.Decision)
}

// dropUnfinished removes the reference of unfinished work at GitHub that is gone on with or given up.
func dropUnfinished(ctx context.Context, s *step) error {
	if s.state.Unfinished != nil || s.state.Acts[thread.ActUnfinished].SHA == "" {
		return nil
	}
	if err := s.ground().Drop(ctx, &s.Env, s.thread); err != nil {
		s.log.Warn().Err(err).Msg("the reference of unfinished work stays until the thread's next step")
	}
	return s.load(ctx)
}

// rest is for a thread on which nothing is asked: its base may have moved, threads of remarks may be resolved. next is when its checks are looked at again,
// zero for never.
func (s *step) rest(ctx context.Context, next time.Time) (effect bool, err error) {
	asked, due, err := s.follow(ctx)
	if asked || err != nil {
		return asked, err
	}
	if err := s.show(ctx); err != nil {
		return false, err
	}
	again, err := resolve(ctx, s)
	if err != nil {
		return false, err
	}
	for _, t := range []time.Time{due, again} {
		if next.IsZero() || !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	if next.IsZero() {
		return false, nil
	}
	return false, s.lease.Append(ctx, thread.Batch{WakeAt: next})
}

// show publishes how the thread stands, once those who are heard know it.
func (s *step) show(ctx context.Context) error {
	if err := s.acknowledged(ctx); err != nil {
		return err
	}
	return publish(ctx, s.publisher)
}

// aside tells people something while the step goes on: a copy of its publisher does
// it, with acts of its own. The function that it returns waits for it.
func (s *step) aside(ctx context.Context, do func(*publisher, context.Context) error) (wait func(context.Context) error) {
	p, done := *s.publisher, make(chan struct{})
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
	left := d.Until.Sub(s.Now())
	if d.Action != policy.DoWait || d.Until.IsZero() || left > maxShortWait {
		return nil
	}
	return wait.For(ctx, left)
}

// maxShortWait is the wait that a step sits out itself.
const maxShortWait = 5 * time.Second

func (s *step) count(d policy.Decision) {
	if s.OnDecision != nil {
		s.OnDecision(d.Rule, d.Action)
	}
}

func same(a, b thread.Decided) bool {
	return a.Action == b.Action && a.Rule == b.Rule && a.Until.Equal(b.Until) && reflect.DeepEqual(a.Reasons, b.Reasons)
}

// ready is what an attempt starts with: the repository and a place among those
// that run, which free gives back.
type ready struct {
	ground *attempt.Ground
	free   func()
}

// decide asks policy with what is known. Before an attempt it fetches the repository, whose configuration may
// narrow the answer, takes a place, has the base verified, and asks once more with what has come until then.
// Nothing at all means that the decision has to be taken again.
func (s *step) decide(ctx context.Context) (*thread.Decided, *ready, error) {
	facts, err := s.facts(ctx, effective(s.Config, s.state.Repo))
	if err != nil {
		return nil, nil, err
	}
	first := policy.Next(facts)
	if first.Action != policy.DoAttempt {
		return &thread.Decided{Decision: first, Seen: s.state.Seq}, nil, nil
	}
	account, most := entry(facts, first)
	if wait, err := s.turn(ctx, account, most); wait != nil || err != nil {
		return s.seen(wait, first.Purpose), nil, err
	}
	asked := s.state.Pending()
	ground, refused, err := s.prepare(ctx, first.Purpose)
	if refused != nil || err != nil {
		return s.seen(refused, first.Purpose), nil, err
	}
	if len(s.state.Pending()) < len(asked) { // what was asked for is done already
		return nil, nil, nil
	}
	for want := first; ; {
		free, err := s.place(ctx, account, most)
		if err != nil || free == nil {
			return nil, nil, err
		}
		refused, err := s.Host.verifyBase(ctx, s.newAttempt(thread.Started{Seen: s.state.Seq, Decision: want}, ground))
		if err != nil || refused != nil {
			free()
			return s.seen(refused, want.Purpose), nil, err
		}
		// What came meanwhile counts, too: a stop above all, and a limit that another
		// thread met on the account.
		now, bound, err := s.decideOn(ctx, ground)
		if err != nil || now.Action != policy.DoAttempt {
			free()
			return now, nil, err
		}
		if now.Backend == want.Backend && now.Purpose == want.Purpose && (bound == 0 || bound == most) {
			return now, &ready{ground, free}, nil
		}
		free()
		want = now.Decision
		account, most = attempt.BackendNamed(ground.Effective.Backends, want.Backend).Account, bound
	}
}

// seen has a decision, if there is one, take all into account that the step has read, about the work for a purpose.
func (s *step) seen(d *thread.Decided, p policy.Purpose) *thread.Decided {
	if d != nil {
		d.Seen, d.Purpose = s.state.Seq, p
	}
	return d
}

// needsPerson reports whether a decision stops the work after an attempt, so that a person must act.
func needsPerson(s thread.State, d *thread.Decided) bool {
	return d != nil && d.Action == policy.DoStop && !d.Failed && len(s.Attempts) > 0 && s.Closed == "" && s.Stopped == "" && d.Rule != policy.RulePaused
}

// like names an open thread of the repository that stopped on a task of nearly the same words, the one of
// late first; empty for none. It helps people and decides nothing, so what cannot be read is left out.
func (s *step) like(ctx context.Context) string {
	near, err := s.Store.Near(ctx, s.thread)
	if err != nil {
		s.log.Warn().Err(err).Msg("other threads cannot be read; none is named")
	}
	for _, n := range near {
		_, other, err := thread.Load(ctx, s.Store, n)
		if d := other.Decision; err == nil && !other.Open() && needsPerson(other, d) && policy.SaysAgain(thread.Begun(s.state), thread.Begun(other)) {
			return fmt.Sprintf("like #%d, which stopped because %s", n.Number, d.Reasons)
		}
	}
	return ""
}

// decideOn asks policy with all that is known once the repository is there. bound is
// how many attempts may run on the account of the backend that was chosen.
func (s *step) decideOn(ctx context.Context, g *attempt.Ground) (_ *thread.Decided, bound int, err error) {
	if err := s.load(ctx); err != nil {
		return nil, 0, err
	}
	f, err := s.facts(ctx, g.Effective)
	if err != nil {
		return nil, 0, err
	}
	untriggered := s.untriggered(g.Effective.Triggers)
	before := g.Before
	if len(s.Verify) > 0 { // where no comment can ask for the first test, or a build that works, in spite of it
		before = slices.DeleteFunc(slices.Clone(before), func(v policy.Verified) bool { return v.NoTests })
	}
	f.Unable = policy.Unable(before)
	f.Fresh = slices.DeleteFunc(f.Fresh, func(t policy.Trigger) bool { return slices.Contains(untriggered, t.Seq) })
	d := policy.Next(f)
	_, bound = entry(f, d)
	decided := &thread.Decided{Decision: d, Seen: s.state.Seq}
	if d.Rule == policy.RuleVerifyBroken {
		decided.On = g.From
	}
	return decided, bound, nil
}

// untriggered are the pending remarks that the repository's configuration does not listen to.
func (s *step) untriggered(triggers []string) []int64 {
	var seqs []int64
	for _, r := range s.state.Pending() {
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
	now := s.Now()
	f := s.state.Facts(now)
	f.Limits = e.Policy.Limits
	repoLog, err := s.Store.Events(ctx, thread.RepoLog(s.thread.Owner, s.thread.Name), 0)
	if err != nil {
		return f, err
	}
	switch by, err := thread.Paused(repoLog); {
	case e.Policy.Paused:
		f.Paused = "the operator paused Pawl (policy.paused)"
	case err != nil:
		return f, fmt.Errorf("what was done to %s: %w", s.thread.Repo(), err)
	case by != nil:
		f.Paused = fmt.Sprintf("%s paused %s %s", by.By, s.thread.Repo(), by.Where)
	}
	breakers, err := s.Store.Breakers(ctx)
	if err != nil {
		return f, fmt.Errorf("breakers: %w", err)
	}
	rests, err := s.rests(ctx, s.thread.Repo(), e.Policy.Severity.CooldownScope, now)
	if err != nil {
		return f, err
	}
	if f.Choose, err = s.choice(ctx, e); err != nil {
		return f, err
	}
	used, err := s.Store.Usage(ctx, s.thread.Repo(), s.state.Snapshot.Installation, now.Add(-policy.Day))
	if err != nil {
		return f, err
	}
	if u := s.state.Unfinished; u != nil && u.Times > 0 { // the attempt that goes on is counted already
		used = used.Without(attempt.BackendNamed(e.Backends, u.Backend).Account)
	}
	f.Above = f.Limits.Ledgers(used)
	for _, b := range e.Backends {
		arm := policy.Backend{Name: b.Name, Account: b.Account, CanEscalate: b.EscalatedEffort != "", Breaker: breakers[b.Account].For(s.thread.String()),
			Day: f.Limits.Account(b.Account, used)}
		if arm.Rest = rests(b, b.Effort); arm.CanEscalate {
			arm.Escalated = rests(b, b.EscalatedEffort)
		}
		f.Backends = append(f.Backends, arm)
	}
	return f, nil
}
