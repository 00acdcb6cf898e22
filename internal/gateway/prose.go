package gateway

import (
	"fmt"
	"math"

	"github.com/tidwall/gjson"
)

// sureTokens is the number of tokens over which confidence is averaged: about three sentences.
const sureTokens = 64

// sureness stores the log-probabilities of the last tokens of prose.
type sureness struct {
	last [sureTokens]float64
	n    int
}

func (s *sureness) add(list gjson.Result) {
	for v := range elements(list) {
		if v.Type == gjson.Number {
			s.last[s.n%sureTokens] = min(v.Num, 0)
			s.n++
		}
	}
}

// value returns the geometric mean of the probabilities, once sureTokens are known.
func (s *sureness) value() (float64, bool) {
	sum := 0.0
	for _, p := range s.last {
		sum += p
	}
	return math.Exp(sum / sureTokens), s.n >= sureTokens
}

// sureOf requests log-probabilities if the protocol has them.
func (kind callKind) sureOf(body string) string {
	d, f := draft{body}, forms[kind]
	if f.sure != "" {
		d.set(f.sure, f.sureValue)
	}
	return d.body
}

// judge ends the attempt once an answer without a tool call has too much prose or too little confidence. Reasoning
// does not count.
func (c *call) judge(got *answer) {
	if c.grant.OnFruitless == nil || c.grant.NoAnswerBytes == 0 {
		return
	}
	if got.tool || !c.req.tools {
		return
	}
	why := ""
	if sure, known := got.sure.value(); known && sure < c.grant.MinConfidence {
		why = fmt.Sprintf("the model wrote prose without a tool call, and its confidence over %d tokens fell to %.2f, below %.2f", sureTokens, sure, c.grant.MinConfidence)
	}
	if got.prose > c.grant.NoAnswerBytes {
		why = fmt.Sprintf("the model wrote more than %d bytes of prose in one answer without a tool call", c.grant.NoAnswerBytes)
	}
	if why != "" {
		c.endFruitless(why, true)
		c.cancel()
	}
}
