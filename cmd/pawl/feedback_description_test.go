package main

import (
	"strings"
	"testing"
)

func TestADescriptionEditCountsOnlyWhenItsContentChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	const body = "Please add a second line to a.txt.\n\n- [ ] line two\n- [ ] nothing else\n"
	const more = "Please add a second line to a.txt.\n\n- [ ] line two\n- [ ] a THIRD line\n"
	n := r.solve("A second line", body)
	r.over(threadName(n))
	r.settle()
	pull := r.world.Pulls(rigRepo)[0]
	other, err := r.world.OpenIssue(rigRepo, writer, "Another", "one")
	r.must(err)
	edits := func(on int, who, text string) func() error {
		return func() error { return r.world.EditBody(rigRepo, on, who, text) }
	}
	const same = "- the description's content did not change"
	r.play(n, []happens{
		{"a re-save", edits(n, writer, body), same},
		{"a touched time stamp", func() error { return r.world.TouchIssue(rigRepo, n, writer) }, ""},
		{"another title", func() error { return r.world.EditTitle(rigRepo, n, writer, "Two lines") }, "- the description was not edited"},
		{"a ticked box", edits(n, writer, strings.Replace(body, "[ ] line", "[x] line", 1)), same},
		{"line ends and white space", edits(n, writer, strings.ReplaceAll(body, "\n", "  \r\n")+"\r\n\r\n"), same},
		{"Pawl's own block", edits(n, writer, body+"\n<!-- pawl:begin -->\nSeen 3 times\n<!-- pawl:end -->\n"), same},
		{"Pawl's own block again", edits(n, writer, body+"\n<!-- pawl:begin -->\nSeen 4 times\n<!-- pawl:end -->\n"), same},
		{"an HTML comment", edits(n, writer, body+"<!-- /pawl solve -->"), same},
		{"a reader's change", edits(n, reader, body+"- [ ] for me"), "- mallory has read permission"},
		{"the way back from it", edits(n, writer, body), "- the description was edited back"},
		{"a reader's way back", edits(n, reader, body+"\n"), "- the description's content did not change"},
		{"a change", edits(n, writer, more), "+ the description's content changed"},
		{"the way back", edits(n, writer, body), "- the description was edited back"},
		{"and forth", edits(n, writer, more), "- the description was edited back"},
		{"a further change", edits(n, writer, more+"- [ ] a FOURTH line\n"), "+ the description's content changed"},
		{"a re-saved pull request", edits(pull.Number, writer, pull.Body), same},
		{"a changed pull request", edits(pull.Number, writer, pull.Body+"\n\nMind the FIFTH line."), "+ the description's content changed"},
	})
	p := r.prompt("2")
	for _, want := range []string{"Change of the description by ada", "@@", "-- [ ] nothing else", "+- [ ] a THIRD line"} {
		if !strings.Contains(p, want) {
			t.Errorf("the prompt is\n%s\nwant it to hold %q", p, want)
		}
	}
	if p := r.prompt("3"); !strings.Contains(p, "+- [ ] a FOURTH line") || strings.Contains(p, "+- [ ] a THIRD line") {
		t.Errorf("the prompt is\n%s\nwant it to hold the second change alone", p)
	}
	if p := r.prompt("4"); !strings.Contains(p, "+Mind the FIFTH line.") || !strings.Contains(p, "a FOURTH line") {
		t.Errorf("the prompt is\n%s\nwant it to hold the issue's description and the change of the pull request's", p)
	}
	r.play(other, []happens{
		{"an issue that Pawl does not work on", edits(other, writer, "two"), ""},
	})
}

func TestAnEditThatIsTakenBackBeforeAnAttemptTookItIsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(gatedAgent, "")
	r.gate()
	r.start()
	n := r.solve("A second line", "Please add a second line.")
	r.await("the agent", func() bool { return r.calls() == 1 })
	r.must(r.world.EditBody(rigRepo, n, writer, "Please add a third line."))
	r.must(r.world.EditBody(rigRepo, n, writer, "Please add a second line."))
	r.handled()
	r.open()
	r.over(threadName(n))
	r.settle()
	if r.calls() != 1 {
		t.Errorf("%d calls of the agent, want 1: %q", r.calls(), r.judged(n))
	}
}

func TestAReaderCannotTakeBackWhatAWriterAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(gatedAgent, "")
	r.gate()
	r.start()
	n := r.solve("A second line", "Please add a second line.")
	r.await("the agent", func() bool { return r.calls() == 1 })
	r.must(r.world.EditBody(rigRepo, n, writer, "Please add a THIRD line."))
	r.handled()
	r.must(r.world.EditBody(rigRepo, n, reader, "Please add a second line."))
	r.handled()
	r.open()
	r.await("the second attempt", func() bool { return r.calls() == 2 })
	r.settle()
	if p := r.prompt("2"); !strings.Contains(p, "+Please add a THIRD line.") {
		t.Errorf("the prompt is\n%s\nwant the writer's change", p)
	}
}
