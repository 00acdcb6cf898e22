package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestPawlWorksWhenItIsAssignedByAWriter(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")

	r.must(r.world.AddUser("pawl-agent", 1003, map[string]string{rigRepo: "read"}))
	file := r.file()
	text, err := os.ReadFile(file)
	r.must(err)
	r.must(os.WriteFile(file, bytes.Replace(text, []byte("private_key_file: app.pem"), []byte("private_key_file: app.pem, user: Pawl-Agent"), 1), 0o600))
	r.startWith(file)
	// GitHub lets nobody ask an App's bot or a stranger, so the world does it in their place.
	for i, tc := range []struct {
		by, whom string
		works    bool
	}{{writer, writer, false}, {reader, "pawl[bot]", false}, {reader, "pawl-agent", false}, {writer, "pawl[bot]", true}, {writer, "pawl-agent", true}} {
		n, err := r.world.OpenIssue(rigRepo, writer, "A line", "Please add a line.")
		r.must(err)
		before := r.calls()
		r.must(r.world.Assign(rigRepo, n, tc.by, tc.whom))
		r.settle()
		if tc.works {
			if s := r.ending(n); s.State != "done" {
				t.Errorf("%d: %s (%s %q)", i, s.State, s.Rule, s.Reasons)
			}
			if f := r.state(n).Feedback; len(f) != 1 || f[0].Reason != tc.whom+" was assigned" {
				t.Errorf("%d: %+v", i, f)
			}
			r.must(r.world.Assign(rigRepo, n, "pawl[bot]", "pawl[bot]")) // its own doing asks for nothing
			r.settle()
		}
		if got := r.calls() - before; got != map[bool]int{true: 1}[tc.works] {
			t.Errorf("%d: %d calls of the agent", i, got)
		}
	}
	n, err := r.world.OpenIssue(rigRepo, writer, "Why", "Why.")
	r.must(err)
	r.must(r.world.Assign(rigRepo, n, reader, "pawl-agent"))
	r.settle()
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl why")
	r.must(err)
	r.await("an answer", func() bool {
		return strings.Contains(strings.Join(r.answers(n), "\n"), "mallory has read permission; write is needed")
	})
}

func TestPawlWorksWhenItIsAskedForAReviewByAWriter(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	_, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "feature", Message: "Add b.txt", Files: map[string]string{"b.txt": "b\n"}})
	r.must(err)
	n, err := r.world.OpenPull(t.Context(), rigRepo, writer, fakegithub.PullRequest{Title: "A feature", Body: "Adds b.txt.", Head: "feature"})
	r.must(err)
	r.must(r.world.AskReview(rigRepo, n, writer, reader))
	r.must(r.world.AskReview(rigRepo, n, reader, "pawl[bot]"))
	r.settle()
	if r.calls() != 0 {
		t.Fatalf("%d calls of the agent, where nobody who may asked Pawl", r.calls())
	}
	_, err = r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "another", Message: "Add c.txt", Files: map[string]string{"c.txt": "c\n"}})
	r.must(err)
	n, err = r.world.OpenPull(t.Context(), rigRepo, writer, fakegithub.PullRequest{Title: "Another", Body: "Adds c.txt.", Head: "another"})
	r.must(err)
	r.must(r.world.AskReview(rigRepo, n, writer, "pawl[bot]"))
	if s := r.ending(n); s.State != "done" || r.calls() != 1 {
		t.Errorf("%s (%s %q) after %d calls", s.State, s.Rule, s.Reasons, r.calls())
	}
}
