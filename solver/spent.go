package solver

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/gateway"
)

// spentFile holds what an attempt used so far, beside its transcript: budgets
// bind also where the process that counted was killed.
const spentFile = "used.json"

// spentInterval is how often it is written.
const spentInterval = time.Second

// spent is what an attempt used, and the limit that it met.
type spent struct {
	Tokens  Tokens   `json:"tokens"`
	CostUSD *float64 `json:"cost_usd,omitempty"`
	Limit   *Limit   `json:"limit,omitempty"`
}

func spentOf(u gateway.Usage) spent {
	w := spent{Tokens: Tokens{Input: u.Input, CachedInput: u.CachedInput, Output: u.Output}}
	if u.CostKnown {
		w.CostUSD = &u.CostUSD
	}
	if l := u.Limit; l != nil {
		w.Limit = &Limit{Kind: l.Kind, Message: tail(l.Message, 2000), ResetsAt: l.ResetsAt, Source: agent.SourceStructured}
	}
	return w
}

// note writes down what is used behind a door until ctx ends.
func (s *step) note(ctx context.Context, d door, n int) {
	path := filepath.Join(s.attemptDir(s.thread, n), spentFile)
	tick := time.NewTicker(spentInterval)
	defer tick.Stop()
	calls := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		u := d.session.Usage()
		if u.Requests+u.Turns == calls {
			continue
		}
		calls = u.Requests + u.Turns
		if err := writeSpent(path, spentOf(u)); err != nil {
			s.log.Warn().Err(err).Msg("what the attempt uses was not written down")
		}
	}
}

func writeSpent(path string, w spent) error {
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".part", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// spentBefore is what an attempt had used when its process was killed, as far as
// this node knows.
func (s *step) spentBefore(n int) spent {
	var w spent
	data, err := os.ReadFile(filepath.Join(s.attemptDir(s.thread, n), spentFile))
	if err != nil || json.Unmarshal(data, &w) != nil {
		return spent{} // on another node, or it never reached its model
	}
	return w
}
