package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// limitGrace is how long an agent may go on after its provider said that the account is used up: some end by
// themselves within seconds and say so, others sleep until the reset.
const limitGrace = 10 * time.Second

// inPlace is how long a wait may be that an agent sits out itself. A longer one is the run's: stored, shown, and it
// costs nothing.
const inPlace = 30 * time.Second

// cut is a cause for which an attempt is ended whose work is settled as if its agent had
// ended: what it ended with, where that is not for its output to tell, and why.
type cut struct {
	ending  policy.Ending
	why     string
	paused  bool // see Receipt.Paused, Receipt.Rambled
	rambled bool
}

func (c cut) Error() string { return c.why }

// limitCut ends an attempt whose agent sleeps for a limit to pass.
func limitCut(l policy.Limit) cut {
	return cut{why: fmt.Sprintf("ended because it waited for a limit to pass (%s)", oneLine(l.Message))}
}

// fromBreaker is the source of a limit that Pawl itself told the agent: the account was known to be limited.
const fromBreaker = "breaker"

// modelAccess is an attempt's way to its model. It has no session for a backend that
// signs in by itself. The zero value is ready for one.
type modelAccess struct {
	endpoint agent.Endpoint
	session  atomic.Pointer[gateway.Session]
	refused  atomic.Pointer[policy.Limit] // what the breaker said when it refused a call
	living   atomic.Value                 // a func() that is told each sign of life there, once the agent runs

	mu sync.Mutex
	// reported adds up what an agent tells of its steps while it runs, as opencode does.
	// The others tell it once, at their end.
	reported policy.Spent
}

// open gives an attempt access to its model. The limits that show there are told to end
// if the agent waits for them to pass; the caller must close it.
func (c *checkout) open(ctx context.Context, end context.CancelCauseFunc) (err error) {
	b, m := c.backend(), &c.models
	c.hold("")
	if b.Provider == "" {
		return nil
	}
	p, ok := c.Config.Provider(b.Provider)
	if !ok || c.Env.Gateway == nil {
		return fmt.Errorf("provider %q of backend %s is not configured", b.Provider, b.Name)
	}
	p.Prices = p.PriceList()
	opened := c.Env.Gateway.Open(c.grant(ctx, p, end))
	m.session.Store(opened)
	c.hold(opened.Token())
	m.endpoint = agent.Endpoint{
		Protocol: p.Protocol,
		URL:      fmt.Sprintf("http://127.0.0.1:%d", gatewayPort),
		Token:    opened.Token(),
	}
	if !c.Env.Sandbox.Networks() { // else wall serves it
		m.endpoint.URL, err = opened.Listen()
	}
	return err
}

// grant is what the attempt may do at the gateway.
func (c *checkout) grant(ctx context.Context, p config.Provider, end context.CancelCauseFunc) gateway.Grant {
	b, m := c.backend(), &c.models
	g := gateway.Grant{
		Attempt:    fmt.Sprintf("%s/%d", c.Thread, c.N),
		Provider:   p,
		Model:      b.Model,
		SideModels: slices.Concat(b.SideModels, c.adapter.SideModels),
		MaxTokens:  c.Ground.Effective.Policy.Budget.TokensPerAttempt,
		MaxCostUSD: c.Ground.Effective.Policy.Budget.USDPerAttempt,
		Limited: func(ctx context.Context) (policy.Limit, bool) {
			return c.limitedCall(ctx, end)
		},
		OnFruitless: func(why string, effort bool) {
			end(cut{ending: policy.NoAnswer, why: why, rambled: effort})
		},
		OnLife: func() {
			if tell, ok := m.living.Load().(func()); ok {
				tell()
			}
		},
		OnLimit: func(policy.Limit) {
			time.AfterFunc(limitGrace, func() {
				if ctx.Err() == nil {
					c.endSleep(end)
				}
			})
		},
	}
	if c.Ground.Effective.Policy.Ladder.NoAnswerRetry {
		g.NoAnswerBytes, g.MinConfidence = p.NoAnswerBytes, p.MinConfidence
	}
	return g
}

// limitedCall is asked before each call of the model: a budget that is used up ends the attempt, a limit of the account
// is answered in place of the provider.
func (c *checkout) limitedCall(ctx context.Context, end context.CancelCauseFunc) (policy.Limit, bool) {
	c.note(ctx, c.models.used())
	if why := c.bound(ctx, end); why != "" {
		return policy.Limit{Kind: policy.UsageLimit, Message: "Pawl stopped it: " + why + "."}, true
	}
	l, limited := c.Env.limited(ctx, c.Account, c.Began)
	if limited && c.models.refused.CompareAndSwap(nil, &l) {
		// An agent that sleeps until then is not waited for, either.
		time.AfterFunc(limitGrace, func() { end(limitCut(l)) })
	}
	return l, limited
}

// endSleep ends an attempt whose agent has not ended by itself since its provider told a limit that lasts.
func (c *checkout) endSleep(end context.CancelCauseFunc) {
	l := c.models.session.Load().Usage().Limit
	if l == nil {
		return
	}
	if ofAccount(l.Kind) || l.ResetsAt.Sub(c.Env.Now()) > inPlace-limitGrace {
		end(limitCut(*l))
	}
}

// ofAccount reports whether an ending says that the account cannot be used.
func ofAccount(e policy.Ending) bool { return e == policy.UsageLimit || e == policy.Auth }

// limited tells the gateway what the account's breaker says: a limit that came
// after the attempt began, from any thread or node, is answered at once. What was
// known before did not keep policy from starting the attempt.
func (e *Env) limited(ctx context.Context, account string, began time.Time) (policy.Limit, bool) {
	ctx, cancel := context.WithTimeout(ctx, lease.RenewTime)
	defer cancel()
	breakers, err := e.Store.Breakers(ctx)
	if err != nil {
		// The provider will say so itself.
		return policy.Limit{}, false
	}
	b := breakers[account]
	until, limited := b.Limited(e.Now())
	if !limited || !b.At.After(began) {
		return policy.Limit{}, false
	}
	return policy.Limit{Kind: b.Kind, Message: fmt.Sprintf("account %s: %s", account, b.Kind), ResetsAt: until, Source: fromBreaker}, true
}

// close ends the access and takes what was seen there over into the receipt: it
// was counted outside of the agent's reach.
func (m *modelAccess) close(r *policy.Receipt) {
	session := m.session.Load()
	if session == nil {
		return
	}
	u := session.Close()
	r.Gateway = true
	if u.Requests+u.Refused == 0 {
		seen(r, gateway.Last{Why: "no call"})
		return
	}
	used := spentOf(u)
	r.Tokens, r.CostUSD = used.Tokens, used.CostUSD
	r.Context = u.MaxContext
	if r.Turns == 0 {
		r.Turns = u.Turns
	}
	if u.NoAnswer.Times > 0 {
		r.Rungs = append(r.Rungs, askedAgain(u))
	}
	limit := cmp.Or(u.Limit, m.refused.Load())
	switch {
	case u.BudgetStopped != "":
		stoppedByBudget(r, u.BudgetStopped)
	case limit != nil:
		refused(r, bounded(limit))
	default:
		seen(r, u.Last)
	}
}

// stoppedByBudget takes over that the gateway refused a call, since a budget was used up.
func stoppedByBudget(r *policy.Receipt, why string) {
	r.Limit = nil
	if r.Ending == policy.Completed { // what was refused was not needed any more
		r.Reasons = append(r.Reasons, why)
		return
	}
	r.Ending, r.Budget = policy.TurnLimit, why
	r.Detail = tail(oneLine(why), maxDetail)
	r.Reasons = []string{why} // what the CLI made of it is no plan that is used up
}

// askedAgain is the recovery at the gateway from answers that came to nothing.
func askedAgain(u gateway.Usage) policy.Rung {
	n := u.NoAnswer
	rung := policy.Rung{
		Rung:         policy.RungAnswer,
		Times:        n.Times,
		Helped:       n.Recovered,
		Recovered:    n.Recovered == n.Times,
		Tokens:       n.Tokens,
		WastedTokens: n.Wasted,
		Trigger:      fmt.Sprintf("%d answers without a call of a tool or a text for people", n.Times),
		Response:     "asked again in the opposite thinking mode, at the gateway",
	}
	if u.CostKnown {
		rung.CostUSD, rung.WastedUSD = &n.CostUSD, &n.WastedUSD
	}
	return rung
}

// ofProvider are the endings that only the gateway can tell, where an attempt has one.
var ofProvider = []policy.Ending{policy.UsageLimit, policy.RateLimited, policy.Overloaded, policy.Auth, policy.Disconnected}

// seen corrects the ending by the last main answer. An agent that prints a limit which the gateway did not see
// has crashed: what it prints says nothing of the account, of which all threads would hear.
func seen(r *policy.Receipt, last gateway.Last) {
	said := r.Ending
	r.Limit = nil
	switch {
	case outweighs(last, said):
		r.Ending = last.Ending
	case slices.Contains(ofProvider, said):
		r.Ending = policy.Crashed
	}
	if r.Ending != said {
		r.Reasons = append(r.Reasons, fmt.Sprintf("the agent's output says %s; the gateway saw %s", render.Spaced(said), last.Why))
	}
}

// outweighs reports whether the last main answer says better than the agent's output how the attempt ended.
func outweighs(last gateway.Last, said policy.Ending) bool {
	switch said {
	case policy.TimedOut, policy.Killed, policy.Misconfigured:
		return false
	}
	completed := said == policy.Completed
	switch last.Ending {
	case policy.CutOff, policy.NoAnswer:
		return !completed || !last.Empty
	case policy.Disconnected:
		return !completed
	}
	return false
}

// refused takes a limit over that the gateway saw and that no answer followed. It
// decides for every agent that did not end well; one that says it completed is
// believed if it changed something, but its account is limited all the same.
func refused(r *policy.Receipt, seen *policy.Limit) {
	said := r.Ending
	if said == policy.Completed {
		if !ofAccount(seen.Kind) {
			r.Limit = nil
			return
		}
		r.Limit = seen
		r.Reasons = append(r.Reasons, "the gateway saw a limit that the agent did not tell: "+seen.Message)
		return
	}
	if said != seen.Kind {
		r.Reasons = append(r.Reasons, fmt.Sprintf("the gateway saw %s: %s", render.Spaced(seen.Kind), seen.Message))
	}
	r.Limit, r.Ending = seen, seen.Kind
	r.Detail = cmp.Or(r.Detail, tail(oneLine(seen.Message), maxDetail))
}

// spentInterval is how often it is noted what an attempt used, besides before each call.
const spentInterval = 2 * time.Second

func spentOf(u gateway.Usage) policy.Spent {
	w := policy.Spent{Tokens: u.Tokens, Limit: bounded(u.Limit)}
	if u.CostKnown {
		w.CostUSD = &u.CostUSD
	}
	return w
}

// spentIn is what the receipt of an agent that has ended tells, which is more where
// the agent signs in by itself. What the breaker said it knows.
func spentIn(r policy.Receipt) policy.Spent {
	w := policy.Spent{Tokens: r.Tokens, CostUSD: r.CostUSD, Limit: r.Limit}
	if r.Limit != nil && r.Limit.Source == fromBreaker {
		w.Limit = nil
	}
	return w
}

func (m *modelAccess) event(e agent.Event) {
	if !e.Step {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	step := policy.Spent{CostUSD: e.Cost}
	if e.Tokens != nil {
		step.Tokens = *e.Tokens
	}
	m.reported = m.reported.Plus(step)
}

// note writes into the store, under the lease, what was used so far, unless that was done or is nothing: budgets and
// breakers bind also where the process that counted was killed and another node
// goes on. What is lost with a process are the calls in flight.
func (a *Attempt) note(ctx context.Context, w policy.Spent) {
	if spentNothing(w) {
		return
	}
	w = w.Plus(a.used())
	w.N = a.N
	a.noting.Lock()
	defer a.noting.Unlock()
	if reflect.DeepEqual(w, a.noted) {
		return
	}
	err := lease.Within(ctx, lease.RenewTime, func(ctx context.Context) error {
		return a.Env.Store.Note(ctx, a.Lease.Current(), w)
	})
	if err == nil {
		a.noted = w
		return
	}
	a.warnUnlessOver(ctx, err, "what the attempt uses was not noted")
}

// warnUnlessOver logs an error in the background of an attempt. What ends the attempt shows elsewhere: a context that
// ended, a lease that was lost.
func (a *Attempt) warnUnlessOver(ctx context.Context, err error, what string) {
	if ctx.Err() == nil && !errors.Is(err, thread.ErrLeaseLost) {
		a.Log.Warn().Err(err).Msg(what)
	}
}

// spentNothing reports whether there is nothing to note.
func spentNothing(w policy.Spent) bool {
	if w.Tokens != (policy.Tokens{}) || w.Limit != nil {
		return false
	}
	return w.CostUSD == nil || *w.CostUSD == 0
}

// bound ends the attempt when a budget of the day is used up, the thread's or one above it, and says which
// one. Of what each attempt uses only the calls in flight are not counted yet.
func (c *checkout) bound(ctx context.Context, end context.CancelCauseFunc) (why string) {
	f := c.State.Facts(c.Env.Now())
	f.Limits = c.Ground.Effective.Policy.Limits
	f.Handed.Used = f.Handed.Used.Plus(c.models.used())
	ledgers := []policy.Ledger{f.Thread()}
	ctx, cancel := context.WithTimeout(ctx, lease.RenewTime)
	defer cancel()
	since := c.Env.Now().Add(-policy.Day)
	used, err := c.Env.Store.Usage(ctx, c.Thread.Repo(), c.State.Snapshot.Installation, since)
	if err == nil { // else the next look, or the next attempt's start, finds it
		ledgers = append(ledgers, f.Limits.Ledgers(used)...)
		ledgers = append(ledgers, f.Limits.Account(c.Account, used))
	}
	for _, l := range ledgers {
		if why := l.Spent(); why != "" {
			end(cut{ending: policy.TurnLimit, why: why, paused: true})
			return why
		}
	}
	return ""
}

// used is what an attempt used so far: as the gateway counts it, and without one as the agent tells.
func (m *modelAccess) used() policy.Spent {
	if session := m.session.Load(); session != nil {
		return spentOf(session.Usage())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reported
}

// keepNoting notes what is used, and ends the attempt where that is too much, until ctx ends or the function
// that it returns is called, which waits until nothing is noted any more.
func (c *checkout) keepNoting(ctx context.Context, end context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for wait.For(ctx, spentInterval) == nil {
			c.note(ctx, c.models.used())
			c.bound(ctx, end)
		}
	})
	return func() { cancel(); work.Wait() }
}
