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
		Arms: policy.View(arms), Sources: learned.Health(),
	}, nil
}
