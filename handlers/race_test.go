package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// holding is a store in which one delivery's append waits. Its worker has judged the remark, while other workers
// continue, here or on another node.
type holding struct {
	*store.Store
	guid          string
	judged, write chan struct{}
}

func (h *holding) Append(ctx context.Context, t thread.ID, wake bool, events ...thread.NewEvent) (int, error) {
	for _, e := range events {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return 0, err
		}
		var of struct{ Delivery string }
		if err := json.Unmarshal(data, &of); err != nil {
			return 0, err
		}
		if of.Delivery == h.guid {
			close(h.judged)
			<-h.write
			break
		}
	}
	return h.Store.Append(ctx, t, wake, events...)
}

// commentEvent is a webhook about a comment by ada.
type commentEvent struct {
	id           int64
	action, text string
	second       int    // after began
	was          string // the text before an edit; empty means "before"
	sender       string // JSON; empty means ada
}

func (w *rig) deliver(h *Handlers, issue thread.ID, guid string, c commentEvent, began time.Time) error {
	installation, err := w.GitHub.InstallationID(testRepo)
	if err != nil {
		return err
	}
	_, err = handleComment(w.T.Context(), h, guid, c.payload(issue.Number, installation, began))
	return err
}

// judged lets another worker judge a comment. It appends the result when write is called.
func (w *rig) judged(issue thread.ID, guid string, c commentEvent, began time.Time) (write func()) {
	slow := &holding{Store: w.Store, guid: guid, judged: make(chan struct{}), write: make(chan struct{})}
	other := &Handlers{Store: slow, Forge: w.h.Forge, Now: w.Now, Solver: w.h.Solver}
	done := make(chan error, 1)
	go func() { done <- w.deliver(other, issue, guid, c, began) }()
	<-slow.judged
	return func() {
		close(slow.write)
		w.Must(<-done)
	}
}

func (c commentEvent) payload(issue int, installation int64, began time.Time) []byte {
	const ada = `{"id": 1001, "login": "ada", "type": "User"}`
	return fmt.Appendf(nil, `{"action": %q, "issue": {"number": %d, "title": "A title"}, "changes": {"body": {"from": %q}},
		"comment": {"id": %d, "body": %q, "user": %s, "updated_at": %q},
		"repository": {"name": "widgets", "owner": {"login": "acme"}}, "installation": {"id": %d}, "sender": %s}`,
		c.action, issue, cmp.Or(c.was, "before"), c.id, c.text, ada, began.Add(time.Duration(c.second)*time.Second).Format(time.RFC3339), installation, cmp.Or(c.sender, ada))
}

// Two workers judge by the same log, and the one with the older text appends last.
func TestNewerTextCountsInAnyOrder(t *testing.T) {
	for _, c := range []struct {
		name         string
		older, newer commentEvent
		want         []string // the open requests' texts
		pinned       string
		stopped      bool
	}{
		{name: "a comment and its edit", older: commentEvent{id: 1, action: "created", text: "/pawl solve old", second: 1}, newer: commentEvent{id: 1, action: "edited", text: "/pawl solve new", second: 2}, want: []string{"new"}},
		{name: "in the same second", older: commentEvent{id: 1, action: "created", text: "/pawl solve old", second: 1}, newer: commentEvent{id: 1, action: "edited", text: "/pawl solve new", second: 1}, want: []string{"new"}},
		{name: "two edits", older: commentEvent{id: 1, action: "edited", text: "/pawl solve old", second: 1}, newer: commentEvent{id: 1, action: "edited", text: "/pawl solve new", second: 2}, want: []string{"new"}},
		{name: "two comments", older: commentEvent{id: 1, action: "created", text: "/pawl solve one", second: 1}, newer: commentEvent{id: 2, action: "created", text: "/pawl solve two", second: 2}, want: []string{"two", "one"}},
		{name: "a command and its stop", older: commentEvent{id: 1, action: "created", text: "/pawl solve", second: 1}, newer: commentEvent{id: 2, action: "created", text: "/pawl stop", second: 2}, want: []string{""}, stopped: true},
		{name: "a stop and a later command", older: commentEvent{id: 1, action: "created", text: "/pawl stop", second: 1}, newer: commentEvent{id: 2, action: "created", text: "/pawl solve", second: 2}, want: []string{""}},
		{name: "a command that is edited to a stop", older: commentEvent{id: 1, action: "created", text: "/pawl solve", second: 1}, newer: commentEvent{id: 1, action: "edited", text: "/pawl stop", second: 2}, want: []string{""}, stopped: true},
		{name: "a stop that is edited to a command", older: commentEvent{id: 1, action: "created", text: "/pawl stop", second: 1}, newer: commentEvent{id: 1, action: "edited", text: "/pawl solve", second: 1}, want: []string{""}},
		{name: "two choices of a backend", older: commentEvent{id: 1, action: "created", text: "/pawl use one", second: 1}, newer: commentEvent{id: 2, action: "created", text: "/pawl use two", second: 2}, pinned: "two"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRig(t)
			issue := w.Issue("Please.")
			w.Handle()
			began := w.Now().UTC().Truncate(time.Second)
			write := w.judged(issue, "older", c.older, began)
			w.Must(w.deliver(w.h, issue, "newer", c.newer, began))
			write()
			state := w.state(issue)
			var left []string
			for _, r := range state.Pending() {
				if r.Delivery == "older" || r.Delivery == "newer" {
					left = append(left, r.Text)
				}
			}
			if fmt.Sprint(left) != fmt.Sprint(c.want) || state.Pinned != c.pinned || (state.Stopped != "") != c.stopped {
				t.Errorf("open requests %q, pinned %q, stopped %q; want %q, %q, %v", left, state.Pinned, state.Stopped, c.want, c.pinned, c.stopped)
			}
		})
	}
}

// The closing is logged after the command is judged and before it is appended.
func TestCommandOnAClosingThreadAsksForNothing(t *testing.T) {
	w := newRig(t)
	issue := w.Issue("Please.")
	retry := commentEvent{id: 1, action: "created", text: "/pawl retry", second: 1}
	write := w.judged(issue, "slow", retry, w.Now().UTC().Truncate(time.Second))
	w.Pass(10 * time.Second)
	w.Must(w.GitHub.CloseIssue(testRepo, issue.Number, "ada"))
	w.Handle()
	write()
	state := w.state(issue)
	if last := state.Feedback[len(state.Feedback)-1]; state.Open() || last.Withdrawn != "the thread was closed by ada after it was made" {
		t.Errorf("open %v, withdrawn because %q", state.Open(), last.Withdrawn)
	}
}

type panicking struct{ *store.Store }

func (panicking) Append(context.Context, thread.ID, bool, ...thread.NewEvent) (int, error) {
	panic("index out of range")
}

func TestAPanicFailsItsDeliveryOnly(t *testing.T) {
	w := newRig(t)
	w.h.Store = panicking{w.Store}
	_, err := w.GitHub.OpenIssue(testRepo, "ada", "A title", "/pawl solve")
	w.Must(err)
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	if err := w.Deliver(t.Context(), w.newest()); err == nil {
		t.Fatal("the panic gave no error")
	}
	if d := w.newest(); d.State != thread.Failed || !strings.Contains(d.Note, "panic: index out of range") || !strings.Contains(d.Note, "race_test.go") {
		t.Errorf("the delivery is %s (%s), want failed with the panic's source file", d.State, d.Note)
	}
}
