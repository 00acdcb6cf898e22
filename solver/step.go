package solver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
)

func itoa(n int) string { return strconv.Itoa(n) }

// step is one holder of a thread's lease at work.
type step struct {
	*Solver
	thread Thread
	lease  *keeper
	app    forge.App // who Pawl is; zero without GitHub
	state  State
	next   time.Time // when a wait without an end is looked at again
	waited bool      // for a place, in vain
	free   func()    // gives the place back that the attempt has
	tries  bool      // the attempt tries an account that was limited, alone
	// delivery brought the newest remark or change; empty for none.
	delivery string
	log      zerolog.Logger
	plain    zerolog.Logger // log without what the thread's log tells
}

// Step takes the thread's lease and does what is to be done now: until the
// thread waits, has ended, or another node took over. A *HeldError means that
// another step is at it; any other error means that Pawl could not do its job.
// When the thread is tried again is stored by then.
func (s *Solver) Step(given context.Context, t Thread) (err error) {
	asked := time.Now()
	lease, err := s.Store.Acquire(given, t, s.Node, s.Now())
	if err != nil {
		return err
	}
	crash.Point("claimed")
	ctx, k := keep(given, s.Store, lease, asked, s.Now)
	log := s.Log.With().Str("thread", t.String()).Int64("epoch", lease.Epoch).Logger()
	if lease.From != "" {
		log.Warn().Str("from", lease.From).Msg("thread taken over: its lease ran out")
		if s.OnTakeOver != nil {
			s.OnTakeOver()
		}
	}
	st := &step{Solver: s, thread: t, lease: k, log: log, plain: log}
	err = errPanicked // until the loop says what came of it
	defer func() { k.release(st.retry(given, err)) }()
	err = st.loop(ctx)
	return err
}

// errPanicked is how a step ends that does not return.
var errPanicked = errors.New("the step panicked")

// loop does one effect after the other until there is none left for now.
func (s *step) loop(ctx context.Context) error {
	for again := true; again; {
		if ctx.Err() != nil {
			return s.lost(ctx, context.Cause(ctx))
		}
		var err error
		if again, err = s.once(ctx); err != nil {
			again, err = s.failed(ctx, err)
		}
		if err != nil {
			return fmt.Errorf("step %s: %w", s.thread, s.lost(ctx, err))
		}
	}
	return nil
}

// once does one effect. It reports whether there may be another one.
func (s *step) once(ctx context.Context) (again bool, err error) {
	if err := s.load(ctx); err != nil {
		return false, err
	}
	if s.Forge != nil { // after the log: what becomes of an error depends on it
		if s.app, err = s.Forge.App(ctx); err != nil {
			return false, err
		}
	}
	ctx, end := s.span(ctx, "step")
	defer func() { end(err) }()
	if a, running := s.state.Running(); running {
		return true, s.interrupt(ctx, a)
	}
	if err := s.acknowledge(ctx); err != nil {
		return false, err
	}
	if err := s.learn(ctx); err != nil {
		return false, err
	}
	if s.Forge != nil && len(s.state.Questions) > 0 {
		return true, s.answer(ctx, s.state.Questions[0])
	}
	if err := s.openPull(ctx); err != nil && (s.state.Open() || !final(err)) {
		return false, fmt.Errorf("open the pull request: %w", err)
	}
	if !s.state.Open() {
		return false, s.publish(ctx)
	}
	d, prep, err := s.decide(ctx)
	if err != nil {
		return false, err
	}
	if d.Action == policy.DoAttempt {
		return true, s.attempt(ctx, d.Decision, prep)
	}
	if d.Action == policy.DoWait && s.state.Decision != nil && same(*s.state.Decision, d) && (!d.Until.IsZero() || s.awaits(d.Rule)) {
		// The wake-up is armed again: it may have been this one.
		if err := s.append(ctx, Batch{WakeAt: s.wakeAt(d)}); err != nil {
			return false, err
		}
		return false, s.publish(ctx)
	}
	s.log.Info().Str("action", string(d.Action)).Str("rule", d.Rule).Strs("reasons", d.Reasons).Msg("decided")
	if err := s.append(ctx, Batch{WakeAt: s.wakeAt(d), Events: []NewEvent{{Kind: KindDecision, At: s.Now(), Data: d}}}); err != nil {
		return false, err
	}
	crash.Point("decided")
	s.told(d.Decision)
	return true, s.shortWait(ctx, d.Decision)
}

// shortWait sits out a wait of a few seconds. It is stored like every other, and
// the queue would end it too, but by its own clock of 5 s.
func (s *step) shortWait(ctx context.Context, d policy.Decision) error {
	left := d.Until.Sub(s.Now())
	if d.Action != policy.DoWait || d.Until.IsZero() || left > maxShortWait {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// maxShortWait is the wait that a step sits out itself.
const maxShortWait = 5 * time.Second

// told counts a decision that was logged.
func (s *step) told(d policy.Decision) {
	if s.OnDecision != nil {
		s.OnDecision(d.Rule, d.Action)
	}
}

// same reports whether a wait says nothing new.
func same(a, b Decided) bool {
	return a.Action == b.Action && a.Rule == b.Rule && a.Until.Equal(b.Until) && reflect.DeepEqual(a.Reasons, b.Reasons)
}

// decide asks policy with what is known; before an attempt it fetches the
// repository and reads its configuration, which may narrow the answer.
func (s *step) decide(ctx context.Context) (d Decided, p *prepared, err error) {
	ctx, end := s.span(ctx, "decide")
	defer func() { end(err, traced(d.Decision)...) }()
	effective, problems := s.Config.Narrow(s.state.Repo)
	if len(problems) > 0 {
		// The server's configuration changed under a recorded narrowing.
		effective, _ = s.Config.Narrow(config.Repo{})
	}
	s.addVerify(&effective)
	facts, err := s.facts(ctx, effective)
	if err != nil {
		return Decided{}, nil, err
	}
	d = Decided{Decision: policy.Next(facts), Seen: s.state.Seq}
	if d.Action != policy.DoAttempt {
		return d, nil, nil
	}
	wait, err := s.turn(ctx, facts, d.Decision)
	if err != nil {
		return Decided{}, nil, err
	}
	if wait != nil {
		return *wait, nil, nil
	}
	prep, refused, err := s.prepare(ctx)
	if err != nil {
		return Decided{}, nil, err
	}
	if refused != nil {
		refused.Seen = s.state.Seq
		return *refused, nil, nil
	}
	// What came while GitHub and the git server were asked counts, too: a stop
	// above all.
	if err := s.load(ctx); err != nil {
		return Decided{}, nil, err
	}
	d.Seen = s.state.Seq
	if facts, err = s.facts(ctx, prep.effective); err != nil {
		return Decided{}, nil, err
	}
	facts.Fresh = heard(facts.Fresh, s.state, prep.effective.Triggers)
	d.Decision = policy.Next(facts)
	return d, prep, nil
}

// heard leaves out feedback that the repository does not listen to.
func heard(fresh []policy.Trigger, s State, triggers []string) []policy.Trigger {
	var out []policy.Trigger
	for _, t := range fresh {
		for _, r := range s.Feedback {
			if r.Seq == t.Seq && policy.Heard(r.Source, policy.Command{Name: r.Command, Mention: r.Mention}, triggers) {
				out = append(out, t)
			}
		}
	}
	return out
}

// facts are the log's facts with the limits and what is held against backends.
func (s *step) facts(ctx context.Context, e config.Effective) (policy.Facts, error) {
	now := s.Now()
	f := s.state.Facts(now)
	f.Limits = Limits(e.Policy)
	f.Verify = len(e.Verify) > 0 || s.Local != nil && len(s.Local.Verify) > 0
	if e.Policy.Paused {
		f.Paused = "the operator paused Pawl (policy.paused)"
	}
	breakers, err := s.Store.Breakers(ctx)
	if err != nil {
		return f, fmt.Errorf("breakers: %w", err)
	}
	cooldowns, err := s.Store.Cooldowns(ctx, s.thread.Repo(), now)
	if err != nil {
		return f, fmt.Errorf("cooldowns: %w", err)
	}
	if err := s.choice(ctx, &f, e); err != nil {
		return f, err
	}
	for _, b := range e.Backends {
		arm := policy.Backend{Name: b.Name, Account: b.Account, CanEscalate: b.EscalatedEffort != "", Breaker: breakers[b.Account]}
		for _, c := range cooldowns[s.thread.Repo()] {
			if c.Backend == b.Name {
				arm.CooldownUntil, arm.Cooldown = c.Until, policy.Class(c.Class)
			}
		}
		f.Backends = append(f.Backends, arm)
	}
	return f, nil
}

// load folds the log again.
func (s *step) load(ctx context.Context) error {
	events, err := s.Store.Events(ctx, s.thread, 0)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	s.state, err = Fold(events)
	s.identify(events)
	return err
}

// append appends under the lease. During an attempt it outlasts a store that does
// not answer, and may have appended the same before.
func (s *step) append(ctx context.Context, b Batch) error {
	return s.lease.outlast(ctx, func(ctx context.Context) error {
		return s.Store.AppendLeased(ctx, s.lease.current(), b)
	})
}

// record appends events under the lease.
func (s *step) record(ctx context.Context, kind Kind, data any) error {
	return s.append(ctx, Batch{Events: []NewEvent{{Kind: kind, At: s.Now(), Data: data}}})
}

// timeoutAfterStop bounds what a stopping process still writes: well within the
// 30 s that it has to exit.
const timeoutAfterStop = 5 * time.Second
