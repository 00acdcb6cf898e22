package thread

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/pawlbot/pawl/policy"
)

type ID struct {
	Owner  string `json:"owner"`
	Name   string `json:"name"`
	Number int    `json:"number"`
}

// String returns owner/name#number for users and as the store's key.
func (t ID) String() string { return fmt.Sprintf("%s/%s#%d", t.Owner, t.Name, t.Number) }

func (t ID) Repo() string { return t.Owner + "/" + t.Name }

var threadForm = regexp.MustCompile(`^([^/#]+)/([^/#]+)#(.+)$`)

func Parse(s string) (ID, error) {
	m := threadForm.FindStringSubmatch(s)
	if m == nil {
		return ID{}, fmt.Errorf("thread %q: want owner/repo#number", s)
	}
	n, err := strconv.Atoi(m[3])
	if err != nil || n <= 0 {
		return ID{}, fmt.Errorf("thread %q: want owner/repo#number", s)
	}
	return ID{Owner: m[1], Name: m[2], Number: n}, nil
}

// Event is a row of a thread's log. Seq counts from 1 without gaps.
type Event struct {
	Seq  int64           `json:"seq"`
	Kind Kind            `json:"kind"`
	At   time.Time       `json:"at"`
	Data json.RawMessage `json:"data"`
}

// NewEvent is an event to append. A non-empty Key that the log already has is not appended again.
type NewEvent struct {
	Key  string
	Kind Kind
	At   time.Time
	Data any
}

// IsRequest reports whether the event is a user's request.
func (e NewEvent) IsRequest() bool {
	switch e.Kind {
	case KindControl, KindQuestion:
		return true
	case KindFeedback:
		f, ok := e.Data.(Feedback)
		if !ok || f.Source == policy.FromCheckRun {
			return false
		}
		return !f.By.Bot()
	}
	return false
}

// Lease permits one step to append to a thread's log. Each append checks the epoch in its transaction.
type Lease struct {
	Thread ID
	Owner  string
	Epoch  int64
	Until  time.Time
	// From names a previous holder that did not release the lease, or is empty.
	From string
	// Failures counts consecutive failed steps before this lease.
	Failures int
	// Place is what the thread waited for, as in Batch; empty if an event or a timer woke it.
	Place string
}

// A lease lasts LeaseTime without a heartbeat; the holder renews it every HeartbeatTime.
const (
	LeaseTime     = 30 * time.Second
	HeartbeatTime = 10 * time.Second
)

// ErrLeaseLost means that another node took over. The caller must stop at once.
var ErrLeaseLost = errors.New("the lease on the thread was lost")

type LeaseHeldError struct {
	Owner string
	Until time.Time
}

func (e *LeaseHeldError) Error() string {
	return fmt.Sprintf("held by %s until %s", e.Owner, e.Until.UTC().Format(time.RFC3339))
}

// AnyNode is a Batch's Place if any node may take the next step. It cannot be a label.
const AnyNode = "-"

// Batch is one transaction under a lease.
type Batch struct {
	Events []NewEvent
	// WakeAt schedules a step and replaces the earlier wake-up; zero for none.
	WakeAt time.Time
	// Place, unless empty, leaves the next step to a node that serves it, until the thread is woken otherwise; see
	// policy.PlaceOf. AnyNode clears it.
	Place string
	// Breaker, unless nil, updates the breaker of Account.
	Account string
	Breaker func(policy.Breaker) policy.Breaker
	// Cooldown, unless nil, starts an arm's cooldown on the repository.
	Cooldown *Cooldown
	// Spent, unless nil, sets the total use of attempt N, which has ended.
	Spent *policy.Spent
	// Alias, unless zero, routes a pull request's events to this thread.
	Alias int
}

// Entry holds an attempt in the global ledgers.
type Entry struct {
	N            int
	Installation int64
	Account      string
	At, Since    time.Time
}

// Reading holds an account's usage windows as an attempt saw them.
type Reading struct {
	Account, Backend string
	// Claimed names the thread if only its agent's own file has the windows; empty if Pawl saw the provider's answer.
	Claimed string
	Windows []policy.Window
	// Used maps each window to the share that the attempt used; nil until the attempt ends.
	Used map[string]float64
}

// Cooldown keeps an arm from a repository after an edit loop.
type Cooldown struct {
	Backend string `json:"backend"`
	Model   string `json:"model,omitempty"`
	Effort  string `json:"effort,omitempty"`
	policy.Cooldown
	Thread string `json:"thread"`
}

type Delivery struct {
	GUID       string        `json:"guid"`
	Event      string        `json:"event"`
	Payload    []byte        `json:"-"`
	ReceivedAt time.Time     `json:"received_at"`
	State      DeliveryState `json:"state"`
	Note       string        `json:"note"`
	// Urgent caches Asks for a waiting delivery without its payload.
	Urgent bool `json:"-"`
	// RetryAt is the next try; zero after the delivery was handled or given up, and in lists.
	RetryAt time.Time `json:"-"`
}

// Asks reports whether a delivery may be a user's request: words, a label or a button.
func (d Delivery) Asks() bool {
	switch d.Event {
	case "issue_comment", "issues", "pull_request_review", "pull_request_review_comment":
		return true
	case "check_run":
		return bytes.Contains(d.Payload, []byte(`"requested_action"`))
	}
	return false
}

type DeliveryState string

// Delivery states. Pawl could not handle a Failed delivery or parse an Unparsable one, and retries both. Only a user
// retries GivenUp.
const (
	Received   DeliveryState = "received"
	Handled    DeliveryState = "handled"
	Unparsable DeliveryState = "unparsable"
	Failed     DeliveryState = "failed"
	GivenUp    DeliveryState = "given_up"
)

// ErrNotFound means that the row does not exist.
var ErrNotFound = errors.New("not found")

// ThreadRow describes a thread in lists. WakeAt is zero without a wake-up.
type ThreadRow struct {
	Thread    ID
	UpdatedAt time.Time
	WakeAt    time.Time
	Running   bool  // a step holds the lease
	Seq       int64 // last event of the log
}

// Load reads and folds a thread's log. It returns the events even if the fold fails.
func Load(ctx context.Context, from interface {
	Events(ctx context.Context, t ID, after int64) ([]Event, error)
}, t ID) ([]Event, State, error) {
	events, err := from.Events(ctx, t, 0)
	if err != nil {
		return nil, State{}, err
	}
	state, err := Fold(events)
	if err != nil {
		err = fmt.Errorf("thread %s: %w", t, err)
	}
	return events, state, err
}

// Store keeps logs, leases and shared state; see package store.
type Store interface {
	// Resolve returns a number's thread: itself, or the issue of Pawl's pull request.
	Resolve(ctx context.Context, t ID) (ID, error)
	Events(ctx context.Context, t ID, after int64) ([]Event, error)
	// Append appends without a lease and returns the number of new events. With wake, another step follows, even if
	// one is running.
	Append(ctx context.Context, t ID, wake bool, events ...NewEvent) (int, error)
	// Acquire takes the lease or returns a *LeaseHeldError. It clears the pending wake-up.
	Acquire(ctx context.Context, t ID, owner string) (Lease, error)
	Renew(ctx context.Context, l Lease) (Lease, error)
	// Release releases the lease and ignores a lost one. retry is nil after success and otherwise gives the next try.
	Release(ctx context.Context, l Lease, retry Retry) error
	AppendLeased(ctx context.Context, l Lease, b Batch) error
	// Note replaces a thread's note: an attempt's use so far. Noted returns its JSON, or nil.
	Note(ctx context.Context, l Lease, spent policy.Spent) error
	Noted(ctx context.Context, t ID) ([]byte, error)
	Usage(ctx context.Context, repo string, installation int64, since time.Time) (policy.Usage, error)
	// Reserve adds an attempt to the global ledgers if allow returns true for the use before it, in one transaction.
	Reserve(ctx context.Context, l Lease, e Entry, allow func(policy.Usage) bool) (bool, error)
	Breakers(ctx context.Context) (map[string]policy.Breaker, error)
	Meters(ctx context.Context) (map[string][]policy.Meter, error)
	PutReading(ctx context.Context, r Reading) error
	Cooldowns(ctx context.Context, repo string) (map[string][]Cooldown, error)
	PutGraded(ctx context.Context, r GradeRow) error
	Graded(ctx context.Context, since time.Time, limit int) ([]GradeRow, error)
	// AcquireProbe marks the thread as trying the account, unless `most` others do; 0 means no limit.
	AcquireProbe(ctx context.Context, l Lease, account string, most int) (bool, error)
	ReleaseProbe(ctx context.Context, l Lease, account string) error
	Running(ctx context.Context, except ID) (map[string]int, error)
	// Near returns at most 50 other decided threads of the repository, last changed first.
	Near(ctx context.Context, t ID) ([]ID, error)
}

// GradeRow is an attempt's row for learning. Data is a learning.Graded.
type GradeRow struct {
	ID      string
	At      time.Time
	Backend string
	Repo    string // owner/name
	Data    []byte
}

// Retry returns the wait after consecutive failed steps.
type Retry func(inARow int) (wait time.Duration)

// Operated logs an act on a repository or the server, from a page, a shell or a comment.
type Operated struct {
	What    string `json:"what"`              // one of the constants below
	Subject string `json:"subject,omitempty"` // account, or delivery GUID
	By      string `json:"by"`                // GitHub login or shell user
	Where   string `json:"where"`             // page, shell or comment
	// Damage is why the stored command cannot be read; see Paused.
	Damage string `json:"-"`
}

// Pauses says who paused a repository, or why Pawl cannot know whether it is paused.
func (o Operated) Pauses(repo string) string {
	if o.Damage != "" {
		return fmt.Sprintf("the pause log of %s cannot be read (%s); pawl unpause or pawl pause decides", repo, o.Damage)
	}
	return fmt.Sprintf("%s paused %s %s", o.By, repo, o.Where)
}

// Acts on a repository or the server.
const (
	OperatedPause     = "paused"
	OperatedUnpause   = "unpaused"
	OperatedBreaker   = "breaker_closed"
	OperatedDelivery  = "delivery_retried"
	OperatedDismissal = "delivery_dismissed"
)

// RepoLog returns the log of a repository's acts. Its number is 0; threads' numbers begin with 1.
func RepoLog(owner, name string) ID { return ID{Owner: owner, Name: name} }

// ServerLog returns the log of acts on accounts and deliveries. GitHub allows no such owner.
func ServerLog() ID { return ID{Owner: "-", Name: "-"} }

// Paused returns the command that pauses a repository, or nil. A command that cannot be read pauses, since it may have
// been a pause; the next command replaces it.
func Paused(repoLog []Event) (by *Operated) {
	for _, e := range repoLog {
		if e.Kind != KindOperated {
			continue
		}
		var o Operated
		err := json.Unmarshal(e.Data, &o)
		if err == nil && o.What == "" {
			err = errors.New("it names no command")
		}
		switch {
		case err != nil:
			by = &Operated{Damage: fmt.Sprintf("event %d: %v", e.Seq, err)}
		case o.What == OperatedPause:
			by = &o
		case o.What == OperatedUnpause:
			by = nil
		}
	}
	return by
}
