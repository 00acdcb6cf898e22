package main

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
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
			r.must(r.says(n, writer, "/pawl solve ALPHA")())
			r.must(r.says(n, writer, "/pawl stop")())
		}, []int{1, 0}, 0, ""},
		{"an order before the closing that overtook it is not worked on", func(r *rig, n int) {
			r.must(r.says(n, writer, "/pawl solve ALPHA")())
			r.must(r.world.CloseIssue(rigRepo, n, writer))
		}, []int{1, 0}, 0, ""},
		{"an edit before its comment, and then the comment", func(r *rig, n int) {
			id, err := r.world.Comment(rigRepo, n, writer, "/pawl solve ALPHA")
			r.must(err)
			r.must(r.world.EditComment(rigRepo, id, writer, "/pawl solve BETA"))
		}, []int{1, 0}, 1, "BETA"},
		{"a closing after the reopening holds back no order", func(r *rig, n int) {
			r.must(r.world.CloseIssue(rigRepo, n, writer))
			r.must(r.world.ReopenIssue(rigRepo, n, writer))
			r.must(r.says(n, writer, "/pawl solve ALPHA")())
		}, []int{1, 0, 2}, 1, "ALPHA"},
		{"an order before the issue's opening", func(r *rig, n int) {
			_, err := r.world.OpenIssue(rigRepo, writer, "B", "@pawl please, ALPHA.")
			r.must(err)
			r.must(r.says(n+1, writer, "/pawl solve BETA")())
		}, []int{1, 0}, 2, "ALPHA"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.agent(plainAgent, "")
			r.start()
			n, err := r.world.OpenIssue(rigRepo, writer, "A", "Please.")
			r.must(err)
			r.settle()
			r.world.Hold()
			c.acts(r, n)
			held := r.world.Held()
			for _, i := range c.order {
				if code := r.again(held[i]); code != http.StatusOK {
					t.Errorf("delivery %d was answered %d", i, code)
				}
				r.settle()
			}
			r.world.Release() // all once more, in their order
			r.settle()
			if r.calls() != c.calls {
				t.Errorf("%d calls of the agent (%q), want %d", r.calls(), r.judged(n), c.calls)
			}
			// A thread that is closed at GitHub may be seen to be so meanwhile.
			if s := r.thread(threadName(n)); s.Attempts > 0 && s.State != "done" && s.Rule != "closed" {
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
	r.t.Helper()
	if p := r.prompt(strconv.Itoa(call)); !strings.Contains(p, text) {
		r.t.Errorf("prompt %d is\n%s\nwant %q in it", call, p, text)
	}
}
