package gateway

import (
	"fmt"
	"math"

	"github.com/tidwall/gjson"
)

// sureTokens is the window of a model's confidence: some three sentences of prose, so that one odd word does not
// count.
const sureTokens = 64

// sureness keeps the log-probabilities of the last tokens of prose.
type sureness struct {
	last [sureTokens]float64
	n    int
}

// add adds one event's list of log-probabilities; other JSON has none.
func (s *sureness) add(list gjson.Result) {
	for v := range elements(list) {
		if v.Type == gjson.Number {
			s.last[s.n%sureTokens] = min(v.Num, 0)
			s.n++
		}
	}
}

// value is the geometric mean of the tokens' probabilities; false while there are too few.
func (s *sureness) value() (float64, bool) {
	sum := 0.0
	for _, p := range s.last {
		sum += p
	}
	return math.Exp(sum / sureTokens), s.n >= sureTokens
}

// sureOf makes a request ask for the answer's log-probabilities, if its protocol has them.
func (kind callKind) sureOf(body string) string {
	d, f := draft{body}, forms[kind]
	if f.sure != "" {
		d.set(f.sure, f.sureValue)
	}
	return d.body
}

// judge ends the attempt, once, when an answer without a tool call has too much prose, or the model's confidence in
// it is below the operator's limit. Reasoning is no prose.
func (c *call) judge(said *answer) {
	if c.grant.OnFruitless == nil || c.grant.NoAnswerBytes == 0 {
		return
	}
	if said.tool || !c.req.tools {
		return
	}
	why := ""
	if sure, known := said.sure.value(); known && sure < c.grant.MinConfidence {
		why = fmt.Sprintf("the model wrote prose without a call of a tool, and its confidence over %d tokens fell to %.2f, below %.2f", sureTokens, sure, c.grant.MinConfidence)
	}
	if said.prose > c.grant.NoAnswerBytes {
		why = fmt.Sprintf("the model wrote more than %d bytes of prose in one answer without a call of a tool", c.grant.NoAnswerBytes)
	}
	if why != "" {
		c.endFruitless(why, true)
		c.cancel()
	}
}
