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

// step is the work of one holder of a thread's lease.
type step struct {
	pub        *publisher
	background sync.WaitGroup // writes to GitHub in the background
	next       time.Time      // when to look again at a wait without an end
	checksAt   time.Time      // when to look again at the head's checks; zero for never
	lookAgain  time.Time      // when to look again at a watched head or its base; zero for never
	waited     bool           // no slot became free in time
	place      string         // the labels that the attempt needs; see policy.PlaceOf
	placed     bool           // the log has the place
	probes     bool           // the attempt is a probe of a limited account
	// acknowledged waits for the acknowledgements; nil for none.
	acknowledged func(context.Context) error
}

// progress says how a stage left the thread.
type progress int

const (
	nothing  progress = iota // nothing to do; the next stage is tried
	changed                  // the log has changed; the step starts again
	finished                 // nothing left to do for now
)

// stages lists what a step may do, in order. Outstanding replies and log entries come before new work.
func (s *step) stages() []func(context.Context) (progress, error) {
	return []func(context.Context) (progress, error){
		s.endRunning,
		s.dropUnfinished,
		s.leave,
		s.greet,
		s.learn,
		s.answerQuestion,
		s.offerPull,
		s.watch,
		s.lookAtChecks,
		s.idle,
		s.work,
	}
}

// effect runs the first stage that has something to do. It reports whether another effect may follow.
func (s *step) effect(ctx context.Context) (again bool, err error) {
	s.pub.Config = s.pub.env.Current()
	if err := s.pub.load(ctx); err != nil {
		return false, err
	}
	// Load the log first: it decides how an error is handled.
	if err := s.pub.reach(ctx); err != nil {
		return false, err
	}
	defer s.background.Wait()
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

// endRunning ends an attempt that was cut off with its process. Finished work is delivered.
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

// delivers reports whether the running attempt was handed over with its receipt and the work was not ended since.
func (s *step) delivers() bool {
	u := s.pub.state.Unfinished
	if u == nil || u.Receipt == nil {
		return false
	}
	return !s.pub.ended()
}

// dropUnfinished removes GitHub's reference to unfinished work that was continued or given up.
func (s *step) dropUnfinished(ctx context.Context) (progress, error) {
	if s.pub.state.Unfinished != nil || s.pub.state.Acts[thread.ActUnfinished].SHA == "" {
		return nothing, nil
	}
	if err := s.ground().Drop(ctx, s.pub.env, s.pub.thread); err != nil {
		s.pub.log.Warn().Err(err).Msg("the reference to unfinished work stays until the thread's next step")
	}
	return nothing, s.pub.load(ctx)
}

// greet acknowledges requests in the background, so that no agent waits for GitHub. An error fails the step only if no
// agent runs.
func (s *step) greet(ctx context.Context) (progress, error) {
	s.acknowledged = s.inBackground(ctx, (*publisher).acknowledge)
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

// offerPull opens the pull request for pushed work. After the run's end, a permanent refusal is ignored.
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

// lookAtChecks looks at other checks on the head once they have finished.
func (s *step) lookAtChecks(ctx context.Context) (progress, error) {
	if s.pub.state.Watched() { // watch looks at the checks
		return nothing, nil
	}
	logged, next, err := s.look(ctx)
	s.checksAt = next
	if logged {
		return changed, err
	}
	return nothing, err
}

// idle handles a thread without requests: its base may have moved, review threads may be resolved.
func (s *step) idle(ctx context.Context) (progress, error) {
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
	next := earliest(s.checksAt, s.lookAgain, due, again)
	if next.IsZero() {
		return finished, nil
	}
	return finished, s.pub.lease.Append(ctx, thread.Batch{WakeAt: next})
}

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
		if err := s.unplace(ctx); err != nil {
			return nothing, err
		}
		return changed, s.attempt(ctx, d.Decision, ready)
	case d == nil:
		return changed, nil
	case s.waitsBy(d):
		// Set the wake-up again: the old one may have started this step.
		if err := s.pub.lease.Append(ctx, thread.Batch{WakeAt: s.wakeAt(*d), Place: s.placeOf(*d)}); err != nil {
			return nothing, err
		}
		return finished, s.show(ctx)
	}
	return changed, s.record(ctx, d)
}

// waitsBy reports whether the log already ends with this wait.
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
	if needsUser(s.pub.state, d) {
		d.Like = s.like(ctx)
	}
	s.pub.log.Info().Str("action", string(d.Action)).Str("rule", string(d.Rule)).Strs("reasons", d.Reasons.Texts()).Msg("decided")
	event := thread.NewEvent{Kind: thread.KindDecision, At: s.pub.env.Now(), Data: d}
	if err := s.pub.lease.Append(ctx, thread.Batch{WakeAt: s.wakeAt(*d), Place: s.placeOf(*d), Events: []thread.NewEvent{event}}); err != nil {
		return err
	}
	s.placed = s.placeOf(*d) != ""
	crash.Point("decided")
	s.count(d.Decision)
	return s.shortWait(ctx, d.Decision)
}

// show publishes the thread's state, after the acknowledgements.
func (s *step) show(ctx context.Context) error {
	if err := s.acknowledged(ctx); err != nil {
		return err
	}
	return s.pub.publish(ctx)
}

// inBackground runs do in the background, with copies of the publisher and its acts. wait waits for do and returns its
// error.
func (s *step) inBackground(ctx context.Context, do func(*publisher, context.Context) error) (wait func(context.Context) error) {
	p, done := *s.pub, make(chan struct{})
	p.state.Acts = maps.Clone(p.state.Acts)
	var err error
	s.background.Go(func() {
		defer close(done)
		err = p.safely(func() error { return do(&p, ctx) })
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

// shortWait sleeps through a wait of a few seconds, because the queue would end it up to a second late. The wait is
// stored as well.
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

// maxShortWait is the longest wait that a step sits out.
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

// ready is an attempt's repository and slot; release gives the slot back.
type ready struct {
	ground  *attempt.Ground
	release func()
}

// decide asks policy. Before an attempt it fetches the repository, whose configuration may restrict the decision, and
// asks policy again. If it returns nothing at all, decide again.
func (s *step) decide(ctx context.Context) (*thread.Decided, *ready, error) {
	facts, err := s.facts(ctx, effective(s.pub.Config, s.pub.state.Repo))
	if err != nil {
		return nil, nil, err
	}
	first := policy.Next(facts)
	if first.Action != policy.DoAttempt {
		return &thread.Decided{Decision: first, Seen: s.pub.state.Seq}, nil, nil
	}
	most := mostOnAccount(facts, first)
	wait, err := s.elsewhere(ctx, nil) // the repository's labels are known after the fetch
	if wait == nil && err == nil {
		wait, err = s.mayAcquire(ctx, first.Account, most)
	}
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
	if len(s.pub.state.Pending()) < len(asked) { // the request was done meanwhile
		return nil, nil, nil
	}
	if wait, err := s.elsewhere(ctx, ground.Effective.Environment.RunsOn); wait != nil || err != nil {
		return s.seen(wait, first.Purpose), nil, err
	}
	return s.agree(ctx, ground, first, most)
}

// agree acquires a slot for policy's decision and asks policy again until the decision fits the slot. most is the
// account's limit of concurrent attempts.
func (s *step) agree(ctx context.Context, ground *attempt.Ground, want policy.Decision, most int) (*thread.Decided, *ready, error) {
	for {
		release, err := s.acquire(ctx, want.Account, most)
		if err != nil || release == nil {
			return nil, nil, err
		}
		now, bound, err := s.confirm(ctx, ground, want)
		if err != nil || now.Action != policy.DoAttempt {
			release()
			return now, nil, err
		}
		if now.Purpose == want.Purpose && fits(*now, bound, want, most) {
			return now, &ready{ground, release}, nil
		}
		release()
		want, most = now.Decision, bound
	}
}

// fits reports whether the slot and the probe acquired for one decision are enough for the next. A slot alone fits any
// account.
func fits(now thread.Decided, bound int, want policy.Decision, most int) bool {
	if bound == 0 {
		return most == 0 || now.Account == want.Account
	}
	return bound == most && now.Account == want.Account
}

// confirm verifies the base and asks policy again. Meanwhile a user may have stopped the work, or another thread may
// have hit the account's limit. bound is the account's limit of concurrent attempts.
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

// seen marks a decision about a purpose as based on all events that the step has read.
func (s *step) seen(d *thread.Decided, p policy.Purpose) *thread.Decided {
	if d != nil {
		d.Seen, d.Purpose = s.pub.state.Seq, p
	}
	return d
}

// needsUser reports whether a decision stops the work after an attempt, so that a user must act.
func needsUser(s thread.State, d *thread.Decided) bool {
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

// like names another thread of the repository that stopped on a nearly equal task, preferably a recent one; empty for
// none. It only informs users, so unreadable threads are skipped.
func (s *step) like(ctx context.Context) string {
	near, err := s.pub.env.Store.Near(ctx, s.pub.thread)
	if err != nil {
		s.pub.log.Warn().Err(err).Msg("other threads cannot be read; none is named")
	}
	for _, n := range near {
		_, other, err := thread.Load(ctx, s.pub.env.Store, n)
		if err != nil || other.Open() || !needsUser(other, other.Decision) {
			continue
		}
		if policy.SaysAgain(s.pub.state.Begun(), other.Begun()) {
			return fmt.Sprintf("like #%d, which stopped because %s", n.Number, other.Decision.Reasons)
		}
	}
	return ""
}

// decideOn asks policy with the repository's configuration. bound is the chosen account's limit of concurrent
// attempts.
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
	if len(s.pub.solver.Verify) > 0 { // no user can override the stop with a comment
		before = slices.DeleteFunc(slices.Clone(before), func(v policy.Verified) bool { return v.NoTests })
	}
	f.Unable = policy.Unable(before)
	f.Fresh = slices.DeleteFunc(f.Fresh, func(r policy.Request) bool { return slices.Contains(untriggered, r.Seq) })
	d := policy.Next(f)
	decided := &thread.Decided{Decision: d, Seen: s.pub.state.Seq}
	if d.Rule == policy.RuleVerifyBroken {
		decided.On = g.From
	}
	return decided, mostOnAccount(f, d), nil
}

// untriggered lists the pending remarks that the repository's triggers exclude.
func (s *step) untriggered(triggers []string) []int64 {
	var seqs []int64
	for _, r := range s.pub.state.Pending() {
		if r.Watched { // a user asked for these rounds
			continue
		}
		if !feedback.Triggers(r.Source, feedback.Command{Name: r.Command, Mention: r.Mention}, triggers) {
			seqs = append(seqs, r.Seq)
		}
	}
	return seqs
}

// effective is the server's configuration narrowed by the repository's.
func effective(server *config.Server, repo config.Repo) config.Effective {
	e, problems := server.Narrow(repo)
	if len(problems) > 0 {
		// The server's configuration has changed and conflicts with the logged one.
		e, _ = server.Narrow(config.Repo{})
	}
	return e
}

// metersOf returns an account's usage windows as they apply to a thread.
func metersOf(t thread.ID, all []policy.Meter) (own []policy.Meter) {
	for _, m := range all {
		own = append(own, m.For(t.String()))
	}
	return own
}

func (s *step) facts(ctx context.Context, e config.Effective) (policy.Facts, error) {
	now := s.pub.env.Now()
	f := s.pub.state.Facts(now)
	f.Limits = e.Policy.Limits
	f.Watch.Settles = s.checksAt
	repoLog, err := s.pub.env.Store.Events(ctx, thread.RepoLog(s.pub.thread.Owner, s.pub.thread.Name), 0)
	if err != nil {
		return f, err
	}
	switch by := thread.Paused(repoLog); {
	case e.Policy.Paused:
		f.Paused = "the operator paused Pawl (policy.paused)"
	case by != nil:
		f.Paused = by.Pauses(s.pub.thread.Repo())
	}
	breakers, err := s.pub.env.Store.Breakers(ctx)
	if err != nil {
		return f, fmt.Errorf("breakers: %w", err)
	}
	meters, err := s.pub.env.Store.Meters(ctx)
	if err != nil {
		return f, fmt.Errorf("usage windows: %w", err)
	}
	cooldowns, err := s.pub.solver.cooldowns(ctx, s.pub.thread.Repo(), e.Policy.Severity.CooldownScope, now)
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
	if u := s.pub.state.Unfinished; u != nil && u.Times > 0 { // the continued attempt is counted already
		used = used.Without(u.Account)
	}
	f.GlobalLimits = f.Limits.Ledgers(used)
	running, err := s.pub.env.Store.Running(ctx, s.pub.thread)
	if err != nil {
		return f, err
	}
	for _, b := range e.Backends {
		arm := policy.Backend{Name: b.Name, CanEscalate: b.EscalatedEffort != "", Cooldown: cooldowns(b, b.Effort)}
		if arm.CanEscalate {
			arm.Escalated = cooldowns(b, b.EscalatedEffort)
		}
		for _, account := range b.AccountNames() {
			arm.Account, arm.Breaker = account, breakers[account].For(s.pub.thread.String())
			arm.Meters, arm.Running, arm.Day = metersOf(s.pub.thread, meters[account]), running[account], f.Limits.Account(account, used)
			f.Backends = append(f.Backends, arm)
		}
	}
	return f, nil
}
