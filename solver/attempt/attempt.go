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
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// Attempt is one attempt: its start, its tools, and its result so far. Every exported field is required.
type Attempt struct {
	Env    *Env
	Config *config.Server // of its start
	thread.Started
	Thread thread.ID
	// State is the thread after the attempt was logged.
	State  thread.State
	Lease  *lease.Holder
	Log    zerolog.Logger
	Ground *Ground
	Prompt string
	// ContextFiles are files for the agent below contextDir of its HOME, by name.
	ContextFiles map[string]string
	// Pictures are the files among them that the CLI gets at its start.
	Pictures []string
	// Author and Email are the committer; Trailer ends the commit's message.
	Author, Email, Trailer string
	// SigningKey is the file of an SSH key that signs commits; empty for none.
	SigningKey string
	// Release releases the attempt's slot and probe. It may be called again.
	Release func()
	// Attend answers and acknowledges events during the attempt.
	Attend func(context.Context)
	// Allowed is called before the push: ErrRevoked if no requester may write any more.
	Allowed func(context.Context) error
	Receipt policy.Receipt

	executor Executor
	made     bool               // all but the push
	handed   *thread.Unfinished // logged instead of the receipt
	noting   sync.Mutex
	noted    policy.Spent // what note last wrote
	wrote    feedback.Authored
	wroteAt  time.Time // when the agent's texts were last logged
	atOnce   int       // immediate logs so far
}

// Executor does the parts of an attempt: with git, the sandbox and an agent (NewCheckout), or as a test double.
// Results go into the receipt.
type Executor interface {
	// Open makes the agent's files, and Close removes them.
	Open(context.Context) error
	Close()
	// Agent runs the agent to its end. cause is why it was ended from outside, or unusable.
	Agent(context.Context) (cause, err error)
	// Commit commits the agent's changes, if any.
	Commit(context.Context) error
	Verify(context.Context) ([]policy.Verified, error)
	// Push moves the thread's branch to the commit; PushKept makes a separate branch for it.
	Push(context.Context) error
	PushKept(ctx context.Context, branch string) error
	// PushUnfinished keeps the commit at GitHub for the attempt that continues.
	PushUnfinished(context.Context) error
	// Judge asks the operator's judge; nil for none.
	Judge(context.Context) (*policy.Judged, error)
}

func (a *Attempt) backend() config.Backend {
	return BackendNamed(a.Ground.Effective.Backends, a.Backend)
}

// Run runs the attempt. A failure of Pawl makes an interrupted attempt with the reason, and is the error.
func (a *Attempt) Run(ctx context.Context, e Executor) error {
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
	// An answer or a plan is not verified, and only its text is used.
	if err := a.executor.Commit(ctx); err != nil {
		return a.broken(ctx, err)
	}
	a.conclude()
	return nil
}

// settle commits the agent's work, verifies it, or the earlier work that it continued, and pushes it. Work that
// fails its verification is pushed, too: users see it in the draft pull request, and the next attempt starts from
// it.
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

// verifiable reports whether there is work to verify: a commit, however the CLI ended, or an earlier attempt's work
// that this one continued to its own end.
func (a *Attempt) verifiable() bool {
	r := a.Receipt
	switch a.came() {
	case policy.Asked:
		return false
	case policy.Declined: // asked about tests that fail as on the base, it only says whether they are part of its task
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

// Deliver ends an attempt that was handed over with its receipt: its work is pushed, unless GitHub has it already,
// and no agent is asked again.
func (a *Attempt) Deliver(ctx context.Context, e Executor) error {
	a.executor = e
	a.Receipt = *a.State.Unfinished.Receipt
	a.Receipt.Tokens, a.Receipt.CostUSD = policy.Tokens{}, nil // counted in Unfinished.Used
	return a.land(ctx, nil)
}

// land pushes the commit and concludes the attempt, unless it failed before.
func (a *Attempt) land(ctx context.Context, err error) error {
	if err == nil && a.Receipt.Commit != "" {
		a.made = true
		err = a.deliver(ctx)
	}
	why := context.Cause(ctx)
	pushed := a.Receipt.Pushed && why != nil // only the rest was cut off
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
		// The work is done and pushed; only its grade is missing.
		a.Receipt.Judge = &policy.Judged{Error: err.Error()}
	}
	return nil
}

// completes reports whether the attempt only continues kept work.
func (a *Attempt) completes() bool {
	f := a.State.Facts(a.Env.Now())
	if running, ok := a.State.Running(); ok {
		f.Attempts = append(f.Attempts, a.State.Fact(running))
	}
	_, stands := f.Standing()
	return stands
}

// broken ends an attempt that Pawl itself could not finish.
func (a *Attempt) broken(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && a.Env.Closing() {
		a.cancelled(ctx, why)
		return nil
	}
	a.Receipt.Outcome, a.Receipt.Detail = policy.Interrupted, err.Error()
	a.Receipt.Reasons = append(a.Receipt.Reasons, "Pawl could not carry the attempt through: "+err.Error())
	return err
}

// unusable is the cause of an end because of unusable files.
type unusable struct{ error }

// unusable records that the agent's files cannot be used, which is its failure.
func (a *Attempt) unusable(err error) {
	a.Receipt.Ending, a.Receipt.Detail = policy.Crashed, tail(oneLine(err.Error()), maxDetail)
	a.Receipt.Reasons = append(a.Receipt.Reasons, err.Error())
}

var (
	errStopped  = errors.New("a user asked to stop")
	errClosed   = errors.New("the thread was closed")
	errShutdown = errors.New("the server is stopping")
	ErrRevoked  = errors.New("the user who asked may not write to the repository any more")
)

// cancelled ends an attempt that was ended from outside.
func (a *Attempt) cancelled(ctx context.Context, cause error) {
	r := &a.Receipt
	handsOver := a.handsOver(ctx, cause)
	complete := handsOver && a.made
	// A provider's answer about the account counts, whatever ended the attempt.
	ended := complete || ofAccount(r.Ending)
	if !ended {
		r.Ending = policy.Killed
	}
	if handsOver {
		a.handOver(ctx, ended)
		return
	}
	switch {
	case errors.Is(cause, ErrRevoked):
		r.Outcome = policy.NotPermitted
	case stopped(cause):
		r.Outcome = policy.Cancelled
	default:
		r.Outcome, cause = policy.Interrupted, errShutdown
	}
	r.Detail = cause.Error()
	r.Reasons = append(r.Reasons, cause.Error())
}

// leaveOut records files that are not committed.
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
	r.Told(p.Evidence())
	r.Limit = bounded(p.Limit)
	if a.Decision.Purpose != policy.ToChange { // the whole text was requested
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
		r.Told(v.Output)
		r.Tests = slices.Sorted(slices.Values(policy.Names(v.Failing)))
		r.Detail = cmp.Or(r.Detail, tail(oneLine(v.Command)+" "+v.Result(), maxDetail))
	}
	answers := a.Decision.Purpose != policy.ToChange
	if r.Ending == policy.Completed {
		switch {
		case r.Limit != nil && !r.Progress(): // the agent called a refusal a success
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
