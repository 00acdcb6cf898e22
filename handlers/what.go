package handlers

import (
	"context"

	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// What is an activity's content.
type What interface {
	// decide appends the activity's event. The note is a short result.
	decide(ctx context.Context, h *Handlers, it Activity, guid string) (note string, err error)
}

type (
	// Remarked is a remark that may ask for work.
	Remarked struct {
		Remark *feedback.Remark
		// Anonymous means that an unknown user edited the remark.
		Anonymous bool
		suite     bool // a button for all checks of an App; every commit has suites
	}

	// Changed is a change of one thread.
	Changed struct {
		Change *thread.Change
		signal *signal // set for people's acts on the work
		commit string  // its pull request's thread; empty if the number decides
	}

	// changedAll changes all threads of a repository; with an empty name, of the owner.
	changedAll struct{ change thread.Change }

	// baseMoved is a push to a branch that may be the base of Pawl's open pull requests.
	baseMoved struct {
		base   string
		change thread.Change
	}

	// configured is a commit that may change the repository's configuration.
	configured struct {
		commit string
		base   string // to compare with; empty if the commit changes it
	}

	// signedOut is a user's revoked login.
	signedOut struct{ user int64 }

	// noted says why nothing needs a decision.
	noted string
)

func (n noted) decide(context.Context, *Handlers, Activity, string) (string, error) {
	return string(n), nil
}

func (s signedOut) decide(ctx context.Context, h *Handlers, _ Activity, _ string) (string, error) {
	return "signed out", h.SignOut(ctx, s.user)
}
