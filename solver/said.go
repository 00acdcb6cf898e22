package solver

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// publishSaid posts what agents answered and planned, each in a comment of its own, where it was asked for.
func (p *publisher) publishSaid(ctx context.Context) error {
	for _, a := range p.state.Attempts {
		key := thread.SaidKey(a.N)
		if a.Receipt.Outcome != policy.Answered || p.state.Acts[key].Done {
			continue
		}
		number, body := p.askedOn(a.N), checkrun.Said(p.state.Fact(a))
		p.says(ctx, body)
		mark := fmt.Sprintf("<!-- pawl:said %s %d -->", p.thread, a.N)
		if err := p.comment(ctx, key, number, 0, body, mark, thread.Act{}); err != nil {
			return err
		}
	}
	return nil
}

// askedOn is the issue or pull request on which an attempt was asked for.
func (p *publisher) askedOn(n int) (number int) {
	for _, r := range p.state.Feedback {
		if r.Taken == n {
			number = r.Number
		}
	}
	return cmp.Or(number, p.thread.Number)
}

// plan is the plan that the next attempt is to work by, if it is to work by one: as its comment reads at GitHub, or, after
// a failure, as the attempt before it had it. Refused says why it cannot be taken.
func (s *step) plan(ctx context.Context, purpose policy.Purpose) (plan string, refused *thread.Decided, err error) {
	made, order := thread.Plan(s.state)
	if purpose != policy.ToChange || order == nil {
		return "", nil, nil
	}
	for _, a := range slices.Backward(s.state.Attempts) {
		if order.Taken != 0 && a.N >= order.Taken && a.Plan != "" {
			return a.Plan, nil, nil
		}
	}
	again := func(why string) (string, *thread.Decided, error) {
		d := thread.Refuse(policy.RulePlan, "Comment /pawl go once more to have the plan worked off as it stands now, or /pawl plan for another one.", why)
		d.Action = policy.DoAsk
		return "", d, nil
	}
	if made == nil {
		return again("there is no plan")
	}
	act := s.state.Acts[thread.SaidKey(made.N)]
	if act.ID == 0 { // it could not be posted, so nobody could change it
		return made.Receipt.Final, nil, nil
	}
	d, err := forge.Discussions{Client: s.Forge}.Read(ctx, s.repo(), s.askedOn(made.N), math.MaxInt)
	if err != nil {
		return "", nil, err
	}
	i := slices.IndexFunc(d.Comments.Nodes, func(c forge.Said) bool { return int64(c.ID) == act.ID })
	if i < 0 {
		return again("the comment with the plan is gone")
	}
	c := d.Comments.Nodes[i]
	if c.Edited.IsZero() {
		return made.Receipt.Final, nil, nil
	}
	by, asked := c.Editor.Account(), order.MadeAt
	if asked.IsZero() {
		asked = order.At
	}
	if c.Edited.After(asked) {
		return again("the plan was edited after the order to work by it")
	}
	permission := ""
	if by != "" && !c.Editor.Bot() {
		if permission, err = s.Forge.Permission(ctx, s.repo(), by); err != nil {
			return "", nil, err
		}
	}
	if !feedback.Writes(permission) {
		return again(fmt.Sprintf("the plan was edited by %s, who is no person with the permission to write", cmp.Or(by, "an unknown account")))
	}
	return checkrun.PlanIn(c.Text), nil, nil
}
