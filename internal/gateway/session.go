package gateway

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// maxCalls limits an attempt's concurrent calls; agents with subagents make about ten.
const maxCalls = 16

// maxWaiting limits an attempt's served and waiting calls.
const maxWaiting = 64

// Grant holds an attempt's permissions.
type Grant struct {
	Attempt  string
	Provider config.Provider
	// Model is the attempt's model; empty means every model. Limits of other models count only if they concern the
	// whole account.
	Model string
	// SideModels lists other allowed models: aliases such as haiku, or whole names.
	SideModels []string
	// MaxTokens limits input and output, MaxCostUSD the cost; 0 means no limit. The call that crosses a limit
	// finishes; later calls are refused. Concurrent calls wait if together they would cross a limit.
	MaxTokens  int64
	MaxCostUSD float64
	// NoAnswerBytes limits prose before a tool call in calls with tools; more ends the attempt. Answers are held
	// until their first word, and empty ones are retried once. 0 turns rung 1 off.
	NoAnswerBytes int
	// MinConfidence ends an attempt below this confidence in prose, from 0 to 1; 0 disables the check.
	MinConfidence float64
	Limited       func(context.Context) (policy.Limit, bool) // asks the breaker before each call
	// OnFruitless receives the reason when calls lead nowhere. effort means that another effort may help.
	OnFruitless func(why string, effort bool)
	// OnLife is called for each sign of life: a byte of a good answer, or a request after an answer.
	OnLife  func()
	OnLimit func(policy.Limit) // called for each limit that counts; must not block
	// OnWindows is called with the usage windows that an answer reports; it must not block. Nil ignores them.
	OnWindows func([]policy.Window)
}

type Usage struct {
	// Requests counts calls to the provider, Refused calls that the gateway refused, Turns complete answers.
	Requests, Refused, Turns int
	// Input includes CachedInput and cache writes; Output includes reasoning.
	policy.Tokens
	CostUSD   float64
	CostKnown bool          // false if a model has no price; CostUSD leaves out its calls
	Limit     *policy.Limit // last limit without a later answer, or nil
	Last      Last          // last main call's result
	// BudgetStopped is the budget's reason for refusing calls, or empty.
	BudgetStopped string
	NoAnswer      SecondTries
	MaxContext    int64 // largest input of one call
}

// Last describes how the last call for the attempt's model ended: completed, no_answer (filter or no visible text),
// cut_off (token limit), disconnected, or empty.
type Last struct {
	Ending policy.Ending
	Empty  bool   // no text and no tool calls
	Why    string // for users
}

// SecondTries counts the second tries after empty answers (rung 1).
type SecondTries struct {
	// Times counts second tries; Recovered counts those with a tool call or an allowed answer.
	Times, Recovered int
	// Tokens and CostUSD sum the second tries' usage, Wasted and WastedUSD the empty answers'. Costs are valid with
	// CostKnown.
	Tokens, Wasted     int64
	CostUSD, WastedUSD float64
}

// Session is an attempt's access. Close ends it.
type Session struct {
	gateway *Gateway
	grant   Grant
	token   string
	server  *http.Server
	slots   chan struct{}
	large   chan struct{} // slot for a large body
	calls   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	open     map[*call]bool // calls in flight
	usage    Usage
	atMost   float64       // USD, with models without a price at the highest price
	reserved share         // maximum of calls in flight
	freed    chan struct{} // closed when a reservation is released; nil without waiters
	// Calls are numbered, because an answer to a later call shows that an earlier limit has ended.
	numbered   int64            // last number
	answered   map[string]int64 // last answered call by model
	limitModel string           // limited model
	limitCall  int64            // number of the limited call
	hollow     int              // consecutive empty answers
	offers     bool             // a main call offered tools; later ones must, too
	gaveUp     string           // OnFruitless's reason; later calls are refused
	lifeTurns  int              // the next request is a sign of life once Turns reaches this
	same       int              // consecutive equal answered requests
	last       uint64           // hash of the last answered request
	pausedTo   time.Time        // no call is sent before this time; zero for no pause
}

func (s *Session) Token() string { return s.token }

func (s *Session) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// Close stops listening, ends calls and returns totals. Repeated calls are harmless.
func (s *Session) Close() Usage {
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		c.abort()
	}
	s.mu.Unlock()
	s.calls.Wait()
	_ = s.server.Close() // a sandbox may have closed its listeners
	return s.Usage()
}

// begin counts a call; the caller must call end. ok is false after Close; crowded means too many calls.
func (s *Session) begin(c *call) (crowded, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, false
	}
	s.open[c] = true
	s.calls.Add(1)
	return len(s.open) > maxWaiting, true
}

func (s *Session) end(c *call) {
	s.change(func(*Usage) { delete(s.open, c) })
	s.calls.Done()
}

func (s *Session) change(f func(*Usage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.usage)
}

// maxAnswered limits stored models. Agents use two or three.
const maxAnswered = 64

// limited records and reports a call's limit. It returns false for another model's limit, or after a later answer.
func (c *call) limited(l policy.Limit, ofAccount bool) bool {
	model := c.req.model
	concerns := ofAccount || c.grant.means(model)
	c.mu.Lock()
	counts := concerns && !c.answeredSince()
	if counts {
		c.usage.Limit = &l
		c.limitModel = model
		c.limitCall = c.number
	}
	c.mu.Unlock()
	if counts {
		c.grant.OnLimit(l)
	}
	return counts
}

// answeredSince reports whether a later call was answered. The caller holds the lock.
func (c *call) answeredSince() bool {
	for model, at := range c.answered {
		if at > c.number && c.grant.speaksFor(model, c.req.model) {
			return true
		}
	}
	return false
}

// speaksFor reports whether one model's answer shows that another is not refused.
func (g Grant) speaksFor(model, other string) bool { return model == other || g.means(model) }

// answers records an answer, which ends earlier calls' limits. A side model's answer does not.
func (c *call) answers() {
	model := c.req.model
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.answered[model]; known || len(c.answered) < maxAnswered {
		c.answered[model] = max(c.answered[model], c.number)
	}
	if c.number > c.limitCall && c.grant.speaksFor(model, c.limitModel) {
		c.usage.Limit = nil
	}
}

// fruitless limits consecutive empty answers, and consecutive equal requests that were answered. Healthy recorded
// agents produced no two in a row of either.
const fruitless = 5

// checkFruitless detects endless calls: an agent that ignores or abandons answers, or a provider with empty ones.
func (c *call) checkFruitless(got *answer) {
	left := got.left() && !got.begun()
	if !left && !got.complete() {
		return // broken off, or refused
	}
	c.mu.Lock()
	c.countHollow(got)
	if !left {
		c.countSame()
	}
	why := c.nowhere(left)
	c.mu.Unlock()
	if why != "" && c.grant.OnFruitless != nil {
		c.endFruitless(why, false)
	}
}

// endFruitless refuses further calls before it reports.
func (s *Session) endFruitless(why string, effort bool) {
	s.mu.Lock()
	first := s.gaveUp == ""
	if first {
		s.gaveUp = why
	}
	s.mu.Unlock()
	if first {
		s.grant.OnFruitless(why, effort)
	}
}

func (c *call) countHollow(got *answer) {
	c.hollow++
	if got.useful() {
		c.hollow = 0
	}
}

func (c *call) countSame() {
	if c.req.sum != c.last {
		c.same = 0
	}
	c.same++
	c.last = c.req.sum
}

// nowhere returns once why calls lead nowhere. left means that the agent hung up. The caller holds the lock.
func (c *call) nowhere(left bool) string {
	switch {
	case c.closed: // Close ends calls, too
		return ""
	case c.hollow == fruitless && left:
		return fmt.Sprintf("none of the last %d calls led to text or a tool call: the agent hung up before the answer began", fruitless)
	case c.hollow == fruitless:
		return fmt.Sprintf("the provider's last %d answers contained neither text nor a tool call", fruitless)
	case c.same == fruitless:
		return fmt.Sprintf("the agent sent the same request %d times in a row, and each was answered", fruitless)
	}
	return ""
}

// concludes records how a main call ended: one for the attempt's model, with tools if an earlier one offered any.
func (c *call) concludes(last Last) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if forms[c.route.kind].read == nil || !c.grant.means(c.req.model) {
		return
	}
	if c.offers && !c.req.tools {
		return
	}
	c.offers = c.req.tools
	c.usage.Last = last
}

func (a *answer) conclusion() Last {
	switch {
	case a.failure != nil:
		return Last{Why: "an error within the last answer"}
	case !a.ended && a.broken:
		return Last{Ending: policy.Disconnected, Why: "the last answer broken off, or a response that is not the API's"}
	case !a.ended:
		return Last{Why: "the agent leave during the last answer"}
	case a.nothing():
		return Last{Ending: policy.NoAnswer, Empty: true, Why: "a last answer without words"}
	case a.stop == stopFilter:
		return Last{Ending: policy.NoAnswer, Why: "the last answer ended by a filter"}
	case a.stop == stopLength:
		return Last{Ending: policy.CutOff, Why: "the last answer cut at its token limit"}
	}
	return Last{Ending: policy.Completed, Why: "the last answer end well"}
}

// alias matches model names without a version: sonnet, flash, flash-lite.
var alias = regexp.MustCompile(`^[a-z]+(?:-[a-z]+)*$`)

// means reports whether a model is the attempt's. Names that let the agent choose match every model.
func (g Grant) means(model string) bool { return means(g.Model, model) }

func (g Grant) allows(model string) bool {
	return g.means(model) || slices.ContainsFunc(g.SideModels, func(side string) bool { return means(side, model) })
}

func means(want, got string) bool {
	want, got = strings.ToLower(want), strings.ToLower(got)
	want, _, _ = strings.Cut(want, "[") // opus[1m] is opus
	switch want {
	case "", "auto", "default", "opusplan":
		return true
	}
	if want == got || config.IsModel(want, got) || config.IsModel(got, want) {
		return true
	}
	if !alias.MatchString(want) {
		return false
	}
	at := strings.LastIndex("-"+got, "-"+want)
	return at >= 0 && afterAlias.MatchString(got[at+len(want):])
}

// afterAlias matches what may follow an alias: a version, a date, or nothing. flash-lite is not flash.
var afterAlias = regexp.MustCompile(`^(?:-\d[\d.-]*)?(?:-(?:preview|latest|exp)[\w.-]*)?$`)
