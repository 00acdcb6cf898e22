package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// Actor is the user who gives a command, with place and time.
type Actor struct {
	Login string
	ID    int64  // at GitHub; 0 for a shell user
	Where string // on the pages, in the shell, or in a comment
	At    time.Time
}

// Log is the part of the database that commands need.
type Log interface {
	Events(ctx context.Context, t thread.ID, after int64) ([]thread.Event, error)
	Append(ctx context.Context, t thread.ID, wake bool, events ...thread.NewEvent) (int, error)
	ThreadsOf(ctx context.Context, owner, name string) ([]thread.ID, error)
}

// Commands about a thread, by their names in comments.
const (
	Retry  = "retry"
	Stop   = "stop"
	Resume = "resume"
	Steer  = "steer"
)

// CannotError explains why a command changed nothing.
type CannotError string

func (e CannotError) Error() string { return string(e) }

// Cannot returns why a command about a thread would have no effect now, or empty.
func Cannot(command string, s thread.State) string {
	if !s.Worked() {
		return "Pawl was never asked to work here"
	}
	switch command {
	case Stop:
		return cannotStop(s)
	case Retry, Resume:
		return cannotGoOn(command, s)
	case Steer:
		return closedAtGitHub(s)
	}
	return notCarriedOut + command
}

// notCarriedOut begins the refusal of a command in policy.Commands that Cannot does not handle.
const notCarriedOut = "Pawl cannot carry out /pawl "

// cannotGoOn is Cannot for a command that begins an attempt.
func cannotGoOn(command string, s thread.State) string {
	if closed := closedAtGitHub(s); closed != "" {
		return closed
	}
	if _, running := s.Running(); running {
		return "an attempt is running; stop it first"
	}
	if s.Open() {
		return cannotInRun(command, s)
	}
	if command == Resume && decided(s, policy.DoDone) {
		return "the work is done; retry makes one more attempt"
	}
	return ""
}

func closedAtGitHub(s thread.State) string {
	closed := s.ClosedAtGitHub()
	if closed == "" {
		return ""
	}
	return closed + "; reopen it first"
}

func cannotInRun(command string, s thread.State) string {
	if !decided(s, policy.DoWait) {
		return "the next step is already on its way"
	}
	if command == Retry {
		return "the work waits; resume continues it"
	}
	return ""
}

func cannotStop(s thread.State) string {
	if s.Open() {
		return ""
	}
	return "nothing runs or waits here"
}

func decided(s thread.State, action policy.Action) bool {
	return s.Decision != nil && s.Decision.Action == action
}

// OnThread executes a command about a thread, or about the issue of Pawl's pull request. If it would have no effect,
// the error is a CannotError.
func OnThread(ctx context.Context, db *store.Store, command string, t thread.ID, by Actor) error {
	return onThread(ctx, db, command, "", t, by)
}

// MaxText limits the text of a command on the pages, in bytes.
const MaxText = 16 << 10

// SteerThread is OnThread for the command Steer and its text. Without a running attempt, the text is feedback.
func SteerThread(ctx context.Context, db *store.Store, t thread.ID, text string, by Actor) error {
	text = strings.TrimSpace(feedback.Visible(text))
	switch {
	case text == "":
		return CannotError("the text is empty")
	case len(text) > MaxText:
		return CannotError(fmt.Sprintf("the text is longer than %d bytes", MaxText))
	}
	return onThread(ctx, db, Steer, text, t, by)
}

func onThread(ctx context.Context, db *store.Store, command, text string, t thread.ID, by Actor) error {
	t, err := db.Resolve(ctx, t)
	if err != nil {
		return err
	}
	_, s, err := thread.Load(ctx, db, t)
	if err != nil {
		return err
	}
	if why := Cannot(command, s); why != "" {
		return CannotError(why)
	}
	return appendCommand(ctx, db, command, text, t, s, by)
}

// appendCommand appends a command. A repetition before the thread's next event has no effect.
func appendCommand(ctx context.Context, db Log, command, text string, t thread.ID, s thread.State, by Actor) error {
	f := thread.Feedback{
		Source:  policy.FromButton,
		Command: command,
		Text:    text,
		Number:  t.Number,
		Reason:  fmt.Sprintf("%s %s", command, by.Where),
		By:      feedback.Actor{ID: by.ID, Login: by.Login, Type: "User"},
	}
	e := thread.NewEvent{
		Key:  fmt.Sprintf("order:%s:%d%s", command, s.Seq, keyOf(text)),
		Kind: thread.KindFeedback,
		At:   by.At,
		Data: f,
	}
	if policy.CommandNamed(command).Effect == policy.Controls {
		e.Kind, e.Data = thread.KindControl, f
	}
	_, err := db.Append(ctx, t, true, e)
	return err
}

// keyOf distinguishes two texts of one command; empty for no text.
func keyOf(text string) string {
	if text == "" {
		return ""
	}
	return ":" + thread.Hash(text)
}

// PausedBy returns who paused a repository; nil if it is not paused.
func PausedBy(ctx context.Context, db Log, owner, name string) (*thread.Operated, error) {
	events, err := db.Events(ctx, thread.RepoLog(owner, name), 0)
	if err != nil {
		return nil, err
	}
	return thread.Paused(events), nil
}

// Pausing returns the command that toggles a repository's pause; by is nil if it is not paused.
func Pausing(by *thread.Operated) string {
	if by != nil {
		return "unpause"
	}
	return "pause"
}

// OnRepository pauses or unpauses a repository. If it would have no effect, the error is a CannotError.
func OnRepository(ctx context.Context, db Log, command, owner, name string, by Actor) error {
	switch command {
	case "pause":
		return Pause(ctx, db, owner, name, by)
	case "unpause":
		_, err := Unpause(ctx, db, owner, name, by)
		return err
	}
	return CannotError(notCarriedOut + command)
}

// Pause pauses a repository. A running attempt continues to its end.
func Pause(ctx context.Context, db Log, owner, name string, by Actor) error {
	paused, err := PausedBy(ctx, db, owner, name)
	if err != nil {
		return err
	}
	if paused != nil && paused.Damage == "" {
		return CannotError(fmt.Sprintf("%s/%s is paused already, by %s", owner, name, paused.By))
	}
	return operated(ctx, db, thread.RepoLog(owner, name), thread.OperatedPause, "", by)
}

// Unpause ends the pause, resumes the threads that stopped because of it, and returns their number.
func Unpause(ctx context.Context, db Log, owner, name string, by Actor) (resumed int, err error) {
	paused, err := PausedBy(ctx, db, owner, name)
	if err != nil {
		return 0, err
	}
	if paused == nil {
		return 0, CannotError(fmt.Sprintf("%s/%s is not paused", owner, name))
	}
	if err := operated(ctx, db, thread.RepoLog(owner, name), thread.OperatedUnpause, "", by); err != nil {
		return 0, err
	}
	threads, err := db.ThreadsOf(ctx, owner, name)
	resumed, failed := resumePaused(ctx, db, threads, by)
	return resumed, errors.Join(err, failed)
}

// maxLifted limits Lift to the most recently changed threads.
const maxLifted = 100_000

// Lift resumes threads that stopped because the whole server was paused, except in paused repositories.
func Lift(ctx context.Context, db *store.Store, by Actor) (resumed int, err error) {
	var threads []thread.ID
	paused := map[string]bool{}
	err = db.EachThread(ctx, maxLifted, func(t thread.ID) { threads = append(threads, t) })
	threads = slices.DeleteFunc(threads, func(t thread.ID) bool {
		if _, known := paused[t.Repo()]; !known {
			by, unread := PausedBy(ctx, db, t.Owner, t.Name)
			paused[t.Repo()], err = by != nil || unread != nil, errors.Join(err, unread)
		}
		return paused[t.Repo()]
	})
	resumed, failed := resumePaused(ctx, db, threads, by)
	return resumed, errors.Join(err, failed)
}

func resumePaused(ctx context.Context, db Log, threads []thread.ID, by Actor) (resumed int, err error) {
	for _, t := range threads {
		_, s, unread := thread.Load(ctx, db, t)
		if unread == nil && stoppedByPause(s) {
			unread = appendCommand(ctx, db, Resume, "", t, s, by)
			if unread == nil {
				resumed++
			}
		}
		err = errors.Join(err, unread)
	}
	return resumed, err
}

func stoppedByPause(s thread.State) bool {
	if s.Open() || s.Decision == nil {
		return false
	}
	return s.Decision.Rule == policy.RulePaused && Cannot(Resume, s) == ""
}

// CloseBreaker closes an account's breaker, and wakes every waiting thread.
func CloseBreaker(ctx context.Context, db *store.Store, account string, by Actor) error {
	breakers, err := db.Breakers(ctx)
	if err != nil {
		return err
	}
	closed := false
	if _, exists := breakers[account]; exists {
		closed, err = db.CloseBreaker(ctx, account, event(thread.OperatedBreaker, account, by))
	}
	if err == nil && !closed {
		err = CannotError(fmt.Sprintf("no known limit of account %q", account))
	}
	return err
}

// RetryDelivery retries an unhandled delivery, or with store.AllUnhandled all of them. It returns their number.
func RetryDelivery(ctx context.Context, db *store.Store, guid string, by Actor) (n int, err error) {
	n, err = db.RetryDelivery(ctx, guid)
	return logged(ctx, db, n, err, thread.OperatedDelivery, guid, by)
}

// DismissDelivery marks a delivery as handled.
func DismissDelivery(ctx context.Context, db *store.Store, guid string, by Actor) (n int, err error) {
	n, err = db.DismissDelivery(ctx, guid)
	return logged(ctx, db, n, err, thread.OperatedDismissal, guid, by)
}

func logged(ctx context.Context, db *store.Store, n int, err error, what, guid string, by Actor) (int, error) {
	switch {
	case err != nil:
		return 0, err
	case n > 0:
		return n, operated(ctx, db, thread.ServerLog(), what, guid, by)
	case guid == store.AllUnhandled:
		return 0, nil
	}
	return 0, CannotError("no unhandled delivery has this GUID; pawl status lists them")
}

func operated(ctx context.Context, db Log, log thread.ID, what, subject string, by Actor) error {
	_, err := db.Append(ctx, log, false, event(what, subject, by))
	return err
}

func event(what, subject string, by Actor) thread.NewEvent {
	return thread.NewEvent{
		Kind: thread.KindOperated,
		At:   by.At,
		Data: thread.Operated{What: what, Subject: subject, By: by.Login, Where: by.Where},
	}
}
