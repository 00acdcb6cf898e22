package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestAnAnswerIsPostedOnceWhereverTheServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"attempt_logged", "agent_done", "attempt_ending", "attempt_ended", "act_begun", "comment_written", "comment_written:2", "act_logged:3"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			l := newLives(t, map[string]string{"a.txt": "one\n"})
			l.Env = func(life int) []string {
				if life > 0 {
					return nil
				}
				return []string{"PAWL_CRASH_AT=" + at}
			}
			l.Agent(testrig.Asked, "")
			l.begin()
			l.Serving()
			before := l.Refs()
			n, err := l.World.OpenIssue(testrig.Repo, testrig.Writer, "Where is it?", "The number.")
			l.Must(err)
			_, err = l.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl ask Where?")
			l.Must(err)
			l.Await("the kill", func() bool { return len(l.Died()) == 1 })
			l.Serving()
			l.settled("the answer", testrig.Patience, func(states map[string]thread.State) bool {
				s := states[testrig.ThreadName(n)]
				return !s.Open() && s.Acts["comment:status"].Done && strings.Contains(l.StatusComment(n), "Answered")
			})
			if said := l.CommentsWith(n, testrig.AnAnswer); len(said) != 1 || l.Refs() != before {
				t.Errorf("the answers are %+v, the references\n%s", said, l.Refs())
			}
			for _, q := range l.World.Requests() {
				if q.Method == http.MethodPost && strings.HasSuffix(q.Path, "/pulls") {
					t.Errorf("a pull request was opened")
				}
			}
		})
	}
}

// A plan that was said to be worked off is worked off once, wherever the server is killed, by the text that it had at the start.
func TestAPlanIsWorkedOffWhereverTheServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"attempt_logged:2", "agent_done:2", "push_begun", "pull_opened"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			l := newLives(t, map[string]string{"a.txt": "one\n"})
			l.Env = func(life int) []string {
				if life > 0 {
					return nil
				}
				return []string{"PAWL_CRASH_AT=" + at}
			}
			l.Agent(testrig.Asked, "")
			l.begin()
			l.Serving()
			n, err := l.World.OpenIssue(testrig.Repo, testrig.Writer, "Numbers", "More of them.")
			l.Must(err)
			l.Must(l.Says(n, testrig.Writer, "/pawl plan")())
			l.Await("the plan", func() bool {
				return len(l.CommentsWith(n, testrig.APlan)) == 1 && l.Thread(testrig.ThreadName(n)).State == "planned"
			})
			plan := l.CommentsWith(n, testrig.APlan)[0]
			l.Must(l.World.EditComment(testrig.Repo, plan.ID, testrig.Writer, strings.Replace(plan.Body, "add three", "add thirty", 1)))
			l.Must(l.Says(n, testrig.Writer, "/pawl go")())
			l.Await("the kill", func() bool { return len(l.Died()) == 1 })
			l.Must(l.World.EditComment(testrig.Repo, plan.ID, testrig.Writer, strings.Replace(plan.Body, "add three", "add too late", 1)))
			l.Serving()
			states := l.settled("the work", testrig.Patience, func(states map[string]thread.State) bool {
				s := states[testrig.ThreadName(n)]
				return !s.Open() && strings.Contains(l.StatusComment(n), "Done")
			})
			for _, a := range states[testrig.ThreadName(n)].Attempts[1:] {
				if !strings.Contains(a.Plan, "add thirty") {
					t.Errorf("attempt %d worked by %q", a.N, a.Plan)
				}
			}
			if len(l.CommentsWith(n, testrig.APlan)) != 1 || len(l.World.Pulls(testrig.Repo)) != 1 {
				t.Errorf("%d pull requests, and the plans are %+v", len(l.World.Pulls(testrig.Repo)), l.CommentsWith(n, testrig.APlan))
			}
		})
	}
}

// Each real CLI answers: what it says is posted, and the file that it writes in spite of its prompt reaches nothing.
func TestEveryCLIAnswersAQuestion(t *testing.T) {
	t.Parallel()
	for _, cli := range realCLIs() {
		t.Run(cli.kind, func(t *testing.T) {
			s := newStand(t, cli, "edit-success")
			r := newProcessRig(t, nil)
			r.Config += s.section()
			r.StartProgram(s.path())
			n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A greeting", "There is one somewhere.")
			r.Must(err)
			r.Writes(n, testrig.Writer, "/pawl ask Where is the greeting?")
			state, a := r.Ending(n), r.State(n).Attempts
			said := r.CommentsWith(n, testrig.AnAnswer)
			if state.State != "answered" || len(said) != 1 || len(a) != 1 || a[0].Receipt.Final == "" || !strings.Contains(said[0].Body, a[0].Receipt.Final) ||
				!slices.Contains(a[0].Receipt.LeftOut, "hello.txt (thrown away)") || len(r.World.Pulls(testrig.Repo)) != 0 {
				t.Errorf("%s (%s %q), attempts %+v, answers %+v", state.State, state.Rule, state.Reasons, a, said)
			}
			if !slices.ContainsFunc(s.asked(), func(q fakeprovider.Request) bool { return strings.Contains(string(q.Body), "Where is the greeting?") }) {
				t.Error("no request to the model holds the question")
			}
		})
	}
}
