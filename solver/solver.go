package solver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/panics"
	"github.com/pawlbot/pawl/internal/secret"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// Solver carries out decisions. Env and Host are required.
type Solver struct {
	Env    attempt.Env
	Host   Host
	Verify []string // verify commands in addition to the repositories' own
	// Slots limits concurrent attempts to its capacity. Nil means no limit.
	Slots chan struct{}
	// OnDecision receives logged decisions, for metrics; it may be nil and must not block.
	OnDecision func(rule policy.Rule, action policy.Action)
	// Nodes finds the node for an attempt. Nil means that this process runs every attempt.
	Nodes Nodes
	// OnTakeOver is called after a takeover from a node that did not release the thread. It may be nil and must not
	// block.
	OnTakeOver func()

	learned learnedCache
	// required remembers the required checks of branches, by repository and branch.
	required sync.Map
	// baseChecks remembers the checks of bases, by repository and branch.
	baseChecks sync.Map
	// waiting counts the steps that wait in memory for a slot.
	waiting atomic.Int64
}

// HasBackend reports whether this server has a backend of that name.
func (s *Solver) HasBackend(name string) bool {
	return attempt.BackendNamed(s.Env.Current().Backends, name).Name != ""
}

// Escalates reports whether a backend of the thread has an escalated effort: the pinned one, else any that the
// repository's logged configuration allows.
func (s *Solver) Escalates(t thread.State) bool {
	all := effective(s.Env.Current(), t.Repo).Backends
	if b := attempt.BackendNamed(all, t.Pinned); b.Name != "" {
		return b.EscalatedEffort != ""
	}
	return slices.ContainsFunc(all, func(b config.Backend) bool { return b.EscalatedEffort != "" })
}

// Step takes the thread's lease and works on the thread. A *LeaseHeldError means that another step has the lease.
func (s *Solver) Step(given context.Context, t thread.ID) error {
	asked := time.Now()
	l, err := s.Env.Store.Acquire(given, t, s.Env.Node)
	if err != nil {
		return err
	}
	return s.Work(given, l, asked)
}

// Work works on a thread until the thread waits or ends, or another node takes over. Then it releases the lease. asked
// is when the lease was requested. After an error, Work has stored the time of the next try.
func (s *Solver) Work(given context.Context, l thread.Lease, asked time.Time) (err error) {
	crash.Point("claimed")
	ctx, holder := lease.Hold(given, s.Env.Store, l, asked, s.Env.Now)
	log := s.Env.Log.With().Str("thread", l.Thread.String()).Int64("epoch", l.Epoch).Logger()
	if l.From != "" {
		log.Warn().Str("from", l.From).Msg("thread taken over: its lease ran out")
		if s.OnTakeOver != nil {
			s.OnTakeOver()
		}
	}
	st := s.newStep(l.Thread, holder, log)
	err = errPanicked // replaced when the loop returns
	defer func() { holder.Release(st.retry(given, err)) }()
	err = st.loop(ctx)
	return err
}

func (s *Solver) newStep(t thread.ID, holder *lease.Holder, log zerolog.Logger) *step {
	return &step{pub: &publisher{
		solver: s,
		env:    &s.Env,
		Config: s.Env.Current(),
		thread: t,
		lease:  holder,
		log:    log,
		plain:  log,
	}}
}

var errPanicked = errors.New("a panic in Pawl's own code; the server's log has the stack")

// safely turns a panic into an error, so that it is retried with pauses and reported like any other.
func (p *publisher) safely(do func() error) (err error) {
	err = panics.Try(do)
	if stack := panics.Stack(err); stack != "" {
		p.log.Error().Err(err).Str("stack", stack).Msg("a step panicked")
	}
	return err
}

// loop does one effect after another until none is left for now.
func (s *step) loop(ctx context.Context) error {
	for again := true; again; {
		if ctx.Err() != nil {
			return s.lost(ctx, context.Cause(ctx))
		}
		err := s.pub.safely(func() (err error) {
			again, err = s.effect(ctx)
			return err
		})
		if failure := err; failure != nil {
			err = s.pub.safely(func() (err error) {
				again, err = s.failed(ctx, failure)
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("step %s: %w", s.pub.thread, s.lost(ctx, err))
		}
	}
	return nil
}

func (s *step) lost(ctx context.Context, err error) error {
	if isAny(errors.Join(err, context.Cause(ctx)), thread.ErrLeaseLost) {
		s.pub.log.Warn().Err(thread.ErrLeaseLost).Msg("this node stops working on the thread; the lease's holder continues")
	}
	return err
}

// A failed step pauses at most retryCap between tries for about a day, longer than an outage of GitHub. Then it pauses
// up to rareCap: the cause may end without an event on the thread.
const (
	oftenTries = 300
	retryCap   = 5 * time.Minute
	rareCap    = time.Hour
)

// afterFailure doubles the wait from one second up to the cap. It subtracts up to half at random, so that steps that
// failed together do not return together.
func afterFailure(inARow int) time.Duration {
	longest := retryCap
	if inARow >= oftenTries {
		longest = rareCap
	}
	return policy.Retry(inARow, time.Second, longest, 1-rand.Float64()/2)
}

var errStopping = errors.New("the server is stopping and starts no attempt")

// retry returns the pauses before a failed step's next tries; nil if the step finished. Only Stop cancels the given
// context; an exceeded deadline counts as an error.
func (s *step) retry(given context.Context, err error) thread.Retry {
	switch {
	case err == nil:
		return nil
	case errors.Is(given.Err(), context.Canceled), errors.Is(err, errStopping):
		// Any other node, or the next process, may take the step.
		return func(int) time.Duration { return 0 }
	}
	return func(inARow int) time.Duration {
		if inARow == oftenTries {
			s.pub.log.Error().Err(err).Int("tries", inARow).Msg("the step has failed for about a day; it is now tried about once an hour")
		}
		return afterFailure(inARow)
	}
}

// failed handles a step's error: the step is repeated now (again), ends, or is tried again later.
func (s *step) failed(ctx context.Context, err error) (again bool, _ error) {
	if errors.Is(err, thread.ErrDamaged) {
		return false, s.pub.unread(ctx, err)
	}
	mended, damaged := s.mend(ctx, err)
	if mended {
		return true, nil
	}
	again, err = s.logged(ctx, cmp.Or(damaged, err))
	if err == nil || ctx.Err() != nil {
		return again, err
	}
	return again, errors.Join(err, s.reportFailure(ctx, err))
}

// logged turns some errors into events: waits that GitHub asked for, ends that it reported, and failures that retries
// cannot fix. Other errors are returned, and the step is tried again.
func (s *step) logged(ctx context.Context, err error) (again bool, _ error) {
	var limited *forge.RateLimited
	var moved *forge.Moved
	gone := errors.As(err, &moved) || errors.Is(err, forge.ErrUninstalled)
	switch {
	case errors.Is(err, thread.ErrLeaseLost), ctx.Err() != nil:
		return false, err
	case errors.As(err, &limited):
		s.pub.log.Warn().Time("until", limited.Until).Msg("GitHub's rate limit; the step continues later")
		return false, s.pub.lease.Append(ctx, thread.Batch{WakeAt: limited.Until})
	case gone && s.pub.state.Closed != "":
		// Nothing can be shown on a deleted thread.
		s.pub.log.Warn().Err(err).Msg("the thread is gone at GitHub")
		return false, nil
	case moved != nil:
		return true, s.pub.lease.Record(ctx, thread.KindThread, thread.Change{What: "renamed", Detail: moved.To})
	case gone:
		return true, s.pub.lease.Record(ctx, thread.KindThread, thread.Change{What: "uninstalled", Detail: hint(err)})
	case errors.Is(err, attempt.ErrRevoked):
		d := thread.Refuse(policy.RuleRevoked, "A user who may write to the repository must ask for it: /pawl retry.", attempt.ErrRevoked.Error())
		return true, s.pub.lease.Record(ctx, thread.KindDecision, s.seen(d, s.pub.state.Purpose()))
	case errors.Is(err, git.ErrProtected) && s.pub.state.Open():
		d := thread.Refuse(policy.RulePushRefused, "Let the App push to its branches (rulesets, branch protection); then comment /pawl retry.", secret.Redact(err.Error()))
		return true, s.pub.lease.Record(ctx, thread.KindDecision, s.seen(d, policy.ToChange))
	case final(err) && !s.pub.state.Open():
		// The run has ended, and trying again cannot make GitHub show it.
		s.pub.log.Error().Err(err).Msg("GitHub refuses to show how the run ended")
		return false, nil
	case final(err):
		s.pub.log.Error().Err(err).Msg("Pawl cannot continue this run")
		d := thread.Refuse(policy.RulePawlFailed, "The operator should look at the server's log; then comment /pawl retry.", secret.Redact(err.Error()))
		d.Failed = true
		return true, s.pub.lease.Record(ctx, thread.KindDecision, s.seen(d, s.pub.state.Purpose()))
	}
	return false, err
}

// mend replaces a damaged clone of the repository. It reports whether the step should be repeated.
func (s *step) mend(ctx context.Context, err error) (bool, error) {
	mended, err := s.pub.env.Mend(ctx, s.pub.thread, err)
	if mended {
		s.pub.log.Error().Msg("the clone of the repository is damaged: Pawl deleted it and fetches the repository again; check the disk")
	}
	return mended, err
}

// reportAfter is how many failures in a row make the thread show the error: 30 to 60 seconds after the first. Our
// choice.
const reportAfter = 7

// reportFailure reports once on the thread that its step fails repeatedly. It reports no failure that passes by itself,
// such as an outage of GitHub.
func (s *step) reportFailure(ctx context.Context, err error) error {
	if s.pub.lease.Current().Failures+1 < reportAfter || s.pub.state.ErrorReported {
		return nil
	}
	passes := isAny(err, forge.ErrUnavailable, forge.ErrUnauthorized, git.ErrUnavailable, thread.ErrLeaseLost, errStopping)
	if passes || !s.pub.state.Open() {
		return nil
	}
	d := &thread.Decided{Decision: policy.Decision{
		Action:  policy.DoWait,
		Rule:    policy.RuleRepeatedError,
		Reasons: policy.Because(policy.RuleRepeatedError, secret.Redact(err.Error())),
	}}
	if err := s.pub.lease.Record(ctx, thread.KindDecision, s.seen(d, s.pub.state.Purpose())); err != nil {
		return err
	}
	if err := s.pub.load(ctx); err != nil {
		return err
	}
	return s.pub.publish(ctx)
}

// hint returns GitHub's reason in an error and what to do, or empty.
func hint(err error) string {
	if failed, ok := errors.AsType[*forge.Error](err); ok {
		return failed.Hint
	}
	return ""
}

// final reports whether trying again cannot help. forge.ErrUnauthorized does not count: it prevents showing an end, and
// passes once the machine's clock or the key is fixed.
func final(err error) bool {
	kinds := []error{
		forge.ErrForbidden, forge.ErrInvalid, forge.ErrNotFound, forge.ErrGone,
		git.ErrAuth, git.ErrInvalid, git.ErrProtected, git.ErrTooLarge, git.ErrMalformed, git.ErrDamaged,
	}
	return isAny(err, kinds...)
}

// unlessFinal returns err, or nil if trying again cannot help.
func unlessFinal(err error) error {
	if final(err) {
		return nil
	}
	return err
}

func isAny(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}
