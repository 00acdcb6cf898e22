package main

import (
	"strings"
	"testing"
)

// says is a comment on a thread, for play.
func (r *rig) says(on int, who, text string) func() error {
	return func() error {
		_, err := r.world.Comment(rigRepo, on, who, text)
		return err
	}
}

func TestCommandsThatAreNotTheWritersOwnWordsDoNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, err := r.world.OpenIssue(rigRepo, writer, "A second line", "Please add a second line to a.txt.")
	r.must(err)
	r.settle()
	r.play(n, []happens{
		{"a quotation", r.says(n, writer, "> /pawl solve\n\nWhat does this do?"), "- it holds no command"},
		{"a quotation that goes on without its sign", r.says(n, writer, "> somebody said\n/pawl solve"), "- it holds no command"},
		{"a code block", r.says(n, writer, "Write\n```\n/pawl solve\n```\nto start it."), "- it holds no command"},
		{"a code block with tildes", r.says(n, writer, "~~~text\n/pawl solve\n~~~"), "- it holds no command"},
		{"an indented code block", r.says(n, writer, "Write\n\n    /pawl solve"), "- it holds no command"},
		{"a code span", r.says(n, writer, "`/pawl solve` starts it."), "- it holds no command"},
		{"an HTML comment", r.says(n, writer, "Hello.\n<!--\n/pawl solve\n-->"), "- it holds no command"},
		{"an HTML comment and nothing else", r.says(n, writer, "<!-- /pawl solve -->"), "- there is no text to work on"},
		{"a quoted e-mail", r.says(n, writer, "Thanks.\n\nOn Mon, 2 Nov 2026 at 10:00, Ada <ada@example.com> wrote:\n> /pawl solve"), "- it holds no command"},
		{"an e-mail passed on", r.says(n, writer, "See below.\n\n-----Original Message-----\nFrom: Ada\nSent: Monday\n\n/pawl solve"), "- it holds no command"},
		{"in the middle of a line", r.says(n, writer, "Try /pawl solve or @pawl"), "- it holds no command"},
		{"another App's mention", r.says(n, writer, "@pawl-staging please"), "- it holds no command"},
		{"a path", r.says(n, writer, "/pawl/solve"), "- it holds no command"},
		{"the writer's own words under a quotation", r.says(n, writer, "> what now?\n\n/pawl solve with ALPHA\nand BETA"), "+ command solve"},
	})
	if p := r.prompt("1"); !strings.Contains(p, "with ALPHA\nand BETA") || strings.Contains(p, "what now") {
		t.Errorf("the prompt is\n%s\nwant it to hold the command's text and no quotation", p)
	}
}

func TestAnEditedCommentCountsOnlyWhenItsAuthorEditedIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.must(r.world.AddUser("bob", 1003, map[string]string{rigRepo: "admin"}))
	r.start()
	n, _ := r.solved()
	own, err := r.world.Comment(rigRepo, n, writer, "Thank you.")
	r.must(err)
	others, err := r.world.Comment(rigRepo, n, reader, "Thank you, too.")
	r.must(err)
	r.settle()
	edits := func(id int64, who, text string) func() error {
		return func() error { return r.world.EditComment(rigRepo, id, who, text) }
	}
	r.play(n, []happens{
		{"another writer puts a command into it", edits(own, "bob", "/pawl solve"), "- bob edited the text of ada; only the author's own edit counts"},
		{"a writer puts a command into a reader's", edits(others, "bob", "/pawl solve"), "- bob edited the text of mallory"},
		{"its author, who may only read, edits it", edits(others, reader, "/pawl solve this"), "- mallory has read permission"},
		{"its author makes it a command", edits(own, writer, "/pawl solve GAMMA"), "+ command solve"},
		{"its author changes white space", edits(own, writer, "/pawl  solve GAMMA\r\n"), "- the edit did not change the content"},
		{"its author edits it after losing the right", func() error {
			if err := r.world.SetRole(rigRepo, writer, "read"); err != nil {
				return err
			}
			return r.world.EditComment(rigRepo, own, writer, "/pawl solve DELTA")
		}, "- ada has read permission"},
	})
	if p := r.prompt("2"); !strings.Contains(p, "GAMMA") {
		t.Errorf("the prompt is\n%s\nwant it to hold the edited text", p)
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
	// A retry by a button brings no texts: those of the last trigger stand.
	pull := r.world.Pulls(rigRepo)[0].Pull
	r.must(r.world.ClickButton(rigRepo, r.check(pull.HeadSHA, "pawl").ID, "retry", writer))
	r.await("the second attempt", func() bool { return r.calls() == 2 })
	r.settle()
	if p := r.prompt("2"); strings.Contains(p, "EVIL") || !strings.Contains(p, "HONEST description") {
		t.Errorf("the prompt of the retry is\n%s\nwant the texts of the command", p)
	}
}

func TestLabelsReviewsAndNewThreadsAsk(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, pull := r.solved()
	label := func(on int, who, name string) func() error {
		return func() error { return r.world.AddLabel(rigRepo, on, who, name) }
	}
	review := func(who, state, text string) func() error {
		return func() error { _, err := r.world.Review(rigRepo, pull, who, state, text); return err }
	}
	r.play(n, []happens{
		{"another label", label(n, writer, "bug"), `- label "bug" is not "pawl"`},
		{"the label", label(n, writer, "pawl"), `+ label "pawl" was added`},
		{"the label taken off", func() error { return r.world.RemoveLabel(rigRepo, n, writer, "pawl") }, ""},
		{"the label by a reader", label(n, reader, "pawl"), "- mallory has read permission"},
		{"an approval", review(writer, "APPROVED", "Very nice."), "- an approval asks for no work"},
		{"a request for changes", review(writer, "CHANGES_REQUESTED", "Use REVIEWED words."), "+ a review requests changes"},
		{"a request for changes without a text", review(writer, "CHANGES_REQUESTED", ""), "+ a review requests changes"},
		{"a request for changes by a reader", review(reader, "CHANGES_REQUESTED", "No."), "- mallory has read permission"},
		{"a review that remarks", review(writer, "COMMENTED", "What about b.txt?"), "+ a review remark on Pawl's pull request"},
		{"a command in an approval", review(writer, "APPROVED", "/pawl solve the rest"), "+ command solve"},
	})
	if p := r.prompt("3"); !strings.Contains(p, "Use REVIEWED words.") {
		t.Errorf("the prompt is\n%s\nwant the review's text", p)
	}
	_, err := r.world.ReviewComment(t.Context(), rigRepo, pull, writer, "a.txt", 2, "LINED remark")
	r.must(err)
	r.await("the attempt after the remark on a line", func() bool { return r.calls() == 7 })
	r.settle()
	if p := r.prompt("7"); !strings.Contains(p, "a.txt:2\nLINED remark") {
		t.Errorf("the prompt is\n%s\nwant the remark with its place", p)
	}
	for _, tc := range []struct{ title, body, label string }{
		{"by mention", "@pawl please add a line.", ""}, {"by command", "See a.txt.\n\n/pawl solve", ""}, {"by label", "Add a line.", "pawl"},
	} {
		var labels []string
		if tc.label != "" {
			labels = []string{tc.label}
		}
		calls := r.calls()
		opened, err := r.world.OpenIssue(rigRepo, writer, tc.title, tc.body, labels...)
		r.must(err)
		r.over(threadName(opened))
		r.settle()
		if got := r.calls() - calls; got != 1 {
			t.Errorf("an issue that asks %s: %d calls of the agent, want 1: %q", tc.title, got, r.judged(opened))
		}
	}
}
