package policy

import (
	"fmt"
	"slices"
	"time"
)

// Rung is one recovery: what set it off, what was done, what that cost, and whether it helped.
type Rung struct {
	Rung     int    `json:"rung"`
	Trigger  string `json:"trigger"`
	Response string `json:"response"`
	Times    int    `json:"times"` // how often it fired
	// Helped is how often it helped, Recovered whether it did each time. The calls of rung 4 do so in the end or not.
	Helped    int  `json:"helped,omitempty"`
	Recovered bool `json:"recovered"`
	// Unneeded says that nothing had failed before, so that there was nothing to recover.
	Unneeded bool     `json:"unneeded,omitempty"`
	Tokens   int64    `json:"tokens,omitempty"`
	CostUSD  *float64 `json:"cost_usd,omitempty"`
	// WastedTokens and WastedUSD are what the answers had used that were thrown away.
	WastedTokens int64    `json:"wasted_tokens,omitempty"`
	WastedUSD    *float64 `json:"wasted_usd,omitempty"`
	MS           int64    `json:"ms,omitempty"`
}

func (r Rung) Took() time.Duration { return time.Duration(r.MS) * time.Millisecond }

// Result says whether it helped, as people are told it.
func (r Rung) Result() string {
	switch {
	case r.Unneeded:
		return "nothing had failed"
	case r.Recovered:
		return "helped"
	case r.Helped > 0:
		return fmt.Sprintf("helped %d of %d times", r.Helped, r.Times)
	}
	return "did not help"
}

// OwnRung is the recovery that an attempt itself was; not ok where it was none. What it cost is what the attempt cost.
// It recovered where it came to what the last one before it that came to its own end did not.
func OwnRung(d Decision, effort string, r Receipt, before []Receipt) (Rung, bool) {
	own := Rung{
		Rung: d.Rung, Times: 1, Trigger: d.Reasons[:min(1, len(d.Reasons))].String(),
		Tokens: r.Tokens.Input + r.Tokens.Output, CostUSD: r.CostUSD, MS: r.AgentMS, Recovered: r.Outcome == Edited, Unneeded: true,
	}
	var last Receipt
	for _, b := range slices.Backward(before) {
		if b.Outcome != Interrupted && b.Outcome != Cancelled && !b.cut() {
			last, own.Unneeded = b, b.Outcome == Edited || b.Outcome == Declined || b.Outcome == Asked
			break
		}
	}
	switch d.Rung {
	case RungAnswer:
		own.Response = "one more attempt in the opposite thinking mode (" + effort + ")"
		own.Recovered = r.Ending == Completed
		own.WastedTokens, own.WastedUSD = last.Tokens.Input+last.Tokens.Output, last.CostUSD
	case RungVerify:
		own.Response = "one more attempt with the change so far and what failed"
	case RungEffort:
		own.Response = "one attempt at the escalated effort"
		if effort != "" {
			own.Response += " (" + effort + ")"
		}
	default:
		return Rung{}, false
	}
	if own.Recovered = own.Recovered && !own.Unneeded; own.Recovered {
		own.Helped = 1
	}
	return own, true
}

// TestCall is one call of the tool run_tests.
type TestCall struct {
	Passed bool  `json:"passed"`
	MS     int64 `json:"ms"`
}

// RanTests is rung 4, that an agent ran the tests itself: it recovered where a call failed and the last one passed.
func RanTests(calls []TestCall) Rung {
	r := Rung{Rung: RungTests, Times: len(calls), Response: "ran the verify commands during the attempt"}
	failed := 0
	for _, c := range calls {
		r.MS += max(0, c.MS)
		if r.Recovered = c.Passed; !c.Passed {
			failed++
		}
	}
	r.Unneeded = failed == 0
	if r.Recovered = r.Recovered && !r.Unneeded; r.Recovered {
		r.Helped = len(calls)
	}
	r.Trigger = fmt.Sprintf("the agent ran the tests; %d of %d calls failed", failed, len(calls))
	return r
}
