package handlers

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

const issueRoute = "GET /repos/{owner}/{repo}/issues/{number}"

// The closing of an untracked thread is in no log.
func TestFirstCommandAfterClosingAsksForNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		does func(w *house, n int, says func())
		want []string
	}{
		{"closed after it", func(w *house, n int, says func()) {
			says()
			w.Pass(2 * time.Second)
			w.Must(w.GitHub.CloseIssue(houseRepo, n, "ada"))
		}, []string{"- /pawl solve: the thread was closed after it was made"}},
		{"closed before it", func(w *house, n int, says func()) {
			w.Must(w.GitHub.CloseIssue(houseRepo, n, "ada"))
			w.Pass(2 * time.Second)
			says()
		}, []string{"+ /pawl solve"}},
		{"closed and reopened after it", func(w *house, n int, says func()) {
			says()
			w.Pass(2 * time.Second)
			w.Must(w.GitHub.CloseIssue(houseRepo, n, "ada"))
			w.Must(w.GitHub.ReopenIssue(houseRepo, n, "ada"))
		}, []string{"+ /pawl solve"}},
		{"GitHub does not show the issue", func(w *house, n int, says func()) {
			w.GitHub.Inject(fakegithub.Fault{Route: issueRoute, Status: http.StatusNotFound, Message: "Not Found"})
			says()
		}, []string{"+ /pawl solve"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newHouse(t)
			issue := w.Opened("Please.")
			c.does(w, issue.Number, func() { w.Must(w.says(issue.Number, "ada", "/pawl solve")()) })
			w.Handle()
			if got := w.Judged(issue); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("judged %q, want %q", got, c.want)
			}
		})
	}
}

func TestClosingIsLookedUpOnce(t *testing.T) {
	w := newHouse(t)
	n := w.Opened("Please.").Number
	w.Writes(n, "ada", "what do you think?")
	w.Writes(n, "mallory", "/pawl solve")
	w.Writes(n, "ada", "/pawl status")
	if asked := w.GitHub.Calls()[issueRoute]; asked != 0 {
		t.Errorf("GitHub was asked %d times before a permitted user asked for work", asked)
	}
	w.Writes(n, "ada", "/pawl solve")
	w.Writes(n, "ada", "/pawl solve more")
	if asked := w.GitHub.Calls()[issueRoute]; asked != 1 {
		t.Errorf("GitHub was asked %d times, want once, at the first command", asked)
	}
}

// A tracked thread's log has the closing.
func TestCommandBeforeClosingIsIgnored(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	began := w.Now().UTC().Truncate(time.Second)
	w.Pass(10 * time.Second)
	w.Must(w.GitHub.CloseIssue(houseRepo, issue.Number, "ada"))
	w.Handle()
	before := len(w.Judged(issue))
	w.Must(w.tell(w.h, issue, "late", commentEvent{id: 1, action: "created", text: "/pawl retry", second: 1}, began))
	w.Must(w.tell(w.h, issue, "after", commentEvent{id: 2, action: "created", text: "/pawl retry now", second: 60}, began))
	want := []string{"- /pawl retry: the thread was closed by ada after it was made", "+ /pawl retry now"}
	if got := w.Judged(issue)[before:]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("judged %q, want %q", got, want)
	}
}
