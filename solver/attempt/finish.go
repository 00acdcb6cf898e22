package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// Finish logs the receipt and its consequences, even while the process stops. It retries while the store is down.
func (a *Attempt) Finish(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), thread.ErrLeaseLost) {
		return thread.ErrLeaseLost
	}
	ctx, cancel := lease.AfterStop(ctx)
	defer cancel()
	if a.Ground != nil {
		a.Receipt.Inherited = a.Ground.Inherited
	}
	used := policy.Spent{Tokens: a.Receipt.Tokens, CostUSD: a.Receipt.CostUSD}.Plus(a.used())
	a.Receipt.Tokens, a.Receipt.CostUSD = used.Tokens, used.CostUSD
	a.Receipt.Steered = a.steered()
	if a.handover != nil {
		a.Log.Info().Str("commit", a.handover.Commit).Str("session", a.handover.Session).Msg("attempt handed over")
	} else {
		a.ownRung()
		a.Log.Info().Str("ending", string(a.Receipt.Ending)).Str("outcome", string(a.Receipt.Outcome)).
			Bool("progress", a.Receipt.Progress()).Str("commit", a.Receipt.Commit).Str("detail", a.Receipt.Detail).Msg("attempt ended")
	}
	crash.Point("attempt_ending")
	a.Lease.Patient(true)
	at := a.Env.Now()
	if err := a.Lease.Outlast(ctx, func(ctx context.Context) error {
		events, err := a.Env.Store.Events(ctx, a.Thread, a.Seen)
		if err != nil {
			return err
		}
		ended := func(e thread.Event) bool {
			return e.Kind == thread.KindAttemptEnded || e.Kind == thread.KindUnfinished
		}
		if slices.ContainsFunc(events, ended) { // logged by a try whose answer was lost, or by another node
			return a.Lease.Renew(ctx)
		}
		return a.Env.Store.AppendLeased(ctx, a.Lease.Current(), a.ending(events, at))
	}); err != nil {
		return err
	}
	crash.Point("attempt_ended")
	if a.handover != nil {
		_ = git.Remove(a.Env.workOf(a.Thread)) // CleanWork repeats a failed removal
		return nil
	}
	if a.Env.OnAttempt != nil {
		a.Env.OnAttempt(a.Backend, a.Receipt.Ending, a.Receipt.Outcome)
	}
	if a.Env.OnReceipt != nil {
		a.Env.OnReceipt(a.Backend, a.Receipt)
	}
	return nil
}

// ending returns the batch that Finish appends. events holds the events after the last one that the attempt saw.
func (a *Attempt) ending(events []thread.Event, now time.Time) thread.Batch {
	last := thread.NewEvent{Kind: thread.KindAttemptEnded, At: now, Data: a.Receipt}
	if a.handover != nil {
		last.Kind, last.Data = thread.KindUnfinished, a.handover
	}
	batch := thread.Batch{Events: append(a.unlogged(now), last)}
	batch.Spent = &policy.Spent{N: a.N, Tokens: a.Receipt.Tokens, CostUSD: a.Receipt.CostUSD}
	a.updateBreaker(&batch, a.accountEnding(), a.Receipt.Limit, now)
	loop := a.Config.Policy.Severity.Loop(a.Receipt)
	if loop.Class != policy.None {
		batch.Cooldown = &thread.Cooldown{
			Backend:  a.Backend,
			Model:    a.Model,
			Effort:   a.Effort,
			Thread:   a.Thread.String(),
			Cooldown: policy.Cooldown{Class: loop.Class, At: now, Until: now.Add(loop.Cooldown)},
		}
	}
	if seqs := a.ownRemarks(events); len(seqs) > 0 {
		own := thread.Withdrawn{Seqs: seqs, Reason: feedback.AgentsOwn + " during the attempt"}
		batch.Events = append(batch.Events, thread.NewEvent{Kind: thread.KindWithdrawn, At: now, Data: own})
	}
	return batch
}

// accountEnding returns the ending for the account's breaker, or empty.
func (a *Attempt) accountEnding() policy.Ending {
	ending, limit := a.Receipt.Ending, a.Receipt.Limit
	switch {
	case a.NoAgent:
		return ""
	case limit == nil:
		return ending
	case limit.Source == fromBreaker: // the breaker already knows
		return ""
	case ending == policy.Completed:
		return limit.Kind // the account is still limited
	}
	return ending
}

// updateBreaker adds the attempt's end to its account's breaker. If the agent ended before a handover, the breaker
// already has it.
func (a *Attempt) updateBreaker(batch *thread.Batch, ending policy.Ending, l *policy.Limit, now time.Time) {
	relevant := ofAccount(ending) || ending == policy.Completed
	if a.ended() || !relevant {
		return
	}
	batch.Account = a.Account
	batch.Breaker = func(b policy.Breaker) policy.Breaker {
		configured := BackendNamed(a.Config.Backends, a.Backend)
		if a.Config.OnAccount(configured, a.Account).Provider != "" {
			return b.After(ending, l.Usable(), a.Began, now)
		}
		return b.AfterReported(a.Thread.String(), ending, l.Usable(), a.Began, now)
	}
}

// ended reports whether the agent ended before the handover.
func (a *Attempt) ended() bool { return a.State.Unfinished != nil && a.State.Unfinished.Receipt != nil }

func bounded(l *policy.Limit) *policy.Limit {
	if l == nil {
		return nil
	}
	kept := *l
	kept.Message = tail(l.Message, 2000)
	return &kept
}

func (a *Attempt) ownRung() {
	var before []policy.Receipt
	for _, b := range a.State.Attempts {
		if b.N < a.N {
			before = append(before, b.Receipt)
		}
	}
	if own, ok := a.Decision.OwnRung(a.Effort, a.Receipt, before); ok {
		a.Receipt.Rungs = append(a.Receipt.Rungs, own)
	}
}

// Hide masks secrets and apparent keys in every readable part of the receipt. It leaves the transcript unchanged.
func (a *Attempt) Hide() {
	r := &a.Receipt
	shown := []*string{&r.Title, &r.Final, &r.Declined, &r.Question, &r.Detail, &r.Edits.SameCall, &r.Edits.SameCheck, &r.Edits.FailedCall}
	all := func(lists ...[]string) {
		for _, list := range lists {
			for i := range list {
				shown = append(shown, &list[i])
			}
		}
	}
	all(r.NotDone, r.Reasons, r.Tests, r.LeftOut, r.Inherited)
	for i := range r.Remarks {
		shown = append(shown, &r.Remarks[i].Words)
	}
	if r.Limit != nil {
		shown = append(shown, &r.Limit.Message)
	}
	verified := [][]policy.Verified{r.Verify}
	if e := r.TestEvidence; e != nil {
		all(e.Changed, e.Removed, e.Edits)
		verified = append(verified, e.AsTheyWere, e.Without)
	}
	for _, one := range verified {
		for i := range one {
			v := &one[i]
			shown = append(shown, &v.Output, &v.Broken)
			all(v.Known, v.Flaky, v.Fixed)
			for j := range v.Failing {
				shown = append(shown, &v.Failing[j].Name, &v.Failing[j].Text)
			}
		}
	}
	if j := r.Judge; j != nil {
		shown = append(shown, &j.Detail, &j.Error, &j.Cannot)
	}
	clean := a.redactor()
	for _, t := range shown {
		*t = clean.Redact(*t)
	}
	for i := range r.Leaks {
		r.Leaks[i].Path = clean.Redact(r.Leaks[i].Path)
	}
}

// Interrupt ends an attempt whose process stopped. commit is the pushed commit, or empty; left is the work to continue,
// or nil.
func (a *Attempt) Interrupt(ctx context.Context, commit string, left *thread.Unfinished) error {
	const why = "the node that ran it stopped"
	used, err := a.spentBefore(ctx)
	if err != nil {
		return err
	}
	r := policy.Receipt{N: a.N, Ending: policy.Killed, Outcome: policy.Interrupted, Detail: why, Reasons: []string{why}, Commit: commit, Pushed: commit != "",
		Tokens: used.Tokens, CostUSD: used.CostUSD, Limit: used.Limit, Steered: a.steered()}
	now := a.Env.Now()
	batch := thread.Batch{Events: []thread.NewEvent{{Kind: thread.KindAttemptEnded, At: now, Data: r}}}
	if left != nil {
		batch.Events = append(batch.Events, thread.NewEvent{Kind: thread.KindUnfinished, At: now, Data: left})
	}
	if l := used.Limit; l != nil { // A limit counts no matter how the attempt ended.
		a.updateBreaker(&batch, l.Kind, l, now)
	}
	crash.Point("interrupting")
	if err := a.Lease.Append(ctx, batch); err != nil {
		return err
	}
	if a.Place == a.Env.Place {
		_ = git.Remove(a.Env.workOf(a.Thread)) // CleanWork repeats a failed removal
	}
	if a.Env.OnAttempt != nil {
		a.Env.OnAttempt(a.Backend, "", policy.Interrupted)
	}
	return nil
}

// Salvage saves the work of an attempt whose server was killed, or returns nil. The files remain until Interrupt has
// logged the result.
func (a *Attempt) Salvage(ctx context.Context) (*thread.Unfinished, error) {
	if a.Place != a.Env.Place || a.Updates { // the merge will be repeated
		return nil, nil
	}
	leave, err := a.Env.folders.Take(ctx, a.Thread)
	if err != nil {
		return nil, err
	}
	defer leave()
	// Agent output exists only after a complete checkout.
	out, err := os.Open(filepath.Join(a.Env.attemptDir(a.Thread, a.N), transcriptFile))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if err := a.Ground.open(ctx, a.Env, a.Thread); err != nil {
		return nil, err
	}
	c := &checkout{Attempt: a}
	a.executor = c
	if c.adapter, err = clis.For(a.Kind, a.backend().Stream); err != nil {
		return nil, err
	}
	if c.ws, err = a.Ground.cache.Reopen(ctx, c.checkout()); err != nil {
		return nil, err
	}
	defer c.ws.Leave()
	if _, err := c.ws.Restore(ctx, c.adapter.Unguarded); err != nil {
		return nil, err
	}
	report, err := agent.Inspect(out, c.adapter, agent.InspectOptions{Now: a.Env.Now()})
	a.Receipt = policy.Receipt{StartTree: c.ws.StartTree, EndTree: c.ws.StartTree, Ending: policy.Killed, Session: report.SessionID}
	return a.unfinished(ctx), err
}

// spentBefore returns the use logged before a kill or handover.
func (a *Attempt) spentBefore(ctx context.Context) (w policy.Spent, err error) {
	if a.ended() {
		return a.used(), nil
	}
	note, err := a.Env.Store.Noted(ctx, a.Thread)
	if err != nil || note == nil {
		return w, err
	}
	if err := json.Unmarshal(note, &w); err != nil {
		// The attempt's next note replaces this one. The daily ledgers count separately.
		a.Log.Error().Err(err).Int("attempt", a.N).Msg("the note of the attempt's use cannot be read; its tokens count as 0 for the thread")
		return policy.Spent{}, nil
	}
	if w.N != a.N {
		return policy.Spent{}, nil // the note of an earlier attempt
	}
	return w, nil
}

// throwAway discards and lists changes of an attempt that must not change files.
func (c *checkout) throwAway(ctx context.Context, snap git.Snapshot, err error) error {
	const why = "thrown away"
	if errors.Is(err, git.ErrUnsafe) || errors.Is(err, git.ErrTooLarge) {
		c.leaveOut(why, "files that cannot be used")
		return nil
	}
	if err != nil {
		return err
	}
	deleted, edited, added, err := c.ws.Paths(ctx, c.ws.StartTree, snap.Tree)
	all := slices.Concat(deleted, edited, added)
	c.leaveOut(why, all[:min(len(all), maxThrown)]...)
	if more := len(all) - maxThrown; more > 0 {
		c.leaveOut(why, policy.Plural(more, "more file"))
	}
	return err
}

const maxThrown = 20
