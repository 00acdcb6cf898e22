package checkrun

import (
	"strings"

	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

// NoPlan answers an order to work by a plan where there is none, NoQuestion one to answer nothing; nothing was done.
const (
	NoPlan     = "There is no plan here that could be worked off; nothing was done. `/pawl plan` has one made, `/pawl solve` works without one.\n"
	NoQuestion = "`/pawl ask` needs a question behind it; nothing was done.\n"
)

// How a comment begins that holds what an agent answered or planned.
const (
	saidAnswer = "The agent's answer. Nothing was changed."
	saidPlan   = "The agent's plan. Nothing was changed yet: edit this comment where it should be otherwise, then `/pawl go` has it worked off as it stands then. `/pawl go WORDS` adds words."
)

// Said is the comment with what an attempt answered or planned.
func Said(a policy.Attempt) string {
	p := &page{}
	if a.Decision.Purpose == policy.ToPlan {
		p.sentence(saidPlan)
	} else {
		p.sentence(saidAnswer)
	}
	p.sentence(text.Fence(a.Final, maxSaid))
	return p.fit()
}

// maxSaid bounds an answer or a plan, in bytes.
const maxSaid = 32_000

// PlanIn is the plan in a comment of Said, as people edited it.
func PlanIn(comment string) string {
	plan := strings.TrimSpace(feedback.Visible(strings.Replace(comment, saidPlan, "", 1)))
	if lines := strings.Split(plan, "\n"); len(lines) > 2 && strings.HasPrefix(lines[0], "```") && strings.Trim(lines[len(lines)-1], "`") == "" {
		plan = strings.Join(lines[1:len(lines)-1], "\n")
	}
	return plan
}
