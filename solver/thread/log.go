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

// String is owner/name#number, the form that people read and the store keys by.
func (t ID) String() string { return fmt.Sprintf("%s/%s#%d", t.Owner, t.Name, t.Number) }

func (t ID) Repo() string { return t.Owner + "/" + t.Name }

// threadForm is owner/repo#number.
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

// Event is one row of a thread's log. Seq counts from 1 without gaps.
type Event struct {
	Seq  int64           `json:"seq"`
	Kind Kind            `json:"kind"`
	At   time.Time       `json:"at"`
	Data json.RawMessage `json:"data"`
}

// NewEvent is an event to append. An event whose non-empty Key the thread's log
// already holds is not appended again: a repeated delivery has no second effect.
type NewEvent struct {
	Key  string
	Kind Kind
	At   time.Time
	Data any
}

// Orders reports whether a person asked for something by the event.
func (e NewEvent) Orders() bool {
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

// Lease is the right of one step to append to a thread's log. Every append of
// the step checks the epoch in its transaction.
type Lease struct {
	Thread ID
	Owner  string
	Epoch  int64
	Until  time.Time
	// From is who held the lease before and did not give it back; empty where it was free.
	From string
	// Failures is the number of steps in a row that ended with an error before this lease.
	Failures int
}

// LeaseTime is how long a lease lasts without a heartbeat, and HeartbeatTime how
// often the holder renews it: a dead node is replaced after one lease.
const (
	LeaseTime     = 30 * time.Second
	HeartbeatTime = 10 * time.Second
)

// ErrLeaseLost means that another node took the thread over; whoever gets it
// must stop at once and can append nothing.
var ErrLeaseLost = errors.New("the lease on the thread was lost")

// HeldError means that another step holds the thread's lease.
type HeldError struct {
	Owner string
	Until time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("held by %s until %s", e.Owner, e.Until.UTC().Format(time.RFC3339))
}

// Batch is what one leased append writes in one transaction.
type Batch struct {
	Events []NewEvent
	// WakeAt schedules a step; zero for none. It replaces the thread's earlier wake-up time.
	WakeAt time.Time
	// Breaker, when not nil, updates the breaker of Account.
	Account string
	Breaker func(policy.Breaker) policy.Breaker
	// Cooldown, when not nil, follows what the arm has on the thread's repository.
	Cooldown *Cooldown
	// Spent, when not nil, is what the attempt N used in all, which has ended.
	Spent *policy.Spent
	// Alias, when not zero, makes a pull request part of the thread: events on
	// that number are appended to this thread's log.
	Alias int
}

// Entry is an attempt as it is counted above its thread, with those since a time.
type Entry struct {
	N            int
	Installation int64
	Account      string
	At, Since    time.Time
}

// Cooldown is the cooldown of a backend, with its model and effort, on a repository after an edit loop on a thread.
type Cooldown struct {
	Backend string `json:"backend"`
	Model   string `json:"model,omitempty"`
	Effort  string `json:"effort,omitempty"`
	policy.Rest
	Thread string `json:"thread"`
}

type Delivery struct {
	GUID       string        `json:"guid"`
	Event      string        `json:"event"`
	Payload    []byte        `json:"-"`
	ReceivedAt time.Time     `json:"received_at"`
	State      DeliveryState `json:"state"`
	Note       string        `json:"note"`
	// Urgent says, where it waits to be handled, that it Asks, also without its payload.
	Urgent bool `json:"-"`
	// RetryAt is when somebody looks at it again; zero when it was handled or given
	// up, and where a list does not say.
	RetryAt time.Time `json:"-"`
}

// Asks reports whether a delivery may hold what a person asks for: words, a label or a
// pressed button. The rest are results of machines.
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

// The states of a delivery. Failed is one that Pawl could not handle although it
// could be read, Unparsable one that this version cannot read; both are tried again.
// GivenUp is what was one of them for so long that only a person has it tried again.
const (
	Received   DeliveryState = "received"
	Handled    DeliveryState = "handled"
	Unparsable DeliveryState = "unparsable"
	Failed     DeliveryState = "failed"
	GivenUp    DeliveryState = "given_up"
)

// ErrNotFound means that the store has no such row.
var ErrNotFound = errors.New("not found")

// ThreadRow is a thread as lists show it. WakeAt is zero when it waits for nothing.
type ThreadRow struct {
	Thread    ID
	UpdatedAt time.Time
	WakeAt    time.Time
	Running   bool  // a step holds its lease
	Seq       int64 // of the last event of its log
}

// Load reads a thread's log and folds it. Where that fails although the log was read, it returns the events all the same.
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

// Store keeps logs, leases and what threads share. What each method does stands in package store, whose one
// implementation serves SQLite and PostgreSQL; tests put failing ones around it.
type Store interface {
	// Resolve returns the thread that a number belongs to: itself, or the
	// issue for which Pawl opened the pull request.
	Resolve(ctx context.Context, t ID) (ID, error)
	Events(ctx context.Context, t ID, after int64) ([]Event, error)
	// Append appends without a lease, as webhooks and people do. With wake, a step follows, also when one is
	// running or has just finished. It returns how many events were new.
	Append(ctx context.Context, t ID, wake bool, events ...NewEvent) (int, error)
	// Acquire takes the lease or returns a *HeldError. Taking it clears the
	// pending wake-up: whatever is appended later leads to another step.
	Acquire(ctx context.Context, t ID, owner string) (Lease, error)
	Renew(ctx context.Context, l Lease) (Lease, error)
	// Release gives the lease back; a lost lease is not an error. retry is nil after a step that did all
	// there was to do, and says otherwise when the thread is tried again, which is stored with it.
	Release(ctx context.Context, l Lease, retry Retry) error
	AppendLeased(ctx context.Context, l Lease, b Batch) error
	Note(ctx context.Context, l Lease, spent policy.Spent) error
	Noted(ctx context.Context, t ID) ([]byte, error)
	Usage(ctx context.Context, repo string, installation int64, since time.Time) (policy.Usage, error)
	Reserve(ctx context.Context, l Lease, e Entry, allow func(policy.Usage) bool) (bool, error)
	Breakers(ctx context.Context) (map[string]policy.Breaker, error)
	Cooldowns(ctx context.Context, repo string) (map[string][]Cooldown, error)
	PutGraded(ctx context.Context, r GradeRow) error
	Graded(ctx context.Context, since time.Time, limit int) ([]GradeRow, error)
	AcquireProbe(ctx context.Context, l Lease, account string, most int) (bool, error)
	ReleaseProbe(ctx context.Context, l Lease, account string) error
	// Near are the other threads of a thread's repository about which something was
	// decided, those touched last first, 50 at most.
	Near(ctx context.Context, t ID) ([]ID, error)
}

// GradeRow is one attempt as it is learned from. Data is a learning.Graded.
type GradeRow struct {
	ID      string // of the attempt, such as "owner/repo#7/3"
	At      time.Time
	Backend string
	Repo    string // owner/name
	Data    []byte
}

// Retry says how long a thread waits for its next try after so many steps in a
// row that did not come to their end.
type Retry func(inARow int) (wait time.Duration)

// Operated is what somebody did on the pages, in the shell or in a comment that concerns more than one thread. It stands in a log
// of its own: that of the repository, or that of the server.
type Operated struct {
	What    string `json:"what"`              // one of those below
	Subject string `json:"subject,omitempty"` // the account, or the delivery's GUID
	By      string `json:"by"`                // a login at GitHub, or the user of a shell
	Where   string `json:"where"`             // on the pages, in the shell, or in a comment
}

// What people do to more than one thread.
const (
	OperatedPause     = "paused"
	OperatedUnpause   = "unpaused"
	OperatedBreaker   = "breaker_closed"
	OperatedDelivery  = "delivery_retried"
	OperatedDismissal = "delivery_dismissed"
)

// RepoLog is where it is logged what people did to a repository as a whole. It is no thread: numbers begin with 1.
func RepoLog(owner, name string) ID { return ID{Owner: owner, Name: name} }

// ServerLog is the same for accounts and deliveries. No owner at GitHub has such a name.
func ServerLog() ID { return ID{Owner: "-", Name: "-"} }

// Paused is the order by which nothing may begin in a repository, as its log has it; nil where it may.
func Paused(repoLog []Event) (by *Operated, err error) {
	for _, e := range repoLog {
		if e.Kind != KindOperated {
			continue
		}
		var o Operated
		if err := json.Unmarshal(e.Data, &o); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
		}
		switch o.What {
		case OperatedPause:
			by = &o
		case OperatedUnpause:
			by = nil
		}
	}
	return by, nil
}
