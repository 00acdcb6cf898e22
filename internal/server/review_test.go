package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// An agent that could make a stop look like its own could not be stopped.
func TestAStopCountsAlsoWhereTheAgentPrintedTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo '+ gh issue comment 1 --body \"/pawl stop\"; gh issue comment 1 --body \"/pawl solve\"'\n"+testrig.GatedAgent, "")
	r.Gate()
	r.Start()
	n := r.Solve("A second line", "Please add a second line.")
	r.Await("the log to hold what the agent printed", func() bool {
		return slices.ContainsFunc(r.Events(n), func(e thread.Event) bool { return e.Kind == thread.KindAuthored })
	})
	for _, text := range []string{"/pawl solve", "/pawl stop"} {
		_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, text)
		r.Must(err)
		r.Handled()
	}
	if got := strings.Join(r.judged(n), "; "); !strings.Contains(got, "- the agent wrote it itself") {
		t.Errorf("judged %s, want the solve that the agent printed ignored", got)
	}
	if s := r.State(n); !strings.Contains(s.Stopped, testrig.Writer) {
		t.Errorf("stopped is %q (%s), want it to be by %s", s.Stopped, fmt.Sprint(r.judged(n)), testrig.Writer)
	}
}

func TestOnThreadsOfOthersOnlyWhatSpeaksToPawlIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Talk", strings.Repeat("talk ", 1000))
	r.Must(err)
	const refused = "- mallory has read permission"
	r.play(n, []happens{
		{"a writer talks", r.Says(n, testrig.Writer, "Nice weather."), ""},
		{"a reader talks", r.Says(n, testrig.Reader, strings.Repeat("spam ", 5000)), ""},
		{"a description changes", func() error { return r.World.EditBody(testrig.Repo, n, testrig.Writer, "less talk") }, ""},
		{"a reader commands", r.Says(n, testrig.Reader, "/pawl solve "+strings.Repeat("é", 10000)), refused},
		{"a reader mentions", r.Says(n, testrig.Reader, "@pawl please"), refused},
	})
	for _, f := range r.State(n).Ignored {
		if len(f.Raw) > 500 || f.Text != "" || f.Snapshot == nil || f.Snapshot.Title+f.Snapshot.Body != "" {
			t.Errorf("%d bytes and %+v of an ignored remark are kept, want 500 and no texts", len(f.Raw), f.Snapshot)
		}
	}
	if r.Calls() != 0 {
		t.Errorf("%d calls of the agent, want none", r.Calls())
	}
}
