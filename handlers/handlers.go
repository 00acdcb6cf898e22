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

// Handlers turns stored deliveries into events. Only StandIn is optional.
type Handlers struct {
	Store   Store
	Forge   *forge.Client
	Solver  *solver.Solver
	SignOut func(ctx context.Context, user int64) error // ends a user's page sessions
	StandIn string                                      // config.App.User
	Now     func() time.Time
	Log     zerolog.Logger
}

type Store interface {
	thread.Store
	Delivery(ctx context.Context, guid string) (thread.Delivery, error)
	FinishDelivery(ctx context.Context, guid string, state thread.DeliveryState, note string) error
	// PostponeDelivery schedules a delivery's next try.
	PostponeDelivery(ctx context.Context, guid, note string, until time.Time) error
	// ThreadsOf lists the threads with a decision in a repository, or in all the owner's repositories if name is empty.
	ThreadsOf(ctx context.Context, owner, name string) ([]thread.ID, error)
	Shared
}

// Shared stores small values for all nodes.
type Shared interface {
	// UpdateShared atomically replaces the value under key with f's result. now is the nodes' common clock. old is empty
	// if there is no value; a nil result keeps old. f may run more than once and must not retain old.
	UpdateShared(ctx context.Context, key string, f func(now time.Time, old []byte) (next []byte)) error
}

// Activity is a payload's content before a decision.
type Activity struct {
	Repo   forge.Repo
	Number int
	thread *thread.ID // from a check run's external id
	// Key identifies an activity from any source. Activities without a key are identified by delivery.
	Key      string
	What     What
	Snapshot thread.Details
	private  bool // the repository is private
	newPull  bool // it is on the thread's pull request, which is not in the log yet
	Target   thread.Target
	URL      string
	MadeAt   time.Time
	created  time.Time // when the issue or pull request was opened
}

// errUnparsable marks a payload that this version cannot parse. It is retried rarely: a newer version may parse it.
var errUnparsable = errors.New("payload cannot be read")

// noteTime limits the time to store a failure, so that a hanging database does not delay the next delivery. A delivery
// whose failure was not stored is due again when its claim ends.
const noteTime = 5 * time.Second

// alone is how long only this node may handle a delivery that it received.
const alone = 20 * time.Second

// Deliver handles one stored delivery once. It reads the stored row unless d was just received.
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

// justCame reports whether d was received so recently that no other node has it.
func (h *Handlers) justCame(d thread.Delivery) bool {
	if d.Payload == nil {
		return false
	}
	age := h.Now().Sub(d.ReceivedAt)
	return age >= 0 && age <= alone
}

// safely turns a panic of f into an error: one payload must not crash the server at each start.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// failed stores why a delivery failed and when to retry it. A rate limit states that time.
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

// EventHandlers lists all handlers, one per file. The first that names an event handles it.
func (h *Handlers) EventHandlers() []githubapp.EventHandler {
	on := func(read func(*payload) []Activity, events ...string) handler {
		return handler{h, withSender(read), events}
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

// Reads reports whether a delivery can matter to Pawl.
func (h *Handlers) Reads(event, action string) bool {
	switch h.handlerOf(event).(type) {
	case Other, unknownEvent:
		return false
	}
	switch event { // most check events do not matter to Pawl
	case "check_run":
		return action != "created"
	case "check_suite":
		return action == "rerequested"
	}
	return true
}

type handler struct {
	*Handlers
	read   func(*payload) []Activity
	events []string
}

func (h handler) Handles() []string { return h.events }

// Handle parses one delivery, appends its events, and stores the result. It may run more than once for a GUID.
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

// Other handles events that mean nothing to Pawl, such as a new App's ping. They are stored, so that an operator
// sees that GitHub reaches the server. It names all of go-github's events; earlier handlers take precedence.
type Other struct{ handler }
