package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// People are there before GitHub's answer is, and a kill may come in between.
func TestWhatIsSaidOnAPullRequestBeforeItsNumberIsLoggedIsWorkedOn(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"": false, "and a kill": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newProcessRig(t, nil)
			r.Agent(`n=$(wc -l < "$CTRL/calls" | tr -d ' '); cat > "$CTRL/prompt-$n"; echo "line $n" >> a.txt`+"\n", "")
			r.Start()
			opened, answer := make(chan struct{}), make(chan struct{})
			r.World.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/pulls", Times: 1, Answer: func(w http.ResponseWriter, q *http.Request, github http.Handler) {
				rec := httptest.NewRecorder()
				github.ServeHTTP(rec, q)
				close(opened)
				<-answer
				maps.Copy(w.Header(), rec.Header())
				w.WriteHeader(rec.Code)
				_, _ = rec.Body.WriteTo(w) // the server may be gone
			}})
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			<-opened
			pull := r.World.Pulls(testrig.Repo)[0].Number
			r.Must(r.Says(pull, testrig.Writer, "Please begin with a verb.")())
			_, err := r.World.Review(testrig.Repo, pull, testrig.Writer, "CHANGES_REQUESTED", "The end must be a noun.")
			r.Must(err)
			_, err = r.World.ReviewComment(t.Context(), testrig.Repo, pull, testrig.Writer, "a.txt", 1, "Indent this one.")
			r.Must(err)
			r.Handled()
			if kill {
				r.Stop(syscall.SIGKILL)
			}
			close(answer)
			if kill {
				r.Start()
			}
			r.Await("the second attempt", func() bool { return r.Calls() == 2 })
			r.Ending(n)
			prompt := r.Left("prompt-2")
			for _, said := range []string{"begin with a verb", "end must be a noun", "Indent this one"} {
				if !strings.Contains(prompt, said) {
					t.Errorf("the second attempt was not told %q:\n%s", said, prompt)
				}
			}
			r.Once(n)
		})
	}
}
