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

// maxCalls bounds the calls of one attempt at the same time; agents with helpers make about ten.
const maxCalls = 16

// maxWaiting bounds those that are served or wait: one agent must not take all connections.
const maxWaiting = 64

// Grant is what one attempt may do.
type Grant struct {
	// Attempt names it in the log: owner/repo#n/attempt.
	Attempt  string
	Provider config.Provider
	// Model is the one that the attempt was given. Of refusals of other models, which agents ask for titles and
	// the like, only those of the whole account count. Empty means every model.
	Model string
	// SideModels are other models that it may ask, in the same forms: aliases such as haiku, or whole names.
	SideModels []string
	// MaxTokens bounds input and output together, MaxCostUSD the cost; 0 is no
	// bound. The call that crosses a bound is finished, the next is refused; calls
	// at the same time wait for each other where together they would cross it.
	MaxTokens  int64
	MaxCostUSD float64
	// NoAnswerBytes is how much prose an answer to a call that offers tools may have without a call of one before it
	// is halted and the attempt ended. Such answers are held back until their first word, and an empty one is tried
	// once more. 0 turns rung 1 off.
	NoAnswerBytes int
	// MinConfidence ends an attempt like too much prose: the least confidence, between 0 and 1, that its model may
	// have in prose. 0 asks for none.
	MinConfidence float64
	Limited       func(context.Context) (policy.Limit, bool) // the breaker's word, asked before each call
	// OnFruitless is told when the attempt gets nowhere at its provider, and why. effort: another one may help.
	OnFruitless func(why string, effort bool)
	// OnLife is told each sign of life, often: a byte of a good answer, a request that follows an answer.
	OnLife  func()
	OnLimit func(policy.Limit) // told each limit that counts as soon as it is seen; it must not block
}

type Usage struct {
	// Requests counts calls that were sent to the provider, Refused those that
	// were answered here, Turns those that the model answered to the end.
	Requests, Refused, Turns int
	// Input includes CachedInput and what was written to a cache; Output includes reasoning.
	policy.Tokens
	CostUSD   float64
	CostKnown bool          // false where a model has no price; CostUSD leaves it out
	Limit     *policy.Limit // the last one that counts and that no later call's answer followed; nil without
	Last      Last          // what came of the last main call
	// BudgetStopped says why calls were refused; empty while none was.
	BudgetStopped string
	NoAnswer      Fired
	MaxContext    int64 // the largest input of one call
}

// Last is how the last call ended that was for the attempt's own model: completed, no_answer (a filter, or
// nothing to read), cut_off (the token limit), disconnected, or "" where the provider refused it or none ended.
type Last struct {
	Ending policy.Ending
	Empty  bool   // the answer held neither a text nor a call of a tool
	Why    string // in words, for people
}

type Fired struct {
	// Times counts second tries, Recovered those that led to a tool call or to a
	// visible answer that is not too long again.
	Times, Recovered int
	// Tokens and CostUSD are what second tries used, Wasted and WastedUSD the answers
	// that came to nothing before them; the money holds where CostKnown does.
	Tokens, Wasted     int64
	CostUSD, WastedUSD float64
}

// Session is the access of one attempt. It ends with Close.
type Session struct {
	gateway *Gateway
	grant   Grant
	token   string
	server  *http.Server
	slots   chan struct{}
	large   chan struct{} // taken by the one that sends a large body
	calls   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	open     map[*call]bool // those that have begun and not ended
	usage    Usage
	atMost   float64       // cost in USD with models without a price at the dearest price
	reserved share         // what the calls in flight may come to
	freed    chan struct{} // closed when some of it is given back; nil while nobody waits
	// Calls are numbered as they begin, so that an answer tells which limits are over.
	numbered   int64            // the last one
	answered   map[string]int64 // by model, the last call that got an answer
	limitModel string           // that the limit of usage was met with
	limitCall  int64            // that met it
	hollow     int              // answers in a row that held nothing
	offers     bool             // a call offered tools: those without are not main ones
	gaveUp     string           // why the attempt gets nowhere, as OnFruitless was told; further calls are refused
	heardOf    int              // one more than the answers that there were when a request last was a sign of life
	same       int              // requests in a row that were the same and were answered
	last       uint64           // its sum
}

func (s *Session) Token() string { return s.token }

func (s *Session) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// Close stops listening, ends the calls in flight and gives the totals; again, the same.
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

// begin counts a call in, for which end must be called; false when the session is closed. crowded: too many are
// there.
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

// maxAnswered bounds the models whose answers are remembered. Agents use two or three.
const maxAnswered = 64

// limited takes a limit down that the call met and tells it. It answers false where that says nothing of this
// attempt: another model was meant, or a call that began later is answered.
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

// answeredSince reports whether a call that began later got an answer, by which the call's own refusal is over. The
// caller holds the lock.
func (c *call) answeredSince() bool {
	for model, at := range c.answered {
		if at > c.number && c.grant.speaksFor(model, c.req.model) {
			return true
		}
	}
	return false
}

// speaksFor reports whether an answer of one model tells that another is not refused.
func (g Grant) speaksFor(model, other string) bool { return model == other || g.means(model) }

// answers notes that the call's answer arrives, after which a limit that an earlier call met is over. A small
// model's answer says nothing of the model that the attempt was given.
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

// fruitless is how many answers in a row may hold neither a text nor a call of a tool,
// and how often in a row the same request may be answered. A healthy agent adds each
// answer to its next request; in the recorded runs neither came twice.
const fruitless = 5

// heard counts what leads nowhere: an agent that takes no notice of its answers, or hangs up before they begin, or whose
// provider answers nothing, asks for ever.
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

// endFruitless refuses further calls before it tells, so that nothing more happens until the agent is gone.
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

// nowhere says why the attempt gets nowhere, once, "" while it may. left: the agent hung up on the last call. The caller
// holds the lock.
func (c *call) nowhere(left bool) string {
	switch {
	case c.closed: // which ends calls, too
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

// concludes notes how a main call ended: one for the attempt's model, with tools where the agent offers any.
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

// conclusion is what an answer says of its call.
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

// means reports whether a model is the one that the attempt was given. Names
// that leave the choice to the agent mean every model.
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

// afterAlias is what follows an alias within a model's name: a version, a date,
// or nothing. flash-lite is not flash.
var afterAlias = regexp.MustCompile(`^(?:-\d[\d.-]*)?(?:-(?:preview|latest|exp)[\w.-]*)?$`)
