package gateway

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// maxCalls limits an attempt's concurrent calls; agents with helpers make about ten.
const maxCalls = 16

// maxWaiting limits its served and waiting calls: one agent must not take all connections.
const maxWaiting = 64

// Grant is one attempt's permissions.
type Grant struct {
	// Attempt names it in the log: owner/repo#n/attempt.
	Attempt  string
	Provider config.Provider
	// Model is the attempt's model. Refusals of other models, which agents use for titles and the like, count only
	// if they concern the whole account. Empty means every model.
	Model string
	// SideModels are other allowed models, in the same forms: aliases such as haiku, or whole names.
	SideModels []string
	// MaxTokens limits input and output together, MaxCostUSD the cost; 0 is no limit. The call that crosses a limit
	// is finished, the next is refused; concurrent calls wait if together they would cross it.
	MaxTokens  int64
	MaxCostUSD float64
	// NoAnswerBytes limits the prose before a tool call in an answer to a call with tools; then the answer is halted
	// and the attempt ended. Such answers are held back until their first word, and an empty one is tried again. 0
	// turns rung 1 off.
	NoAnswerBytes int
	// MinConfidence ends an attempt like too much prose: the model's least confidence in prose, 0 to 1. 0 asks for
	// none.
	MinConfidence float64
	Limited       func(context.Context) (policy.Limit, bool) // the breaker, asked before each call
	// OnFruitless is called with the reason when the attempt gets nowhere at its provider. effort: another one may
	// help.
	OnFruitless func(why string, effort bool)
	// OnLife is called for each sign of life, often: a byte of a good answer, a request after an answer.
	OnLife  func()
	OnLimit func(policy.Limit) // called for each limit that counts; it must not block
}

type Usage struct {
	// Requests counts calls to the provider, Refused the calls answered here, Turns the complete answers.
	Requests, Refused, Turns int
	// Input includes CachedInput and cache writes; Output includes reasoning.
	policy.Tokens
	CostUSD   float64
	CostKnown bool          // false if a model has no price; CostUSD leaves it out
	Limit     *policy.Limit // the last one that counts and was not followed by a later call's answer; nil for none
	Last      Last          // the last main call's result
	// BudgetStopped says why calls were refused; empty for none.
	BudgetStopped string
	NoAnswer      Fired
	MaxContext    int64 // the largest input of one call
}

// Last is the end of the last call for the attempt's own model: completed, no_answer (a filter, or no visible
// text), cut_off (the token limit), disconnected, or "" if the provider refused it or none ended.
type Last struct {
	Ending policy.Ending
	Empty  bool   // without text and tool calls
	Why    string // for people
}

type Fired struct {
	// Times counts second tries, Recovered those with a tool call or a visible answer of allowed length.
	Times, Recovered int
	// Tokens and CostUSD are the second tries' use, Wasted and WastedUSD the empty answers' before them; the cost is
	// valid with CostKnown.
	Tokens, Wasted     int64
	CostUSD, WastedUSD float64
}

// Session is one attempt's access. Close ends it.
type Session struct {
	gateway *Gateway
	grant   Grant
	token   string
	server  *http.Server
	slots   chan struct{}
	large   chan struct{} // one slot for a large body
	calls   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	open     map[*call]bool // begun and not ended
	usage    Usage
	atMost   float64       // USD, at the dearest price for models without one
	reserved share         // the maximum of the calls in flight
	freed    chan struct{} // closed when a reservation is released; nil while nobody waits
	// Calls are numbered as they begin, so that an answer shows which limits have ended.
	numbered   int64            // the last one
	answered   map[string]int64 // by model, the last answered call
	limitModel string           // the limited model
	limitCall  int64            // the limited call
	hollow     int              // empty answers in a row
	offers     bool             // a call offered tools; calls without are then not main ones
	gaveUp     string           // OnFruitless's reason; further calls are refused
	heardOf    int              // the number of answers plus one at the last request that was a sign of life
	same       int              // equal answered requests in a row
	last       uint64           // its sum
}

func (s *Session) Token() string { return s.token }

func (s *Session) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// Close stops listening, ends the calls in flight and returns the totals; it may be called again.
func (s *Session) Close() Usage {
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		c.abort()
	}
	s.mu.Unlock()
	s.calls.Wait()
	_ = s.server.Close() // the listeners of a sandbox may be closed already
	return s.Usage()
}

// begin counts a call; the caller must call end. ok is false after Close; crowded: too many calls.
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

// maxAnswered limits the remembered models. Agents use two or three.
const maxAnswered = 64

// limited records and reports a call's limit. It is false if the limit does not concern the attempt: another
// model's, or a later call was answered.
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

// answeredSince reports whether a later call got an answer, which ends this call's refusal. The caller holds the
// lock.
func (c *call) answeredSince() bool {
	for model, at := range c.answered {
		if at > c.number && c.grant.speaksFor(model, c.req.model) {
			return true
		}
	}
	return false
}

// speaksFor reports whether an answer of one model shows that another is not refused.
func (g Grant) speaksFor(model, other string) bool { return model == other || g.means(model) }

// answers notes that the call's answer arrives, which ends earlier calls' limits. A small model's answer does not
// concern the attempt's model.
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

// fruitless is how many answers in a row may be empty, and how often in a row the same request may be answered. A
// healthy agent adds each answer to its next request; in the recorded runs neither occurred twice.
const fruitless = 5

// heard counts endless calls: an agent that ignores its answers or hangs up before they begin, or a provider with
// empty answers.
func (c *call) heard(said *answer) {
	left := said.left() && !said.begun()
	if !left && !said.complete() {
		return // it was broken off, or refused
	}
	c.mu.Lock()
	c.countHollow(said)
	if !left {
		c.countSame()
	}
	why := c.nowhere(left)
	c.mu.Unlock()
	if why != "" && c.grant.OnFruitless != nil {
		c.endFruitless(why, false)
	}
}

// endFruitless refuses further calls before it reports, so that nothing more happens until the agent is gone.
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

func (c *call) countHollow(said *answer) {
	c.hollow++
	if said.useful() {
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

// nowhere says once why the attempt gets nowhere, else "". left: the agent hung up on the last call. The caller
// holds the lock.
func (c *call) nowhere(left bool) string {
	switch {
	case c.closed: // which also ends calls
		return ""
	case c.hollow == fruitless && left:
		return fmt.Sprintf("none of the last %d calls led to a text or a call of a tool: the agent hung up before the answer began", fruitless)
	case c.hollow == fruitless:
		return fmt.Sprintf("the provider's last %d answers held neither a text nor a call of a tool", fruitless)
	case c.same == fruitless:
		return fmt.Sprintf("the agent sent the same request %d times in a row, and each was answered", fruitless)
	}
	return ""
}

// concludes notes a main call's end: for the attempt's model, with tools if the agent offers any.
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

// conclusion is an answer's result for its call.
func (a *answer) conclusion() Last {
	switch {
	case a.failure != nil:
		return Last{Why: "an error within the last answer"}
	case !a.ended && a.broken:
		return Last{Ending: policy.Disconnected, Why: "the last answer broken off, or none of the API"}
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

// alias matches a model's name without a version: sonnet, flash, flash-lite.
var alias = regexp.MustCompile(`^[a-z]+(?:-[a-z]+)*$`)

// means reports whether a model is the attempt's. Names that leave the choice to the agent mean every model.
func (g Grant) means(model string) bool { return means(g.Model, model) }

// allows reports whether the attempt may ask a model.
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

// afterAlias is the rest of a model's name after an alias: a version, a date, or nothing. flash-lite is not flash.
var afterAlias = regexp.MustCompile(`^(?:-\d[\d.-]*)?(?:-(?:preview|latest|exp)[\w.-]*)?$`)
