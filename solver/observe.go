package solver

import (
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/policy"
)

// Observe tells a detector of circles what an agent did: its edits, or a call
// that edited nothing.
func Observe(c *policy.Circles, d agent.Deed) {
	for _, e := range d.Edits {
		c.Edit(policy.Edit(e))
	}
	if len(d.Edits) == 0 {
		c.Call(d.Call, d.Result, d.Failed)
	}
}
