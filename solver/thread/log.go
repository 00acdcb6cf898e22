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

// String is owner/name#number, the form for users and the store's key.
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

// Event is one row of a thread's log. Seq counts from 1 without gaps.
type Event struct {
	Seq  int64           `json:"seq"`
	Kind Kind            `json:"kind"`
	At   time.Time       `json:"at"`
	Data json.RawMessage `json:"data"`
}

// NewEvent is an event to append. An event with a non-empty Key that the log has is not appended again: a repeated
// delivery has no second effect.
type NewEvent struct {
	Key  string
	Kind Kind
	At   time.Time
	Data any
}

// Orders reports whether the event is a user's request.
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

// Lease is one step's right to append to a thread's log. Every append checks the epoch in its transaction.
type Lease struct {
	Thread ID
	Owner  string
	Epoch  int64
	Until  time.Time
	// From is the previous holder that did not release the lease; empty if it was free.
	From string
	// Failures is the number of steps in a row that ended with an error before this lease.
	Failures int
}

// LeaseTime is how long a lease lasts without a heartbeat, HeartbeatTime how often the holder renews it: a dead
// node is replaced after one lease.
const (
	LeaseTime     = 30 * time.Second
	HeartbeatTime = 10 * time.Second
)

// ErrLeaseLost means that another node took the thread over; the caller must stop at once and can append nothing.
var ErrLeaseLost = errors.New("the lease on the thread was lost")

type HeldError struct {
	Owner string
	Until time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("held by %s until %s", e.Owner, e.Until.UTC().Format(time.RFC3339))
}

// Batch is one leased append, in one transaction.
type Batch struct {
	Events []NewEvent
	// WakeAt schedules a step; zero for none. It replaces the thread's earlier wake-up.
	WakeAt time.Time
	// Breaker, if not nil, updates the breaker of Account.
	Account string
	Breaker func(policy.Breaker) policy.Breaker
	// Cooldown, if not nil, follows the arm's cooldown on the thread's repository.
	Cooldown *Cooldown
	// Spent, if not nil, is the total use of attempt N, which has ended.
	Spent *policy.Spent
	// Alias, if not zero, makes a pull request part of the thread: its events go to this thread's log.
	Alias int
}

// Entry is an attempt in the global ledgers, with those since a time.
type Entry struct {
	N            int
	Installation int64
	Account      string
	At, Since    time.Time
}

// Cooldown is an arm's cooldown on a repository after an edit loop on a thread.
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
	// Urgent says of a waiting delivery that it Asks, also without its payload.
	Urgent bool `json:"-"`
	// RetryAt is the next try; zero after it was handled or given up, and in lists without it.
	RetryAt time.Time `json:"-"`
}

// Asks reports whether a delivery may be a user's request: words, a label or a button. Others are results of
// machines.
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

// The states of a delivery. Pawl could read a Failed delivery but not handle it; this version cannot read an
// Unparsable one. Both are tried again. GivenUp was one of them for so long that only a user has it tried again.
const (
	Received   DeliveryState = "received"
	Handled    DeliveryState = "handled"
	Unparsable DeliveryState = "unparsable"
	Failed     DeliveryState = "failed"
	GivenUp    DeliveryState = "given_up"
)

// ErrNotFound means that the store has no such row.
var ErrNotFound = errors.New("not found")

// ThreadRow is a thread in lists. WakeAt is zero if it waits for nothing.
type ThreadRow struct {
	Thread    ID
	UpdatedAt time.Time
	WakeAt    time.Time
	Running   bool  // a step has its lease
	Seq       int64 // of its log's last event
}

// Load reads and folds a thread's log. If the fold fails, it still returns the events.
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

// Store keeps logs, leases and shared state. Package store documents the methods; its one implementation serves
// SQLite and PostgreSQL, and tests wrap failing ones around it.
type Store interface {
	// Resolve returns a number's thread: itself, or the issue of Pawl's pull request.
	Resolve(ctx context.Context, t ID) (ID, error)
	Events(ctx context.Context, t ID, after int64) ([]Event, error)
	// Append appends without a lease, for webhooks and users. With wake, a step follows, even if one is running or
	// has just finished. It returns how many events were new.
	Append(ctx context.Context, t ID, wake bool, events ...NewEvent) (int, error)
	// Acquire takes the lease or returns a *HeldError. It clears the pending wake-up: later appends lead to another
	// step.
	Acquire(ctx context.Context, t ID, owner string) (Lease, error)
	Renew(ctx context.Context, l Lease) (Lease, error)
	// Release releases the lease; a lost lease is not an error. retry is nil after a finished step; otherwise it
	// gives the next try, which is stored with it.
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
	// Near are the other decided threads of a thread's repository, last changed first, 50 at most.
	Near(ctx context.Context, t ID) ([]ID, error)
}

// GradeRow is one attempt's row for learning. Data is a learning.Graded.
type GradeRow struct {
	ID      string // such as "owner/repo#7/3"
	At      time.Time
	Backend string
	Repo    string // owner/name
	Data    []byte
}

// Retry is the wait before a thread's next try after this many failed steps in a row.
type Retry func(inARow int) (wait time.Duration)

// Operated is an act on more than one thread, by a page, the shell or a comment. It has its own log: the
// repository's or the server's.
type Operated struct {
	What    string `json:"what"`              // see below
	Subject string `json:"subject,omitempty"` // the account, or the delivery's GUID
	By      string `json:"by"`                // a login at GitHub, or the user of a shell
	Where   string `json:"where"`             // on the pages, in the shell, or in a comment
}

// The acts on more than one thread.
const (
	OperatedPause     = "paused"
	OperatedUnpause   = "unpaused"
	OperatedBreaker   = "breaker_closed"
	OperatedDelivery  = "delivery_retried"
	OperatedDismissal = "delivery_dismissed"
)

// RepoLog is the log of acts on a repository as a whole. It is no thread: numbers begin with 1.
func RepoLog(owner, name string) ID { return ID{Owner: owner, Name: name} }

// ServerLog is the log of acts on accounts and deliveries. No owner at GitHub has such a name.
func ServerLog() ID { return ID{Owner: "-", Name: "-"} }

// Paused is the command that pauses a repository, by its log; nil for none.
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
