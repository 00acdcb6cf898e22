package attempt

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/panics"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// Attempt holds an attempt's inputs, tools and results. Prompt, ContextFiles, Pictures and SigningKey may be empty.
type Attempt struct {
	Env    *Env
	Config *config.Server // fixed at the start
	thread.Started
	Thread thread.ID
	State  thread.State
	Lease  *lease.Holder
	Log    zerolog.Logger
	Ground *Ground
	Prompt string
	// ContextFiles maps names below contextDir in the agent's HOME to contents.
	ContextFiles map[string]string
	// Pictures names the context files that the CLI receives at its start.
	Pictures []string
	// Author and Email identify the committer; Trailer ends the commit message.
	Author, Email, Trailer string
	// SigningKey is the path of an SSH key that signs commits; empty to leave them unsigned.
	SigningKey string
	// Release frees the attempt's slot and probe. Repeated calls are harmless.
	Release func()
	// Attend answers and acknowledges events during the attempt.
	Attend func(context.Context)
	// Allowed is called before each push. It returns ErrRevoked if no requester has write permission any more.
	Allowed func(context.Context) error
	Receipt policy.Receipt

	executor Executor
	made     bool               // the commit is ready to push
	handover *thread.Unfinished // logged instead of a receipt
	noting   sync.Mutex
	noted    policy.Spent // last use written by note
	wrote    feedback.Authored
	wroteAt  time.Time // when the agent's text was last logged
	atOnce   int       // number of immediate logs
	steering steering
	// steeredBy holds the writers of the texts that the agent received.
	steeredBy []string
}

// Executor carries out the parts of an attempt and puts the results into its receipt.
type Executor interface {
	Open(context.Context) error
	Close()
	// Agent runs the agent until it ends. cause says why Pawl ended it or cannot use its files.
	Agent(context.Context) (cause, err error)
	Commit(context.Context) error
	Verify(context.Context) ([]policy.Verified, error)
	// Push moves the thread's branch to the commit; PushKept creates a separate branch.
	Push(context.Context) error
	PushKept(ctx context.Context, branch string) error
	// PushUnfinished stores the commit on GitHub so that another attempt can continue.
	PushUnfinished(context.Context) error
	// Judge asks the configured judge for a grade; it returns nil without a judge.
	Judge(context.Context) (*policy.Judged, error)
}

func (a *Attempt) backend() config.Backend {
	return a.Config.OnAccount(BackendNamed(a.Ground.Effective.Backends, a.Backend), a.Account)
}

// Run runs the attempt. If Pawl fails, Run records an interrupted attempt and returns the error. A panic ends the
// attempt as crashed instead, because it would probably recur and the rules for crashes limit retries.
func (a *Attempt) Run(ctx context.Context, e Executor) error {
	err := panics.Try(func() error { return a.run(ctx, e) })
	stack := panics.Stack(err)
	if stack == "" {
		return err
	}
	a.Log.Error().Err(err).Str("stack", stack).Msg("the attempt panicked")
	a.unusable(err)
	a.Receipt.Outcome = a.came()
	return nil
}

func (a *Attempt) run(ctx context.Context, e Executor) error {
	a.executor = e
	leave, err := a.Env.folders.Take(ctx, a.Thread)
	if err != nil {
		return a.broken(ctx, err)
	}
	defer leave()
	defer a.executor.Close()
	if err := a.executor.Open(ctx); err != nil {
		return a.broken(ctx, err)
	}
	var cause error
	if a.NoAgent {
		a.Receipt.Ending, a.Receipt.Reasons = policy.Completed, []string{a.Ground.Base + " was merged without a conflict; no agent was asked"}
	} else {
		cause, err = a.executor.Agent(ctx)
	}
	a.Lease.Patient(true)
	if err != nil {
		return a.broken(ctx, err)
	}
	if loop := (LoopCut{}); errors.As(cause, &loop) {
		a.keep(ctx, loop)
		return nil
	}
	if left := (unusable{}); errors.As(cause, &left) {
		a.unusable(left)
		a.Receipt.Outcome = a.came()
		return nil
	}
	if cause != nil {
		a.cancelled(ctx, cause)
		return nil
	}
	if a.Decision.Purpose == policy.ToChange {
		return a.settle(ctx)
	}
	if err := a.executor.Commit(ctx); err != nil {
		return a.broken(ctx, err)
	}
	a.conclude()
	return nil
}

// settle commits, verifies and pushes the work. It also pushes work that failed verification: users see it in the
// draft pull request, and the next attempt starts from it.
func (a *Attempt) settle(ctx context.Context) error {
	err := a.executor.Commit(ctx)
	crash.Point("committed")
	if err == nil && a.verifiable() {
		a.Receipt.Verify, err = a.executor.Verify(ctx)
		crash.Point("verified")
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	return a.land(ctx, err)
}

// verifiable reports whether the attempt has a commit or completed an earlier attempt's work.
func (a *Attempt) verifiable() bool {
	r := a.Receipt
	switch a.came() {
	case policy.Asked:
		return false
	case policy.Declined: // the agent only said whether known failures belong to its task
		return a.Decision.Rule == policy.RuleStillFailing && a.completes()
	default:
	}
	if r.Commit != "" {
		return true
	}
	switch r.Ending {
	case policy.Completed, policy.Crashed:
		return a.completes()
	default:
		return false
	}
}

// Deliver finishes a handed-over attempt whose agent ended: it pushes the work if GitHub lacks it and completes the
// receipt. No agent runs.
func (a *Attempt) Deliver(ctx context.Context, e Executor) error {
	a.executor = e
	a.Receipt = *a.State.Unfinished.Receipt
	a.Receipt.Tokens, a.Receipt.CostUSD = policy.Tokens{}, nil // already in Unfinished.Used
	return a.land(ctx, nil)
}

func (a *Attempt) land(ctx context.Context, err error) error {
	if err == nil && a.Receipt.Commit != "" {
		a.made = true
		err = a.deliver(ctx)
	}
	why := context.Cause(ctx)
	pushed := a.Receipt.Pushed && why != nil // only later steps were cut off
	if err != nil && !pushed {
		if why == nil && !stopped(err) {
			return a.broken(ctx, err)
		}
		a.cancelled(ctx, errors.Join(err, why))
		return nil
	}
	a.conclude()
	a.Receipt.Judge, err = a.executor.Judge(ctx)
	if err != nil {
		a.Receipt.Judge = &policy.Judged{Error: err.Error()}
	}
	return nil
}

// completes reports whether an earlier attempt left work for the same request. Then success needs no new change.
func (a *Attempt) completes() bool {
	f := a.State.Facts(a.Env.Now())
	if running, ok := a.State.Running(); ok {
		f.Attempts = append(f.Attempts, a.State.Fact(running))
	}
	_, kept := f.KeptWork()
	return kept
}

// broken ends an attempt after a failure of Pawl.
func (a *Attempt) broken(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && a.Env.Closing() {
		a.cancelled(ctx, why)
		return nil
	}
	a.Receipt.Outcome, a.Receipt.Detail = policy.Interrupted, err.Error()
	a.Receipt.Reasons = append(a.Receipt.Reasons, "Pawl could not complete the attempt: "+err.Error())
	return err
}

type unusable struct{ error }

// unusable ends the attempt as crashed, after a panic or with unusable files.
func (a *Attempt) unusable(err error) {
	a.Receipt.Ending, a.Receipt.Detail = policy.Crashed, tail(oneLine(err.Error()), maxDetail)
	a.Receipt.Reasons = append(a.Receipt.Reasons, err.Error())
}

var (
	errStopped  = errors.New("a user asked to stop")
	errClosed   = errors.New("the thread was closed")
	errMoved    = errors.New("the branch moved meanwhile; the watch begins again on the new head")
	errShutdown = errors.New("the server is stopping")
	ErrRevoked  = errors.New("the user who asked may not write to the repository any more")
)

// cancelled ends an attempt that Pawl or a user stopped.
func (a *Attempt) cancelled(ctx context.Context, cause error) {
	r := &a.Receipt
	handsOver := a.handsOver(ctx, cause)
	complete := handsOver && a.made
	// A usage limit or a refused login counts no matter how the attempt ended.
	ended := complete || ofAccount(r.Ending)
	if !ended {
		r.Ending = policy.Killed
	}
	if handsOver {
		a.saveHandover(ctx, ended)
		return
	}
	switch {
	case errors.Is(cause, ErrRevoked):
		r.Outcome = policy.NotPermitted
	case stopped(cause):
		r.Outcome, r.Moved = policy.Cancelled, errors.Is(cause, errMoved)
	default:
		r.Outcome, cause = policy.Interrupted, errShutdown
	}
	r.Detail = cause.Error()
	r.Reasons = append(r.Reasons, cause.Error())
}

func (a *Attempt) leaveOut(why string, paths ...string) {
	for _, path := range paths {
		a.Receipt.LeftOut = append(a.Receipt.LeftOut, path+" ("+why+")")
	}
}

func (a *Attempt) Report(p agent.Report, edits policy.Edits) {
	r := &a.Receipt
	r.Ending, r.Reasons, r.Edits = p.Ending, p.Reasons, edits
	if why := edits.Repetition(); why != "" {
		r.Reasons = append(r.Reasons, why)
	}
	r.Detail = tail(oneLine(p.Failure), maxDetail)
	r.Tokens, r.CostUSD, r.Session = p.Tokens, p.CostUSD, p.SessionID
	r.ToolCalls, r.Turns, r.Mentions = p.ToolCalls, p.Turns, p.Mentions
	r.Exit, r.AgentMS = p.Exit.Code, p.Duration.Milliseconds()
	if p.Silent > 0 {
		r.Silent = render.Span(p.Silent)
	}
	r.SetEvidence(p.Evidence())
	r.Limit = bounded(p.Limit)
	if a.Decision.Purpose != policy.ToChange { // the user asked for the whole text
		r.Final = render.Excerpt(p.FinalMessage, maxAnswer)
		return
	}
	answer := policy.ReadAnswer(p.FinalMessage)
	r.Final, r.Declined = tail(answer.Text, maxOutput), agent.Shorten(answer.Declined, maxDetail)
	r.Question, r.Title = agent.Shorten(answer.Question, maxDetail), agent.Shorten(answer.Title, maxTitle)
	for _, words := range answer.LeftOut {
		r.NotDone = append(r.NotDone, agent.Shorten(words, maxDetail))
	}
	for _, one := range answer.Remarks {
		one.Words = agent.Shorten(one.Words, maxDetail)
		r.Remarks = append(r.Remarks, one)
	}
}

func (a *Attempt) conclude() {
	r := &a.Receipt
	if r.Failing() {
		v := r.Deciding()
		r.SetEvidence(v.Output)
		r.Tests = slices.Sorted(slices.Values(policy.Names(v.Failing)))
		r.Detail = cmp.Or(r.Detail, tail(oneLine(v.Command)+" "+v.Result(), maxDetail))
	}
	answers := a.Decision.Purpose != policy.ToChange
	if r.Ending == policy.Completed {
		switch {
		case r.Limit != nil && !r.Progress(): // the agent reported a refusal as success
			r.Ending = r.Limit.Kind
		case answers && r.Final == "":
			r.Ending = policy.NoAnswer
		}
	}
	r.Outcome = a.came()
}

func (a *Attempt) came() policy.Outcome {
	return a.Receipt.Came(a.Decision.Purpose, a.Ground.Effective.Policy.Severity)
}
