package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver/thread"
)

// An agent that could make a stop look like its own could not be stopped.
func TestAStopCountsAlsoWhereTheAgentPrintedTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("echo '+ gh issue comment 1 --body \"/pawl stop\"; gh issue comment 1 --body \"/pawl solve\"'\n"+gatedAgent, "")
	r.gate()
	r.start()
	n := r.solve("A second line", "Please add a second line.")
	r.await("the log to hold what the agent printed", func() bool {
		return slices.ContainsFunc(r.events(n), func(e thread.Event) bool { return e.Kind == thread.KindAuthored })
	})
	for _, text := range []string{"/pawl solve", "/pawl stop"} {
		_, err := r.world.Comment(rigRepo, n, writer, text)
		r.must(err)
		r.handled()
	}
	if got := strings.Join(r.judged(n), "; "); !strings.Contains(got, "- the agent wrote it itself") {
		t.Errorf("judged %s, want the solve that the agent printed ignored", got)
	}
	if s := r.state(n); !strings.Contains(s.Stopped, writer) {
		t.Errorf("stopped is %q (%s), want it to be by %s", s.Stopped, fmt.Sprint(r.judged(n)), writer)
	}
}

func TestOnThreadsOfOthersOnlyWhatSpeaksToPawlIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, err := r.world.OpenIssue(rigRepo, writer, "Talk", strings.Repeat("talk ", 1000))
	r.must(err)
	const refused = "- mallory has read permission"
	r.play(n, []happens{
		{"a writer talks", r.says(n, writer, "Nice weather."), ""},
		{"a reader talks", r.says(n, reader, strings.Repeat("spam ", 5000)), ""},
		{"a description changes", func() error { return r.world.EditBody(rigRepo, n, writer, "less talk") }, ""},
		{"a reader commands", r.says(n, reader, "/pawl solve "+strings.Repeat("é", 10000)), refused},
		{"a reader mentions", r.says(n, reader, "@pawl please"), refused},
	})
	for _, f := range r.state(n).Ignored {
		if len(f.Raw) > 500 || f.Text != "" || f.Snapshot == nil || f.Snapshot.Title+f.Snapshot.Body != "" {
			t.Errorf("%d bytes and %+v of an ignored remark are kept, want 500 and no texts", len(f.Raw), f.Snapshot)
		}
	}
	if r.calls() != 0 {
		t.Errorf("%d calls of the agent, want none", r.calls())
	}
}

// People are there before GitHub's answer is, and a kill may come in between.
func TestWhatIsSaidOnAPullRequestBeforeItsNumberIsLoggedIsWorkedOn(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"": false, "and a kill": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newProcessRig(t, nil)
			r.agent(`n=$(wc -l < "$CTRL/calls" | tr -d ' '); cat > "$CTRL/prompt-$n"; echo "line $n" >> a.txt`+"\n", "")
			r.start()
			opened, answer := make(chan struct{}), make(chan struct{})
			r.world.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/pulls", Times: 1, Answer: func(w http.ResponseWriter, q *http.Request, github http.Handler) {
				rec := httptest.NewRecorder()
				github.ServeHTTP(rec, q)
				close(opened)
				<-answer
				maps.Copy(w.Header(), rec.Header())
				w.WriteHeader(rec.Code)
				_, _ = rec.Body.WriteTo(w) // the server may be gone
			}})
			n := r.solve("A second line", "Please add a second line to a.txt.")
			<-opened
			pull := r.world.Pulls(rigRepo)[0].Number
			r.must(r.says(pull, writer, "Please begin with a verb.")())
			_, err := r.world.Review(rigRepo, pull, writer, "CHANGES_REQUESTED", "The end must be a noun.")
			r.must(err)
			_, err = r.world.ReviewComment(t.Context(), rigRepo, pull, writer, "a.txt", 1, "Indent this one.")
			r.must(err)
			r.handled()
			if kill {
				r.stop(syscall.SIGKILL)
			}
			close(answer)
			if kill {
				r.start()
			}
			r.await("the second attempt", func() bool { return r.calls() == 2 })
			r.ending(n)
			prompt := r.left("prompt-2")
			for _, said := range []string{"begin with a verb", "end must be a noun", "Indent this one"} {
				if !strings.Contains(prompt, said) {
					t.Errorf("the second attempt was not told %q:\n%s", said, prompt)
				}
			}
			r.once(n)
		})
	}
}
