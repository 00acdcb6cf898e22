package server_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// GitHub does not promise the order of its webhooks. Each is judged by its own
// payload when it comes: here the newer one is handled to its end before the
// older one is there. What docs/operations.md says of it is pinned.
func TestDeliveriesThatOvertakeEachOther(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		acts  func(r *rig, n int)
		order []int // of the held deliveries
		calls int
		last  string // in the last prompt
	}{
		{"an order before the stop that overtook it is not worked on", func(r *rig, n int) {
			r.Must(r.Says(n, testrig.Writer, "/pawl solve ALPHA")())
			r.Must(r.Says(n, testrig.Writer, "/pawl stop")())
		}, []int{1, 0}, 0, ""},
		{"an order before the closing that overtook it is not worked on", func(r *rig, n int) {
			r.Must(r.Says(n, testrig.Writer, "/pawl solve ALPHA")())
			r.Must(r.World.CloseIssue(testrig.Repo, n, testrig.Writer))
		}, []int{1, 0}, 0, ""},
		{"an edit before its comment, and then the comment", func(r *rig, n int) {
			id, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve ALPHA")
			r.Must(err)
			r.Must(r.World.EditComment(testrig.Repo, id, testrig.Writer, "/pawl solve BETA"))
		}, []int{1, 0}, 1, "BETA"},
		{"a closing after the reopening holds back no order", func(r *rig, n int) {
			r.Must(r.World.CloseIssue(testrig.Repo, n, testrig.Writer))
			r.Must(r.World.ReopenIssue(testrig.Repo, n, testrig.Writer))
			r.Must(r.Says(n, testrig.Writer, "/pawl solve ALPHA")())
		}, []int{1, 0, 2}, 1, "ALPHA"},
		{"an order before the issue's opening", func(r *rig, n int) {
			_, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "B", "@pawl please, ALPHA.")
			r.Must(err)
			r.Must(r.Says(n+1, testrig.Writer, "/pawl solve BETA")())
		}, []int{1, 0}, 2, "ALPHA"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Agent(testrig.PlainAgent, "")
			r.Start()
			n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A", "Please.")
			r.Must(err)
			r.Settle()
			r.World.Hold()
			c.acts(r, n)
			held := r.World.Held()
			for _, i := range c.order {
				if code := r.again(held[i]); code != http.StatusOK {
					t.Errorf("delivery %d was answered %d", i, code)
				}
				r.Settle()
			}
			r.World.Release() // all once more, in their order
			r.Settle()
			if r.Calls() != c.calls {
				t.Errorf("%d calls of the agent (%q), want %d", r.Calls(), r.judged(n), c.calls)
			}
			// A thread that is closed at GitHub may be seen to be so meanwhile.
			if s := r.Thread(testrig.ThreadName(n)); s.Attempts > 0 && s.State != "done" && s.Rule != "closed" {
				t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
			}
			if c.calls > 0 {
				r.holds(c.calls, c.last)
			}
		})
	}
}

// holds checks that the prompt of a call holds a text.
func (r *rig) holds(call int, text string) {
	r.T.Helper()
	if p := r.Prompt(strconv.Itoa(call)); !strings.Contains(p, text) {
		r.T.Errorf("prompt %d is\n%s\nwant %q in it", call, p, text)
	}
}
