package solver

import (
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// Verdict is what somebody did with the work: merged, reverted, approved and so
// on.
type Verdict struct {
	Kind policy.PeopleKind
	By   string
	At   time.Time
	// Number is the pull request; 0 where it is not known.
	Number int
}

// Check is a finished check run of others on a commit.
type Check struct {
	Name, Conclusion, SHA string
	// Outside is why a failure is not the work's; empty when it may be.
	Outside string
	At      time.Time
}

// maxChecks bounds the checks that are remembered, the newest of them.
const maxChecks = 200

// checked remembers a finished check of others.
func (s *State) checked(f Feedback) {
	if f.Check == "" || f.SHA == "" || f.Own {
		return
	}
	c := Check{Name: f.Check, Conclusion: f.Conclusion, SHA: f.SHA, Outside: f.Outside, At: f.At}
	s.Checks = append(s.Checks, c)
	s.Checks = s.Checks[max(0, len(s.Checks)-maxChecks):]
}

// meaning is what a change says of the work; empty for nothing.
func (s *State) meaning(c Change) policy.PeopleKind {
	if c.What != "merged" && c.What != "pull_merged" && strings.HasSuffix(c.By, "[bot]") {
		return "" // bots close what is old and approve what is in their list
	}
	switch c.What {
	case "merged", "pull_merged":
		return policy.Merged
	case "pull_closed":
		return policy.ClosedUnmerged
	case "closed":
		if s.Snapshot.Pull {
			return policy.ClosedUnmerged
		}
	case "approved":
		return policy.Approved
	case "changes_requested":
		return policy.ChangesRequested
	case "reverted":
		return policy.Reverted
	}
	return ""
}
