package policy

import (
	"encoding/json"
	"strings"
	"time"
)

// Reason is one reason of a decision.
type Reason struct {
	// Rule is the rule that gives it, which need not be the one that decided.
	Rule Rule `json:"rule,omitempty"`
	// Text is a sentence without a full stop. Where Until is set it ends in the
	// word that asks for that time: it resets at, cooling down until.
	Text  string    `json:"text"`
	Until time.Time `json:"until,omitzero"`
}

// Write is the sentence with its time as the caller writes times.
func (r Reason) Write(write func(time.Time) string) string {
	if r.Until.IsZero() {
		return r.Text
	}
	return r.Text + " " + write(r.Until)
}

// String is the sentence with its time as the contract writes times.
func (r Reason) String() string { return r.Write(Clock) }

// UnmarshalJSON reads a reason. Earlier versions stored the sentence alone, with
// its time in it.
func (r *Reason) UnmarshalJSON(data []byte) error {
	*r = Reason{}
	if strings.HasPrefix(string(data), `"`) {
		return json.Unmarshal(data, &r.Text)
	}
	type stored Reason
	return json.Unmarshal(data, (*stored)(r))
}

// Reasons are those of one decision, the most important first.
type Reasons []Reason

// Because are reasons of one rule that name no time.
func Because(r Rule, texts ...string) Reasons {
	var all Reasons
	for _, t := range texts {
		all = append(all, Reason{Rule: r, Text: t})
	}
	return all
}

// Write are the sentences with their times as the caller writes times.
func (r Reasons) Write(write func(time.Time) string) []string {
	var all []string
	for _, one := range r {
		all = append(all, one.Write(write))
	}
	return all
}

// Texts are the sentences as the contract and the logs have them.
func (r Reasons) Texts() []string { return r.Write(Clock) }

// String is all of them on one line.
func (r Reasons) String() string { return strings.Join(r.Texts(), "; ") }
