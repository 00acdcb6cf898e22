package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// marks are the HTML comments in a text of Pawl, which a bridge does not copy.
var marks = regexp.MustCompile(`<!--.*?-->`)

func TestABridgeThatCopiesPawlsTextsStartsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, pull := r.solved()
	r.must(r.says(n, writer, "/pawl why")())
	r.settle()
	var texts []string
	for _, c := range r.world.Comments(rigRepo, n) {
		if c.Author == "pawl[bot]" {
			texts = append(texts, marks.ReplaceAllString(c.Body, ""))
		}
	}
	if len(texts) != 2 {
		t.Fatalf("Pawl wrote %q, want its status and an answer", texts)
	}
	for _, p := range r.world.Pulls(rigRepo) {
		texts = append(texts, marks.ReplaceAllString(p.Body, ""))
	}
	const own = "- it is a copy of what Pawl wrote"
	var scenes []happens
	for i, text := range texts {
		scenes = append(scenes,
			happens{fmt.Sprintf("text %d", i), r.says(pull, writer, text), own},
			happens{fmt.Sprintf("text %d below its writer", i), r.says(pull, writer, "**pawl[bot]** wrote:\n"+text), own},
			happens{fmt.Sprintf("text %d quoted", i), r.says(pull, writer, "> "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ")), "- it says nothing but what it quotes"},
			happens{fmt.Sprintf("text %d cut", i), r.says(pull, writer, text[:len(text)*3/4]+"…"), own})
	}
	r.play(n, append(scenes,
		happens{"a person about such a text", r.says(pull, writer, "> "+strings.Fields(texts[0])[0]+"\n\nNow add a third line."), "+ a new comment"},
		happens{"the same again", r.says(pull, writer, "> "+strings.Fields(texts[0])[0]+"\n\nNow add a third line."), "- an attempt was made for the same words"},
		happens{"thanks", r.says(pull, writer, "Thanks, looks great! :tada:"), "- thanks, emoji and approvals"},
		happens{"an approval", func() error { _, err := r.world.Review(rigRepo, pull, writer, "APPROVED", "LGTM"); return err }, "- an approval asks for no work"},
		happens{"an approval with a request", func() error {
			_, err := r.world.Review(rigRepo, pull, writer, "APPROVED", "LGTM, but please add a fourth line.")
			return err
		}, "+ a review remark"},
		happens{"a reader asks for all checks again", func() error { return r.world.RerequestAll(rigRepo, r.check(r.head(pull), "pawl").ID, reader) }, "- mallory has read permission"},
		happens{"a writer asks for all checks again", func() error { return r.world.RerequestAll(rigRepo, r.check(r.head(pull), "pawl").ID, writer) }, `+ button "retry"`},
	))
}
