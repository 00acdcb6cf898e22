package server_test

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// judged are the remarks of others than Pawl itself on a thread, in order:
// "+ reason" for those acted on, "- reason" for those ignored.
func (r *rig) judged(n int) []string {
	r.T.Helper()
	var out []string
	s := r.State(n)
	i, j := 0, 0
	for i < len(s.Feedback) || j < len(s.Ignored) {
		if j == len(s.Ignored) || i < len(s.Feedback) && s.Feedback[i].Seq < s.Ignored[j].Seq {
			if why := s.Feedback[i].Withdrawn; why != "" {
				out = append(out, "- "+why)
			} else {
				out = append(out, "+ "+s.Feedback[i].Reason)
			}
			i++
			continue
		}
		if s.Ignored[j].By.Login != "pawl[bot]" {
			out = append(out, "- "+s.Ignored[j].Reason)
		}
		j++
	}
	return out
}

// scene is one thing that happens on a thread and what is to come of it: want
// is "" for nothing worth a line in the log, "+ reason" for one further attempt,
// "- reason" for none. Reasons may be parts.
type happens struct {
	name string
	do   func() error
	want string
}

// play lets things happen one after the other on a thread.
func (r *rig) play(issue int, scenes []happens) {
	r.T.Helper()
	for _, sc := range scenes {
		calls, before := r.Calls(), len(r.judged(issue))
		if err := sc.do(); err != nil {
			r.T.Fatalf("%s: %v", sc.name, err)
		}
		r.Settle()
		news := r.judged(issue)[before:]
		got := strings.Join(news, "; ")
		extra := 0
		if strings.HasPrefix(sc.want, "+") {
			extra = 1
		}
		switch {
		case sc.want == "" && got != "", sc.want != "" && (len(news) != 1 || got[:2] != sc.want[:2] || !strings.Contains(got, sc.want[2:])):
			r.T.Errorf("%s: judged %q, want %q", sc.name, got, sc.want)
		case r.Calls()-calls != extra:
			r.T.Errorf("%s: %d calls of the agent, want %d", sc.name, r.Calls()-calls, extra)
		}
	}
}

// eyes counts Pawl's 👀 on a comment.
func (r *rig) eyes(issue int, id int64) int {
	n := 0
	for _, c := range r.World.Comments(testrig.Repo, issue) {
		if c.ID == id {
			n += strings.Count(strings.Join(c.Reactions, " "), "eyes by pawl[bot]")
		}
	}
	return n
}

// Who may ask for what is judged in handlers and policy/feedback; this is that the
// configuration and GitHub's answers get there, and what comes of it.
func TestOnlyPeopleWhoMayWriteAreListenedTo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config += "policy: {allowed_bots: [77]}\n"
	r.Agent(testrig.PlainAgent, "")
	r.Must(r.World.AddBot("helper[bot]", 77))
	r.Start()
	n, _ := r.Solved()
	r.play(n, []happens{
		{"a reader commands", r.Says(n, testrig.Reader, "/pawl solve"), "- mallory has read permission; write is needed"},
		{"a listed bot commands", r.Says(n, "helper[bot]", "/pawl solve"), "+ command solve"},
		{"a writer who lost the right commands", func() error {
			if err := r.World.SetRole(testrig.Repo, testrig.Writer, "read"); err != nil {
				return err
			}
			return r.Says(n, testrig.Writer, "/pawl solve")()
		}, "- ada has read permission"},
	})
}

func TestNobodyIsListenedToBeforeThePermissionIsKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	r.World.Inject(fakegithub.Fault{Route: "GET /repos/*/*/collaborators/*/permission", Times: -1, Status: 500})
	n := r.Solve("A second line", "Please.")
	asked := func() int { return r.World.Calls()["GET /repos/{owner}/{repo}/collaborators/{login}/permission"] }
	r.Await("the question for the permission", func() bool { return asked() > 0 })
	if s := r.State(n); r.Calls() != 0 || len(s.Feedback) != 0 {
		t.Errorf("%d calls of the agent, %d remarks accepted, want none while GitHub does not answer", r.Calls(), len(s.Feedback))
	}
	r.World.ClearFaults()
	r.Over(testrig.ThreadName(n))
	if r.Calls() != 1 {
		t.Errorf("%d calls of the agent once GitHub answered, want 1", r.Calls())
	}
}

// The published attack: what a person with rights saw and asked for is replaced
// before the agent reads it.
func TestTheTextIsThatOfThePayload(t *testing.T) {
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
	// What was edited arrives first: the order of webhooks is not guaranteed.
	held := r.World.Held()
	r.World.Release(held[3].GUID, held[2].GUID, held[1].GUID, held[0].GUID)
	r.Over(testrig.ThreadName(n))
	r.Settle()
	p := r.Prompt("1")
	for _, what := range []string{"title", "description", "command"} {
		if !strings.Contains(p, "HONEST "+what) || strings.Contains(p, "EVIL "+what) {
			t.Errorf("the prompt holds another %s than the payload of the command:\n%s", what, p)
		}
	}
	_, err = r.World.Comment(testrig.Repo, n, testrig.Reader, "/pawl solve")
	r.Must(err)
	// A retry by a button brings no texts: those of the last request stand.
	pull := r.World.Pulls(testrig.Repo)[0].Pull
	r.Must(r.World.ClickButton(testrig.Repo, r.Check(pull.HeadSHA, "pawl").ID, "retry", testrig.Writer))
	r.Await("the second attempt", func() bool { return r.Calls() == 2 })
	r.Settle()
	if p := r.Prompt("2"); strings.Contains(p, "EVIL") || !strings.Contains(p, "HONEST description") {
		t.Errorf("the prompt of the retry is\n%s\nwant the texts of the command", p)
	}
}
