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
		suite     bool // the button re-runs all checks of an App; every commit has suites
	}

	// Changed is a change of one thread.
	Changed struct {
		Change *thread.Change
		signal *signal // set for users' acts on the work
		commit string  // finds the thread by its pull request; empty if Number determines the thread
	}

	// changedAll changes all threads of a repository, or all of the owner's threads if the name is empty.
	changedAll struct{ change thread.Change }

	// baseMoved is a push to a branch that may be the base of Pawl's open pull requests.
	baseMoved struct {
		main   bool // the default branch
		base   string
		change thread.Change
	}

	// configured is a commit that may change the repository's configuration.
	configured struct {
		commit string
		base   string // the commit to compare with; empty if the commit itself changes the file
	}

	// dismissed is a review that no longer counts.
	dismissed struct {
		review int64
		by     string
	}

	// signedOut is a user's revoked login.
	signedOut struct{ user int64 }

	// noted is the reason why nothing needs a decision.
	noted string
)

func (n noted) decide(context.Context, *Handlers, Activity, string) (string, error) {
	return string(n), nil
}

// decide withdraws the review's request. A watch checks the pull request again.
func (d dismissed) decide(ctx context.Context, h *Handlers, it Activity, guid string) (string, error) {
	t, state, err := h.locate(ctx, &it)
	if err != nil {
		return "", err
	}
	var events []thread.NewEvent
	gone := thread.Withdrawn{Seqs: state.Reviewed(d.review), Reason: "the review was dismissed by " + d.by}
	if len(gone.Seqs) > 0 {
		events = append(events, thread.NewEvent{Key: "dismissed:" + guid, Kind: thread.KindWithdrawn, At: h.Now(), Data: gone})
	}
	if state.Watched() {
		change := thread.Change{What: "dismissed", By: d.by, Number: it.Number, Delivery: guid}
		events = append(events, thread.NewEvent{Key: "review_dismissed:" + guid, Kind: thread.KindThread, At: h.Now(), Data: change})
	}
	if len(events) == 0 {
		return "the dismissed review asks for nothing", nil
	}
	_, err = h.Store.Append(ctx, t, true, events...)
	return gone.Reason, err
}

func (s signedOut) decide(ctx context.Context, h *Handlers, _ Activity, _ string) (string, error) {
	return "signed out", h.SignOut(ctx, s.user)
}
