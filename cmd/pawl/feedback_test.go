package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// plainAgent keeps its prompt as prompt.<n>, adds a line and says what it did.
const plainAgent = `n=$(wc -l < "$CTRL/calls" | tr -d ' ')
cat > "$CTRL/prompt.$n"
echo "line $n" >> a.txt
echo "a.txt has the line number $n now"
`

// gatedAgent does the same, and waits before it ends while there is a gate.
const gatedAgent = plainAgent + `if [ -p "$CTRL/gate" ]; then read opened < "$CTRL/gate"; fi
`

// gate makes gated agents wait until it is opened.
func (r *rig) gate() {
	r.t.Helper()
	r.must(syscall.Mkfifo(filepath.Join(r.ctrl(), "gate"), 0o600))
}

// open lets the agent that waits at the gate go on, and takes the gate away.
func (r *rig) open() {
	r.t.Helper()
	path := filepath.Join(r.ctrl(), "gate")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	r.must(err)
	defer f.Close()
	r.must(os.Remove(path))
	_, err = f.WriteString("opened\n")
	r.must(err)

}

// prompt is what the n-th call of the agent was asked.
func (r *rig) prompt(n string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.ctrl(), "prompt."+n))
	r.must(err)
	return string(b)
}

// solved solves an issue with one attempt and returns its number and that of its
// pull request.
func (r *rig) solved() (issue, pull int) {
	r.t.Helper()
	issue = r.solve("A second line", "Please add a second line to a.txt.")
	if s := r.over(threadName(issue)); s.State != "done" {
		r.t.Fatalf("%s is %s (%s %v), want done", s.Thread, s.State, s.Rule, s.Reasons)
	}
	r.settle()
	for _, p := range r.world.Pulls(rigRepo) {
		pull = p.Number
	}
	return issue, pull
}

// judged are the remarks of others than Pawl itself on a thread, in order:
// "+ reason" for those acted on, "- reason" for those ignored.
func (r *rig) judged(n int) []string {
	r.t.Helper()
	var out []string
	s := r.state(n)
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
	r.t.Helper()
	for _, sc := range scenes {
		calls, before := r.calls(), len(r.judged(issue))
		if err := sc.do(); err != nil {
			r.t.Fatalf("%s: %v", sc.name, err)
		}
		r.settle()
		news := r.judged(issue)[before:]
		got := strings.Join(news, "; ")
		extra := 0
		if strings.HasPrefix(sc.want, "+") {
			extra = 1
		}
		switch {
		case sc.want == "" && got != "", sc.want != "" && (len(news) != 1 || got[:2] != sc.want[:2] || !strings.Contains(got, sc.want[2:])):
			r.t.Errorf("%s: judged %q, want %q", sc.name, got, sc.want)
		case r.calls()-calls != extra:
			r.t.Errorf("%s: %d calls of the agent, want %d", sc.name, r.calls()-calls, extra)
		}
	}
}

// eyes counts Pawl's 👀 on a comment.
func (r *rig) eyes(issue int, id int64) int {
	n := 0
	for _, c := range r.world.Comments(rigRepo, issue) {
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
	r.config += "policy: {allowed_bots: [77]}\n"
	r.agent(plainAgent, "")
	r.must(r.world.AddBot("helper[bot]", 77))
	r.start()
	n, _ := r.solved()
	r.play(n, []happens{
		{"a reader commands", r.says(n, reader, "/pawl solve"), "- mallory has read permission; write is needed"},
		{"a listed bot commands", r.says(n, "helper[bot]", "/pawl solve"), "+ command solve"},
		{"a writer who lost the right commands", func() error {
			if err := r.world.SetRole(rigRepo, writer, "read"); err != nil {
				return err
			}
			return r.says(n, writer, "/pawl solve")()
		}, "- ada has read permission"},
	})
}

func TestNobodyIsListenedToBeforeThePermissionIsKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	r.world.Inject(fakegithub.Fault{Route: "GET /repos/*/*/collaborators/*/permission", Times: -1, Status: 500})
	n := r.solve("A second line", "Please.")
	asked := func() int { return r.world.Calls()["GET /repos/{owner}/{repo}/collaborators/{login}/permission"] }
	r.await("the question for the permission", func() bool { return asked() > 0 })
	if s := r.state(n); r.calls() != 0 || len(s.Feedback) != 0 {
		t.Errorf("%d calls of the agent, %d remarks accepted, want none while GitHub does not answer", r.calls(), len(s.Feedback))
	}
	r.world.ClearFaults()
	r.over(threadName(n))
	if r.calls() != 1 {
		t.Errorf("%d calls of the agent once GitHub answered, want 1", r.calls())
	}
}

// says is a comment on a thread, for play.
func (r *rig) says(on int, who, text string) func() error {
	return func() error {
		_, err := r.world.Comment(rigRepo, on, who, text)
		return err
	}
}

// The published attack: what a person with rights saw and asked for is replaced
// before the agent reads it.
func TestTheTextIsThatOfThePayload(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.must(r.world.AddUser("bob", 1003, map[string]string{rigRepo: "write"}))
	r.start()
	n, err := r.world.OpenIssue(rigRepo, reader, "HONEST title", "HONEST description")
	r.must(err)
	r.settle()
	r.world.Hold()
	id, err := r.world.Comment(rigRepo, n, writer, "/pawl solve HONEST command")
	r.must(err)
	r.must(r.world.EditComment(rigRepo, id, "bob", "/pawl solve EVIL command"))
	r.must(r.world.EditBody(rigRepo, n, reader, "EVIL description"))
	r.must(r.world.EditTitle(rigRepo, n, reader, "EVIL title"))
	// What was edited arrives first: the order of webhooks is not guaranteed.
	held := r.world.Held()
	r.world.Release(held[3].GUID, held[2].GUID, held[1].GUID, held[0].GUID)
	r.over(threadName(n))
	r.settle()
	p := r.prompt("1")
	for _, what := range []string{"title", "description", "command"} {
		if !strings.Contains(p, "HONEST "+what) || strings.Contains(p, "EVIL "+what) {
			t.Errorf("the prompt holds another %s than the payload of the command:\n%s", what, p)
		}
	}
	_, err = r.world.Comment(rigRepo, n, reader, "/pawl solve")
	r.must(err)
	// A retry by a button brings no texts: those of the last request stand.
	pull := r.world.Pulls(rigRepo)[0].Pull
	r.must(r.world.ClickButton(rigRepo, r.check(pull.HeadSHA, "pawl").ID, "retry", writer))
	r.await("the second attempt", func() bool { return r.calls() == 2 })
	r.settle()
	if p := r.prompt("2"); strings.Contains(p, "EVIL") || !strings.Contains(p, "HONEST description") {
		t.Errorf("the prompt of the retry is\n%s\nwant the texts of the command", p)
	}
}
