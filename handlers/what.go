package handlers

import (
	"context"

	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// What is the one thing that an activity tells. Each kind decides about the activity in its own way.
type What interface {
	// decide appends what the activity means. The note says in a few words what became of it.
	decide(ctx context.Context, h *Handlers, it Activity, guid string) (note string, err error)
}

type (
	// Remarked is a remark, which may ask for work.
	Remarked struct {
		Remark *feedback.Remark
		// Anonymous says that the remark was edited, and that nobody knows by whom.
		Anonymous bool
		suite     bool // it is about all checks of an App, and every commit has some
	}

	// Changed is what happened to a thread.
	Changed struct {
		Change *thread.Change
		signal *signal // set where it is what somebody made of the work
		commit string  // names the thread, by the commit that its pull request brought; empty where the number does
	}

	// changedAll is what happened to all threads of a repository, or of an account where the repository has no name.
	changedAll struct{ change thread.Change }

	// baseMoved is a push to a branch that may be the base of Pawl's open pull requests.
	baseMoved struct {
		base   string
		change thread.Change
	}

	// configured is a commit that may change the repository's configuration.
	configured struct {
		commit string
		base   string // the commit to compare with; empty where the commit is known to change it
	}

	// signedOut is the end of what a user allowed the App.
	signedOut struct{ user int64 }

	// noted is why there is nothing to decide.
	noted string
)

func (n noted) decide(context.Context, *Handlers, Activity, string) (string, error) {
	return string(n), nil
}

func (s signedOut) decide(ctx context.Context, h *Handlers, _ Activity, _ string) (string, error) {
	return "signed out", h.SignOut(ctx, s.user)
}
