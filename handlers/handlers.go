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
	SignOut func(ctx context.Context, person int64) error // ends a user's sessions on the pages
	StandIn string                                        // config.App.User
	Now     func() time.Time
	Log     zerolog.Logger
}

type Store interface {
	thread.Store
	Delivery(ctx context.Context, guid string) (thread.Delivery, error)
	FinishDelivery(ctx context.Context, guid string, state thread.DeliveryState, note string) error
	// PostponeDelivery postpones a delivery that cannot be handled before a time.
	PostponeDelivery(ctx context.Context, guid, note string, until time.Time) error
	// ThreadsOf lists the decided threads of one repository, or with an empty name of all the owner's repositories.
	ThreadsOf(ctx context.Context, owner, name string) ([]thread.ID, error)
	Shared
}

// Shared keeps small values for all nodes.
type Shared interface {
	// UpdateShared replaces the value under key by f's result, atomically. now is the nodes' common clock. old is
	// empty without a value; if f returns nil, the value stays. f may be called more than once, and must not keep
	// old.
	UpdateShared(ctx context.Context, key string, f func(now time.Time, old []byte) (next []byte)) error
}

// Activity is one payload's content before any decision: one of GitHub's activity types with its object.
type Activity struct {
	Repo   forge.Repo
	Number int
	thread *thread.ID // by a check run's external id
	// Key makes the activity happen once, from any source; empty for activities that only a webhook brings, which
	// are distinguished by delivery.
	Key      string
	What     What
	Snapshot thread.Details
	private  bool // the repository is private
	newPull  bool // on the thread's pull request, whose number the log does not know yet
	Target   thread.Target
	URL      string
	MadeAt   time.Time
	created  time.Time // of the issue or pull request
}

// errUnparsable means that this version cannot parse a payload. It is kept and retried rarely: the next version
// may.
var errUnparsable = errors.New("payload cannot be read")

// noteTime limits the noting of a failure: a hanging database must not delay the next delivery or a stopping
// server. The sweep finds unnoted deliveries.
const noteTime = 5 * time.Second

// alone is how long a new delivery belongs to this node.
const alone = 20 * time.Second

// Deliver handles one stored delivery, once. It reads the delivery's row unless it has just come, with its payload.
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

// justCame reports whether a delivery came with its payload, so recently that no other node has it.
func (h *Handlers) justCame(d thread.Delivery) bool {
	if d.Payload == nil {
		return false
	}
	age := h.Now().Sub(d.ReceivedAt)
	return age >= 0 && age <= alone
}

// safely calls f and turns a panic into an error: one payload must not end the server at each start.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// failed notes why a delivery was not handled, and its next try: at GitHub's time, if it gave one.
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

// EventHandlers are the handlers of all events, one per file; the first that names an event handles it.
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

// Reads reports whether a delivery can matter to Pawl; others are not worth the request for their payload.
func (h *Handlers) Reads(event, action string) bool {
	switch h.handlerOf(event).(type) {
	case Other, unknownEvent:
		return false
	}
	switch event { // most of them mean nothing yet
	case "check_run":
		return action != "created"
	case "check_suite":
		return action == "rerequested"
	}
	return true
}

// handler is the common part of all EventHandlers.
type handler struct {
	*Handlers
	read   func(*payload) []Activity
	events []string
}

func (h handler) Handles() []string { return h.events }

// Handle parses one delivery, appends its events, and notes the result in its row. It may be called again for the
// same GUID.
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

// appendAll appends a delivery's events. The note is a short result.
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

// Other handles GitHub's events without a meaning for Pawl, such as the ping of a new App. They are stored and
// noted like every delivery, so that an operator sees that GitHub reaches the server. It names all of go-github's
// events; earlier handlers take theirs.
type Other struct{ handler }
