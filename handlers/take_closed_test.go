package handlers

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

const issueRoute = "GET /repos/{owner}/{repo}/issues/{number}"

// The closing of an untracked thread is in no log, so Pawl asks GitHub.
func TestFirstCommandBeforeClosingIsIgnored(t *testing.T) {
	for _, c := range []struct {
		name string
		does func(w *rig, n int, command func())
		want []string
	}{
		{"closed after it", func(w *rig, n int, command func()) {
			command()
			w.Pass(2 * time.Second)
			w.Must(w.GitHub.CloseIssue(testRepo, n, "ada"))
		}, []string{"- /pawl solve: the thread was closed after it was made"}},
		{"closed before it", func(w *rig, n int, command func()) {
			w.Must(w.GitHub.CloseIssue(testRepo, n, "ada"))
			w.Pass(2 * time.Second)
			command()
		}, []string{"+ /pawl solve"}},
		{"closed and reopened after it", func(w *rig, n int, command func()) {
			command()
			w.Pass(2 * time.Second)
			w.Must(w.GitHub.CloseIssue(testRepo, n, "ada"))
			w.Must(w.GitHub.ReopenIssue(testRepo, n, "ada"))
		}, []string{"+ /pawl solve"}},
		{"GitHub does not show the issue", func(w *rig, n int, command func()) {
			w.GitHub.Inject(fakegithub.Fault{Route: issueRoute, Status: http.StatusNotFound, Message: "Not Found"})
			command()
		}, []string{"+ /pawl solve"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRig(t)
			issue := w.Opened("Please.")
			c.does(w, issue.Number, func() { w.Must(w.comments(issue.Number, "ada", "/pawl solve")()) })
			w.Handle()
			if got := w.Judged(issue); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("judged %q, want %q", got, c.want)
			}
		})
	}
}

func TestClosingIsLookedUpOnce(t *testing.T) {
	w := newRig(t)
	n := w.Opened("Please.").Number
	w.Writes(n, "ada", "what do you think?")
	w.Writes(n, "mallory", "/pawl solve")
	w.Writes(n, "ada", "/pawl status")
	if calls := w.GitHub.Calls()[issueRoute]; calls != 0 {
		t.Errorf("%d requests for the issue before a permitted user asked for work, want none", calls)
	}
	w.Writes(n, "ada", "/pawl solve")
	w.Writes(n, "ada", "/pawl solve more")
	if calls := w.GitHub.Calls()[issueRoute]; calls != 1 {
		t.Errorf("%d requests for the issue, want one, at the first command", calls)
	}
}

// A tracked thread's log records the closing.
func TestCommandBeforeClosingIsIgnored(t *testing.T) {
	w := newRig(t)
	issue := w.Issue("Please.")
	began := w.Now().UTC().Truncate(time.Second)
	w.Pass(10 * time.Second)
	w.Must(w.GitHub.CloseIssue(testRepo, issue.Number, "ada"))
	w.Handle()
	before := len(w.Judged(issue))
	w.Must(w.deliver(w.h, issue, "late", commentEvent{id: 1, action: "created", text: "/pawl retry", second: 1}, began))
	w.Must(w.deliver(w.h, issue, "after", commentEvent{id: 2, action: "created", text: "/pawl retry now", second: 60}, began))
	want := []string{"- /pawl retry: the thread was closed by ada after it was made", "+ /pawl retry now"}
	if got := w.Judged(issue)[before:]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("judged %q, want %q", got, want)
	}
}
