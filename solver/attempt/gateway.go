package attempt

import (
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
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// limitGrace lets an agent end by itself after its account is used up. Some agents would sleep until the reset.
const limitGrace = 10 * time.Second

// inPlace is the longest wait during which the agent keeps running. Longer waits end the attempt.
const inPlace = 30 * time.Second

// cut ends an attempt whose work still counts. ending applies unless it is empty or the agent had completed.
type cut struct {
	ending  policy.Ending
	why     string
	paused  bool // see Receipt.Paused, Receipt.Rambled
	rambled bool
}

func (c cut) Error() string { return c.why }

func limitCut(l policy.Limit) cut {
	return cut{why: fmt.Sprintf("ended because it waited for a limit to pass (%s)", oneLine(l.Message))}
}

// fromBreaker marks limits that Pawl itself reported.
const fromBreaker = "breaker"

// modelAccess holds an attempt's access to its model. Agents that log in themselves have no gateway session.
type modelAccess struct {
	endpoint agent.Endpoint
	session  atomic.Pointer[gateway.Session]
	refused  atomic.Pointer[policy.Limit] // why the breaker refused a call
	last     gateway.Last                 // end of the last main call; set by close
	living   atomic.Value                 // func() called at each sign of life
	windows  windowLog
	claimed  windowLog // windows in the agent's output and session file

	mu sync.Mutex
	// reported sums the use that agents such as OpenCode report after each step.
	reported policy.Spent
}

// open gives the attempt access to its model. The gateway calls end at a limit and after fruitless calls. The caller
// must close the access.
func (c *checkout) open(ctx context.Context, end context.CancelCauseFunc) (err error) {
	b, m := c.backend(), &c.models
	c.holdTokens("")
	if b.Provider == "" {
		return nil
	}
	p, ok := c.Config.Provider(b.Provider)
	if !ok || c.Env.Gateway == nil {
		return fmt.Errorf("provider %q of backend %s is not configured", b.Provider, b.Name)
	}
	p.Prices = p.PriceList()
	c.beginWindows(ctx)
	opened := c.Env.Gateway.Open(c.grant(ctx, p, end))
	m.session.Store(opened)
	c.holdTokens(opened.Token())
	m.endpoint = agent.Endpoint{
		Protocol: p.Protocol,
		URL:      fmt.Sprintf("http://127.0.0.1:%d", gatewayPort),
		Token:    opened.Token(),
	}
	if !c.Env.Sandbox.Networks() { // otherwise restrictNetwork serves the session
		m.endpoint.URL, err = opened.Listen()
	}
	return err
}

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
		OnWindows: m.windows.add,
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

// limitedCall checks the budgets and the breaker before each model call. At a limit the gateway refuses the call
// without asking the provider.
func (c *checkout) limitedCall(ctx context.Context, end context.CancelCauseFunc) (policy.Limit, bool) {
	c.note(ctx, c.models.used())
	if why := c.bound(ctx, end); why != "" {
		return policy.Limit{Kind: policy.UsageLimit, Message: "Pawl stopped it: " + why + "."}, true
	}
	l, limited := c.Env.limited(ctx, c.Account, c.Began)
	if limited && c.models.refused.CompareAndSwap(nil, &l) {
		// The agent must not sleep until the reset.
		time.AfterFunc(limitGrace, func() { end(limitCut(l)) })
	}
	return l, limited
}

// endSleep ends an attempt whose agent sleeps after a limit.
func (c *checkout) endSleep(end context.CancelCauseFunc) {
	l := c.models.session.Load().Usage().Limit
	if l == nil {
		return
	}
	if ofAccount(l.Kind) || l.ResetsAt.Sub(c.Env.Now()) > inPlace-limitGrace {
		end(limitCut(*l))
	}
}

func ofAccount(e policy.Ending) bool { return e == policy.UsageLimit || e == policy.Auth }

// limited returns an account's limit from any thread or node, unless the limit is older than the attempt.
func (e *Env) limited(ctx context.Context, account string, began time.Time) (policy.Limit, bool) {
	ctx, cancel := context.WithTimeout(ctx, lease.RenewTime)
	defer cancel()
	breakers, err := e.Store.Breakers(ctx)
	if err != nil {
		// The provider will refuse the call if the limit still holds.
		return policy.Limit{}, false
	}
	b := breakers[account]
	until, limited := b.Limited(e.Now())
	if !limited || !b.At.After(began) {
		return policy.Limit{}, false
	}
	return policy.Limit{Kind: b.Kind, Message: fmt.Sprintf("account %s: %s", account, b.Kind), ResetsAt: until, Source: fromBreaker}, true
}

// spentInterval is how often an attempt's use is written, in addition to the write before each call.
const spentInterval = 2 * time.Second

func spentOf(u gateway.Usage) policy.Spent {
	w := policy.Spent{Tokens: u.Tokens, Limit: bounded(u.Limit)}
	if u.CostKnown {
		w.CostUSD = &u.CostUSD
	}
	return w
}

// spentIn returns the use in an ended agent's receipt. Limits that came from the breaker are left out.
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

// note stores changed use under the lease, so that budgets and breakers survive a killed process. Calls in flight are
// lost.
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
	a.warnUnlessOver(ctx, err, "the attempt's use was not noted")
}

// warnUnlessOver logs a background error unless the attempt is over.
func (a *Attempt) warnUnlessOver(ctx context.Context, err error, what string) {
	if ctx.Err() == nil && !errors.Is(err, thread.ErrLeaseLost) {
		a.Log.Warn().Err(err).Msg(what)
	}
}

func spentNothing(w policy.Spent) bool {
	if w.Tokens != (policy.Tokens{}) || w.Limit != nil {
		return false
	}
	return w.CostUSD == nil || *w.CostUSD == 0
}

// bound ends the attempt when a daily budget is used up: the thread's, a global one or the account's. Calls in flight
// do not count yet.
func (c *checkout) bound(ctx context.Context, end context.CancelCauseFunc) (why string) {
	f := c.State.Facts(c.Env.Now())
	f.Limits = c.Ground.Effective.Policy.Limits
	f.Handover.Used = f.Handover.Used.Plus(c.models.used())
	ledgers := []policy.Ledger{f.Thread()}
	ctx, cancel := context.WithTimeout(ctx, lease.RenewTime)
	defer cancel()
	since := c.Env.Now().Add(-policy.Day)
	used, err := c.Env.Store.Usage(ctx, c.Thread.Repo(), c.State.Snapshot.Installation, since)
	if err == nil { // otherwise the next check finds the limit
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

// used returns the gateway's count, or without a gateway the agent's own.
func (m *modelAccess) used() policy.Spent {
	if session := m.session.Load(); session != nil {
		return spentOf(session.Usage())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reported
}

// keepNoting writes the use and ends the attempt at a limit. stop waits for the last write.
func (c *checkout) keepNoting(ctx context.Context, end context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(c.guarded(end, func() {
		for wait.For(ctx, spentInterval) == nil {
			c.note(ctx, c.models.used())
			c.noteWindows(ctx)
			c.bound(ctx, end)
		}
	}))
	return func() { cancel(); work.Wait() }
}
