package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// Pawl is killed before GitHub answers with the new pull request's number. By then users have commented on it.
func TestEarlyPullRequestCommentsAreHandled(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	opened, killed := make(chan struct{}), make(chan struct{})
	r.World.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/pulls", Times: 1, Answer: func(_ http.ResponseWriter, q *http.Request, github http.Handler) {
		github.ServeHTTP(httptest.NewRecorder(), q)
		close(opened)
		<-killed
	}})
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	<-opened
	pull := r.World.Pulls(testrig.Repo)[0].Number
	r.Writes(pull, testrig.Writer, "Please begin with a verb.")
	_, err := r.World.Review(testrig.Repo, pull, testrig.Writer, "CHANGES_REQUESTED", "The end must be a noun.")
	r.Must(err)
	_, err = r.World.ReviewComment(t.Context(), testrig.Repo, pull, testrig.Writer, "a.txt", 1, "Indent this one.")
	r.Must(err)
	r.Handled()
	r.Stop(syscall.SIGKILL)
	close(killed)
	r.Start()
	r.Await("the second attempt", func() bool { return r.Calls() == 2 })
	r.Ending(n)
	prompt := r.Prompt("2")
	for _, text := range []string{"begin with a verb", "end must be a noun", "Indent this one"} {
		if !strings.Contains(prompt, text) {
			t.Errorf("the second attempt's prompt lacks %q:\n%s", text, prompt)
		}
	}
	r.Once(n)
}
