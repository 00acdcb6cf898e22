package gateway

import (
	"fmt"
	"math"

	"github.com/tidwall/gjson"
)

// sureTokens is the stretch of prose over which a model's confidence is taken: some three sentences, so that one
// odd word does not count.
const sureTokens = 64

// sureness holds the log-probabilities of the last tokens of prose.
type sureness struct {
	last [sureTokens]float64
	n    int
}

// add takes the list of log-probabilities of one event; other JSON is none.
func (s *sureness) add(list gjson.Result) {
	for v := range elements(list) {
		if v.Type == gjson.Number {
			s.last[s.n%sureTokens] = min(v.Num, 0)
			s.n++
		}
	}
}

// value is the geometric mean of the tokens' probabilities; false before there are enough of them.
func (s *sureness) value() (float64, bool) {
	sum := 0.0
	for _, p := range s.last {
		sum += p
	}
	return math.Exp(sum / sureTokens), s.n >= sureTokens
}

// sureOf has a request ask for the log-probabilities of the answer, where its protocol knows them.
func (kind callKind) sureOf(body string) string {
	d, f := draft{body}, forms[kind]
	if f.sure != "" {
		d.set(f.sure, f.sureValue)
	}
	return d.body
}

// judge ends the attempt, once, when an answer that calls no tool comes to nothing: its prose goes on for too long, or
// the model is less sure of it than the operator wants. Reasoning is no prose.
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
