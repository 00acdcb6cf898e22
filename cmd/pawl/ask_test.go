package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// askingLives starts a server whose agent answers, plans and works. The first server process dies at a crash point.
func askingLives(t *testing.T, at string) *lives {
	t.Helper()
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
	return l
}

// killed waits until the first server process is dead.
func (l *lives) killed() {
	l.T.Helper()
	l.Await("the kill", func() bool { return len(l.Died()) == 1 })
}

// endsAs waits until a thread has ended and its status comment has the headline.
func (l *lives) endsAs(n int, headline string) thread.State {
	l.T.Helper()
	name := testrig.ThreadName(n)
	return l.awaitIdle(headline, testrig.Patience, func(states map[string]thread.State) bool {
		s := states[name]
		return !s.Open() && s.Acts["comment:status"].Done && strings.Contains(l.StatusComment(n), headline)
	})[name]
}

func TestAnswerIsPostedOnceDespiteKills(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"attempt_logged", "agent_done", "attempt_ending", "attempt_ended", "act_begun", "comment_written", "comment_written:2", "act_logged:3"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			l := askingLives(t, at)
			before := l.Refs()
			n, err := l.World.OpenIssue(testrig.Repo, testrig.Writer, "Where is it?", "The number.")
			l.Must(err)
			l.Writes(n, testrig.Writer, "/pawl ask Where?")
			l.killed()
			l.endsAs(n, "Answered")
			if answers := l.CommentsWith(n, testrig.AnAnswer); len(answers) != 1 {
				t.Errorf("the answers are %+v, want one", answers)
			}
			if pulls := l.World.Pulls(testrig.Repo); l.Refs() != before || len(pulls) != 0 {
				t.Errorf("the references are %s, want %s; pull requests %+v", l.Refs(), before, pulls)
			}
		})
	}
}

// A plan is carried out once. Edits after the work began have no effect.
func TestPlanIsCarriedOutOnceDespiteKills(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"attempt_logged:2", "agent_done:2", "push_begun", "pull_opened"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			l := askingLives(t, at)
			n, err := l.World.OpenIssue(testrig.Repo, testrig.Writer, "Numbers", "More of them.")
			l.Must(err)
			l.Writes(n, testrig.Writer, "/pawl plan")
			l.endsAs(n, "Plan waits")
			plan := l.CommentsWith(n, testrig.APlan)[0]
			edits := func(to string) {
				l.Must(l.World.EditComment(testrig.Repo, plan.ID, testrig.Writer, strings.Replace(plan.Body, "add three", to, 1)))
			}
			edits("add thirty")
			l.Writes(n, testrig.Writer, "/pawl go")
			l.killed()
			edits("add too late")
			for _, a := range l.endsAs(n, "Ready for review").Attempts[1:] {
				if !strings.Contains(a.Plan, "add thirty") {
					t.Errorf("attempt %d has the plan %q, want the edited one", a.N, a.Plan)
				}
			}
			plans, pulls := l.CommentsWith(n, testrig.APlan), l.World.Pulls(testrig.Repo)
			if len(plans) != 1 || len(pulls) != 1 {
				t.Errorf("%d plans and %d pull requests, want one each", len(plans), len(pulls))
			}
		})
	}
}

// Pawl posts each real CLI's answer, and discards the file that the CLI writes against its instructions.
func TestEveryCLIAnswersAQuestion(t *testing.T) {
	t.Parallel()
	for _, cli := range realCLIs() {
		t.Run(cli.kind, func(t *testing.T) {
			s := newCLIRig(t, cli, "edit-success")
			r := newProcessRig(t, nil)
			r.Config += s.section()
			r.StartProgram(s.path())
			n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A greeting", "There is one somewhere.")
			r.Must(err)
			r.Writes(n, testrig.Writer, "/pawl ask Where is the greeting?")
			state, attempts := r.Ending(n), r.State(n).Attempts
			if state.State != "answered" || len(attempts) != 1 {
				t.Fatalf("%s (%s %q) after the attempts %+v", state.State, state.Rule, state.Reasons, attempts)
			}
			got := attempts[0].Receipt
			if !slices.Contains(got.LeftOut, "hello.txt (thrown away)") || len(r.World.Pulls(testrig.Repo)) != 0 {
				t.Errorf("left out: %q, pull requests: %d; want the discarded file and none", got.LeftOut, len(r.World.Pulls(testrig.Repo)))
			}
			if answers := r.CommentsWith(n, testrig.AnAnswer); len(answers) != 1 || got.Final == "" || !strings.Contains(answers[0].Body, got.Final) {
				t.Errorf("the answers are %+v, want one with %q", answers, got.Final)
			}
			if !slices.ContainsFunc(s.requests(), func(q fakeprovider.Request) bool { return strings.Contains(string(q.Body), "Where is the greeting?") }) {
				t.Error("no request to the model contains the question")
			}
		})
	}
}
