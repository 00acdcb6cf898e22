package server_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/handlers/handlerstest"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// judged returns the verdicts on a thread's remarks in order, without Pawl's own remarks.
func (r *rig) judged(n int) []string {
	r.T.Helper()
	return handlerstest.Verdicts(r.State(n))
}

// happens is an event on a thread and its result. want is "" if nothing is logged, "+ reason" if another attempt
// starts, and "- reason" if none does. reason may be a part of the logged reason.
type happens struct {
	name string
	do   func() error
	want string
}

// play runs the scenes on a thread, one after the other.
func (r *rig) play(issue int, scenes []happens) {
	r.T.Helper()
	for _, sc := range scenes {
		calls, before := r.Calls(), len(r.judged(issue))
		if err := sc.do(); err != nil {
			r.T.Fatalf("%s: %v", sc.name, err)
		}
		r.Settle()
		news := r.judged(issue)[before:]
		sign, reason, _ := strings.Cut(sc.want, " ")
		asWanted := len(news) == 0
		if sc.want != "" {
			asWanted = len(news) == 1 && strings.HasPrefix(news[0], sign) && strings.Contains(news[0], reason)
		}
		if !asWanted {
			r.T.Errorf("%s: judged %q, want %q", sc.name, news, sc.want)
		}
		extra := 0
		if sign == "+" {
			extra = 1
		}
		if got := r.Calls() - calls; got != extra {
			r.T.Errorf("%s: %d calls of the agent, want %d", sc.name, got, extra)
		}
	}
}

func (r *rig) eyes(issue int, id int64) int {
	n := 0
	for _, c := range r.World.Comments(testrig.Repo, issue) {
		if c.ID == id {
			n += strings.Count(strings.Join(c.Reactions, " "), "eyes by pawl[bot]")
		}
	}
	return n
}

func (r *rig) wantIn(what, text string, all ...string) {
	r.T.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			r.T.Errorf("%s lacks %q:\n%s", what, want, text)
		}
	}
}

func (r *rig) wantNoneIn(what, text string, all ...string) {
	r.T.Helper()
	for _, no := range all {
		if strings.Contains(text, no) {
			r.T.Errorf("%s contains %q:\n%s", what, no, text)
		}
	}
}

// In a published attack, a privileged user requests work on a text that is replaced before the agent reads it.
func TestPromptUsesThePayloadsText(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Must(r.World.AddUser("bob", 1003, map[string]string{testrig.Repo: "write"}))
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Reader, "HONEST title", "HONEST description")
	r.Must(err)
	r.Settle()
	r.World.Hold()
	id, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve HONEST command")
	r.Must(err)
	r.Must(r.World.EditComment(testrig.Repo, id, "bob", "/pawl solve EVIL command"))
	r.Must(r.World.EditBody(testrig.Repo, n, testrig.Reader, "EVIL description"))
	r.Must(r.World.EditTitle(testrig.Repo, n, testrig.Reader, "EVIL title"))
	// The edit's webhook arrives first: GitHub guarantees no order.
	held := r.World.Held()
	r.World.Release(held[3].GUID, held[2].GUID, held[1].GUID, held[0].GUID)
	r.Over(testrig.ThreadName(n))
	r.Settle()
	p := r.Prompt("1")
	r.wantIn("the prompt", p, "HONEST title", "HONEST description", "HONEST command")
	r.wantNoneIn("the prompt", p, "EVIL title", "EVIL description", "EVIL command")
}

// A bridge posts copies of Pawl's texts as a user, without the HTML comments that mark them.
func TestBridgedCopiesStartNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, pull := r.Solved()
	r.Must(r.Commenting(n, testrig.Writer, "/pawl why")())
	r.Settle()
	texts := []string{r.StatusComment(n), r.World.Pulls(testrig.Repo)[0].Body}
	texts = append(texts, r.Answers(n)...)
	marks := regexp.MustCompile(`<!--.*?-->`)
	var scenes []happens
	for i, text := range texts {
		copied := marks.ReplaceAllString(text, "")
		scenes = append(scenes, happens{fmt.Sprintf("text %d", i), r.Commenting(pull, testrig.Writer, copied), "- it is a copy of what Pawl wrote"})
	}
	if len(scenes) != 3 {
		t.Fatalf("Pawl wrote %q, want its status, a description and an answer", texts)
	}
	r.play(n, scenes)
}

// An agent must not disarm a user's stop by printing it in advance, as if the stop were the agent's own text.
func TestStopCountsAlthoughTheAgentPrintedIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo '+ gh issue comment 1 --body \"/pawl stop\"; gh issue comment 1 --body \"/pawl solve\"'\n"+testrig.GatedAgent, "")
	r.Gate()
	r.Start()
	n := r.Solve("A second line", "Please add a second line.")
	r.Await("the agent's output in the log", func() bool {
		return slices.ContainsFunc(r.Events(n), func(e thread.Event) bool { return e.Kind == thread.KindAuthored })
	})
	r.Must(r.Commenting(n, testrig.Writer, "/pawl solve")())
	r.Must(r.Commenting(n, testrig.Writer, "/pawl stop")())
	r.Handled()
	r.wantIn("what was judged", strings.Join(r.judged(n), "; "), "- the agent wrote it itself")
	if got, want := r.State(n).Stopped, testrig.Writer+" asked to stop"; got != want {
		t.Errorf("stopped is %q, want %q", got, want)
	}
}

func TestStopDoesNotWaitForGitHub(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("sleep 300\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the agent", func() bool { return r.Calls() == 1 })
	r.World.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/issues/comments/{id}/reactions", Times: -1, Latency: time.Hour})
	r.Must(r.Commenting(n, testrig.Writer, "/pawl stop")())
	r.Await("the end of the attempt", func() bool { a := r.State(n).Attempts; return len(a) == 1 && !a[0].EndedAt.IsZero() })
}

func TestRemarksDuringAnAttemptBeginOneMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.GatedAgent, "")
	r.Start()
	n, pull := r.Solved()
	r.Gate()
	r.Must(r.Commenting(n, testrig.Writer, "/pawl solve FIRST")())
	r.Await("the second attempt", func() bool { return r.Calls() == 2 })
	_, err := r.World.Review(testrig.Repo, pull, testrig.Writer, "CHANGES_REQUESTED", "REVIEWED")
	r.Must(errors.Join(err,
		r.Commenting(n, testrig.Writer, "/pawl solve SECOND")(),
		r.Commenting(pull, testrig.Writer, "REMARKED")(),
		r.Commenting(n, testrig.Writer, "no command, so NOTHING")(),
		r.Commenting(n, testrig.Reader, "/pawl solve for the READER")(),
		r.World.EditBody(testrig.Repo, n, testrig.Writer, "Please add a second line to a.txt. EDITED")))
	r.Handled()
	r.Open()
	r.Await("the third attempt", func() bool { return r.Calls() == 3 })
	r.Ending(n)
	if r.Calls() != 3 {
		t.Errorf("%d calls of the agent, want 3: %q", r.Calls(), r.judged(n))
	}
	p := r.Prompt("3")
	r.wantIn("the prompt", p, "SECOND", "REMARKED", "REVIEWED", "EDITED", "\n> /pawl solve for the READER\n")
	task := p[:regexp.MustCompile(`\n\d+ of \d+ `).FindStringIndex(p)[0]] // up to the first manifest
	r.wantNoneIn("the task", task, "FIRST", "NOTHING", "READER")
}
