package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

func TestPawlWorksWhenItIsAssignedByAWriter(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")

	r.Must(r.World.AddUser("pawl-agent", 1003, map[string]string{testrig.Repo: "read"}))
	file := r.File()
	text, err := os.ReadFile(file)
	r.Must(err)
	r.Must(os.WriteFile(file, bytes.Replace(text, []byte("private_key_file: app.pem"), []byte("private_key_file: app.pem, user: Pawl-Agent"), 1), 0o600))
	r.StartWith(file)
	// GitHub lets nobody ask an App's bot or a stranger, so the world does it in their place.
	for i, tc := range []struct {
		by, whom string
		works    bool
	}{{testrig.Writer, testrig.Writer, false}, {testrig.Reader, "pawl[bot]", false}, {testrig.Reader, "pawl-agent", false}, {testrig.Writer, "pawl[bot]", true}, {testrig.Writer, "pawl-agent", true}} {
		n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A line", "Please add a line.")
		r.Must(err)
		before := r.Calls()
		r.Must(r.World.Assign(testrig.Repo, n, tc.by, tc.whom))
		r.Settle()
		if tc.works {
			if s := r.Ending(n); s.State != "done" {
				t.Errorf("%d: %s (%s %q)", i, s.State, s.Rule, s.Reasons)
			}
			if f := r.State(n).Feedback; len(f) != 1 || f[0].Reason != tc.whom+" was assigned" {
				t.Errorf("%d: %+v", i, f)
			}
			r.Must(r.World.Assign(testrig.Repo, n, "pawl[bot]", "pawl[bot]")) // its own doing asks for nothing
			r.Settle()
		}
		if got := r.Calls() - before; got != map[bool]int{true: 1}[tc.works] {
			t.Errorf("%d: %d calls of the agent", i, got)
		}
	}
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Why", "Why.")
	r.Must(err)
	r.Must(r.World.Assign(testrig.Repo, n, testrig.Reader, "pawl-agent"))
	r.Settle()
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl why")
	r.Must(err)
	r.Await("an answer", func() bool {
		return strings.Contains(strings.Join(r.Answers(n), "\n"), "mallory has read permission; write is needed")
	})
}
