package solver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/policy"
)

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
			r.Tests = names(v.Failing)
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
// backend. It is written also while the process stops, and when a store is back
// that was away.
func (s *step) finish(ctx context.Context, a Started, r Ended) error {
	if errors.Is(context.Cause(ctx), ErrLeaseLost) {
		return ErrLeaseLost
	}
	ctx, cancel := afterStop(ctx)
	defer cancel()
	climbed(a, &r)
	s.log.Info().Str("ending", string(r.Ending)).Str("outcome", string(r.Outcome)).
		Bool("progress", policy.Progress(r.StartTree, r.EndTree)).Str("commit", r.Commit).Str("detail", r.Detail).Msg("attempt ended")
	crash.Point("attempt_ending")
	s.lease.hold(true)
	at := s.Now()
	if err := s.lease.outlast(ctx, func(ctx context.Context) error {
		events, err := s.Store.Events(ctx, s.thread, a.Seen)
		if err != nil {
			return err
		}
		if ended(events) { // by an earlier try that was not answered, or by who took the thread over
			return s.lease.renew(ctx)
		}
		return s.Store.AppendLeased(ctx, s.lease.current(), s.ending(a, r, events, at))
	}); err != nil {
		return err
	}
	crash.Point("attempt_ended")
	if s.OnAttempt != nil {
		s.OnAttempt(a.Backend, r.Ending, r.Outcome)
	}
	if s.OnReceipt != nil {
		s.OnReceipt(a.Backend, r)
	}
	return nil
}

// ended reports whether an attempt has ended by the events that followed what it
// has seen.
func ended(events []Event) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.Kind == KindAttemptEnded })
}

// ending is what finish writes. events are those after what the attempt has seen.
func (s *step) ending(a Started, r Ended, events []Event, now time.Time) Batch {
	batch := Batch{Events: []NewEvent{{Kind: KindAttemptEnded, At: now, Data: r}}}
	s.tellBreaker(&batch, a, r, now)
	if v := Limits(s.Config.Policy).Severity.Judge(r.Edits); r.Outcome == policy.EditLoop && v.Class != policy.None {
		batch.Cooldown = &Cooldown{Backend: a.Backend, Class: string(v.Class), Until: now.Add(v.Cooldown), Thread: s.thread.String()}
	}
	if seqs := s.agentWroteMeanwhile(a, r, events); len(seqs) > 0 {
		batch.Events = append(batch.Events, NewEvent{Kind: KindWithdrawn, At: now,
			Data: Withdrawn{Seqs: seqs, Reason: "the agent wrote it itself during the attempt: its text stands in the transcript"}})
	}
	return batch
}

// tellBreaker adds what an attempt's end says of its account, unless the breaker
// has heard it.
func (s *step) tellBreaker(batch *Batch, a Started, r Ended, now time.Time) {
	said := r.Ending
	switch {
	case r.Told:
		said = ""
	case r.Limit == nil:
	case r.Limit.Source == fromBreaker:
		said = "" // the breaker said it, so it knows
	case said == policy.Completed:
		said = policy.Ending(r.Limit.Kind) // the account is limited all the same
	}
	if said == policy.UsageLimit || said == policy.Auth || said == policy.Completed {
		batch.Account = a.Account
		batch.Breaker = func(b policy.Breaker) policy.Breaker { return b.After(said, r.Limit.usable(), a.Began, now) }
	}
}

// names are the names of failing tests, sorted.
func names(all []Failing) []string {
	var list []string
	for _, f := range all {
		list = append(list, f.Name)
	}
	slices.Sort(list)
	return list
}
