package handlers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
	"github.com/palantir/go-githubapp/githubapp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// Handlers turns stored deliveries into events. All fields are required except StandIn.
type Handlers struct {
	Store   Store
	Forge   *forge.Client
	Solver  *solver.Solver
	SignOut func(ctx context.Context, person int64) error // ends the sessions of a person on the pages
	StandIn string                                        // config.App.User
	Now     func() time.Time
	Log     zerolog.Logger
}

type Store interface {
	thread.Store
	Delivery(ctx context.Context, guid string) (thread.Delivery, error)
	FinishDelivery(ctx context.Context, guid string, state thread.DeliveryState, note string) error
	// PostponeDelivery notes a delivery that cannot be handled before a time.
	PostponeDelivery(ctx context.Context, guid, note string, until time.Time) error
	// ThreadsOf lists the threads about which something was decided of one
	// repository, or with an empty name of all those of the owner.
	ThreadsOf(ctx context.Context, owner, name string) ([]thread.ID, error)
	Shared
}

// Shared keeps small values that all nodes of one Pawl see.
type Shared interface {
	// UpdateShared replaces the value under key by what f makes of it, as one atomic read-modify-write.
	// now is by a clock that is the same for all nodes. old is empty when there is no value; if f returns
	// nil, the value stays. f may be called more than once, and must not keep old.
	UpdateShared(ctx context.Context, key string, f func(now time.Time, old []byte) (next []byte)) error
}

// Activity is what one payload says, before anything was decided: one of GitHub's activity types with what it
// is about.
type Activity struct {
	Repo   forge.Repo
	Number int
	thread *thread.ID // named directly, by a check run's external id
	// Key is that under which the activity happens once, whoever brings it; empty for
	// what only a webhook can bring, and is told apart by its delivery.
	Key      string
	What     What
	Snapshot thread.Details
	private  bool // not everybody may read the repository
	newPull  bool // it is on the thread's pull request, whose number the log does not know yet
	Target   thread.Target
	URL      string
	MadeAt   time.Time
	created  time.Time // of the issue or pull request
}

// errUnparsable means that this version cannot read a payload. It is kept, and
// tried again rarely: the next version may be able to.
var errUnparsable = errors.New("payload cannot be read")

// noteTime bounds the noting of a failure: a database that hangs must hold up
// neither the next delivery nor a stopping server. The sweep finds what is not noted.
const noteTime = 5 * time.Second

// alone is how long after a delivery came no other node is given it.
const alone = 20 * time.Second

// Deliver handles one stored delivery, unless that was done already. Its row is
// read unless it has just come, with its payload.
func (h *Handlers) Deliver(ctx context.Context, d thread.Delivery) (err error) {
	if !h.justCame(d) {
		d, err = h.Store.Delivery(ctx, d.GUID)
		if err != nil {
			return err
		}
		if d.State == thread.Handled {
			return nil
		}
	}
	guid := d.GUID
	log := h.Log.With().Str("delivery", guid).Str("event", d.Event).Logger()
	crash.Point("delivery_claimed")
	err = safely(func() error { return h.handlerOf(d.Event).Handle(ctx, d.Event, guid, d.Payload) })
	switch {
	case errors.Is(err, errUnparsable):
		log.Warn().Err(err).Msg("delivery kept unread")
		return h.Store.FinishDelivery(ctx, guid, thread.Unparsable, err.Error())
	case err != nil:
		return errors.Join(err, h.failed(ctx, guid, err, log))
	}
	return nil
}

// justCame reports whether a delivery came with its payload, so lately that no other node is given it.
func (h *Handlers) justCame(d thread.Delivery) bool {
	if d.Payload == nil {
		return false
	}
	age := h.Now().Sub(d.ReceivedAt)
	return age >= 0 && age <= alone
}

// safely calls f. A panic is an error like others: one payload that this version
// cannot cope with must not end the server, at each start anew.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// failed notes why a delivery was not handled, and when it is tried again: where
// GitHub said when it may be asked again, then.
func (h *Handlers) failed(ctx context.Context, guid string, err error, log zerolog.Logger) error {
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	limited, ok := errors.AsType[*forge.RateLimited](err)
	switch {
	case ctx.Err() != nil:
		log.Info().Err(err).Msg("delivery not handled before the server stops; it is tried again")
	case ok:
		log.Warn().Time("until", limited.Until).Msg("GitHub's rate limit; the delivery is handled later")
		return h.Store.PostponeDelivery(noting, guid, err.Error(), limited.Until)
	default:
		log.Error().Err(err).Msg("delivery not handled; it is tried again")
	}
	return h.Store.FinishDelivery(noting, guid, thread.Failed, err.Error())
}

// EventHandlers are the handlers of all events, one a file; the first that names an event has it.
func (h *Handlers) EventHandlers() []githubapp.EventHandler {
	on := func(read func(*payload) []Activity, events ...string) handler {
		return handler{h, fromSomebody(read), events}
	}
	return []githubapp.EventHandler{
		IssueComment{on(issueComment, "issue_comment")},
		Issues{on(issues, "issues")},
		PullRequest{on(pullRequest, "pull_request")},
		PullRequestReview{on(pullRequestReview, "pull_request_review")},
		PullRequestReviewComment{on(pullRequestReviewComment, "pull_request_review_comment")},
		CheckRun{on(checkRun, "check_run", "check_suite")},
		Push{on(push, "push")},
		Delete{on(branchDeleted, "delete")},
		Installation{on(installation, "installation")},
		InstallationRepositories{on(installationRepositories, "installation_repositories")},
		Repository{on(repositoryChanged, "repository")},
		GitHubAppAuthorization{on(authorization, "github_app_authorization")},
		Other{on(func(*payload) []Activity { return nil }, github.MessageTypes()...)},
	}
}

func (h *Handlers) handlerOf(event string) githubapp.EventHandler {
	for _, handler := range h.EventHandlers() {
		if slices.Contains(handler.Handles(), event) {
			return handler
		}
	}
	return unknownEvent(event)
}

// Reads reports whether a delivery can mean anything to Pawl; others are not worth
// the request for their payload.
func (h *Handlers) Reads(event, action string) bool {
	switch h.handlerOf(event).(type) {
	case Other, unknownEvent:
		return false
	}
	switch event { // most of them say nothing yet
	case "check_run":
		return action != "created"
	case "check_suite":
		return action == "rerequested"
	}
	return true
}

// handler is what all EventHandlers share: it handles its events with one reader.
type handler struct {
	*Handlers
	read   func(*payload) []Activity
	events []string
}

func (h handler) Handles() []string { return h.events }

// Handle reads one delivery, appends what it means, and notes in its row what became
// of it. It may be called again for the same GUID.
func (h handler) Handle(ctx context.Context, event, guid string, payload []byte) error {
	activities, err := read(payload, h.read)
	if err != nil {
		return err
	}
	note, err := h.appendAll(ctx, event, guid, activities)
	crash.Point("delivery_appended")
	if err != nil {
		return err
	}
	h.Log.Debug().Str("delivery", guid).Str("event", event).Str("note", note).Msg("delivery handled")
	err = h.Store.FinishDelivery(ctx, guid, thread.Handled, note)
	crash.Point("delivery_handled")
	return err
}

// appendAll appends what a delivery means. The note says in a few words what became of it.
func (h *Handlers) appendAll(ctx context.Context, event, guid string, activities []Activity) (note string, err error) {
	if len(activities) == 0 {
		return "nothing to do for " + event, nil
	}
	var notes []string
	for i, it := range activities {
		if it.Key == "" {
			it.Key = deliveryKey(guid, i)
		}
		note, err := h.Decide(ctx, it, guid)
		if err != nil {
			return "", err
		}
		notes = append(notes, note)
	}
	return strings.Join(notes, "; "), nil
}

// Other handles the events that GitHub knows and that mean nothing to Pawl, such as the ping of a new App.
// They are stored and noted like every other delivery, so that an operator sees that GitHub reaches the
// server. It names all of go-github's events; the handlers before it take theirs.
type Other struct{ handler }
