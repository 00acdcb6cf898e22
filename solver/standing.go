package solver

import (
	"context"

	"github.com/pawlbot/pawl/policy"
)

// Standing is what was learned of the configured backends over all repositories,
// and how far the sources of grades can be believed.
type Standing struct {
	// Mode is the configured one, InForce what it comes to now.
	Mode    policy.Mode           `json:"mode"`
	InForce policy.Mode           `json:"in_force"`
	Arms    []policy.ArmView      `json:"arms"`
	Sources []policy.SourceHealth `json:"sources"`
	// Quarantined are the newest attempts whose grades are not learned from, with
	// the reasons.
	Quarantined []policy.Judged `json:"quarantined"`
}

// shownQuarantined bounds them.
const shownQuarantined = 20

func quarantined(l policy.Learned) []policy.Judged {
	list := []policy.Judged{}
	for _, j := range l.Judged() {
		if len(j.Quarantine) > 0 {
			list = append(list, j)
		}
	}
	return list[max(0, len(list)-shownQuarantined):]
}

// Standing computes what was learned. Backends that are held back at the moment
// are not masked: how good they are does not depend on it.
func (s *Solver) Standing(ctx context.Context) (Standing, error) {
	learned, err := s.Learned(ctx)
	if err != nil {
		return Standing{}, err
	}
	var options []policy.Option
	for _, b := range s.Config.Backends {
		options = append(options, policy.Option{Backend: b.Name})
	}
	mode := policy.Mode(s.Config.Policy.Learning.Mode)
	arms := learned.Arms(policy.Context{}, options)
	return Standing{
		Mode: mode, InForce: policy.Choose(mode, arms, 0).Mode,
		Arms: policy.View(arms), Sources: learned.Health(), Quarantined: quarantined(learned),
	}, nil
}
