package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// marks are the HTML comments in a text of Pawl, which a bridge does not copy.
var marks = regexp.MustCompile(`<!--.*?-->`)

func TestABridgeThatCopiesPawlsTextsStartsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, pull := r.Solved()
	r.Must(r.Says(n, testrig.Writer, "/pawl why")())
	r.Settle()
	var texts []string
	for _, c := range r.World.Comments(testrig.Repo, n) {
		if c.Author == "pawl[bot]" {
			texts = append(texts, marks.ReplaceAllString(c.Body, ""))
		}
	}
	if len(texts) != 2 {
		t.Fatalf("Pawl wrote %q, want its status and an answer", texts)
	}
	for _, p := range r.World.Pulls(testrig.Repo) {
		texts = append(texts, marks.ReplaceAllString(p.Body, ""))
	}
	const own = "- it is a copy of what Pawl wrote"
	var scenes []happens
	for i, text := range texts {
		scenes = append(scenes,
			happens{fmt.Sprintf("text %d", i), r.Says(pull, testrig.Writer, text), own},
			happens{fmt.Sprintf("text %d below its writer", i), r.Says(pull, testrig.Writer, "**pawl[bot]** wrote:\n"+text), own},
			happens{fmt.Sprintf("text %d quoted", i), r.Says(pull, testrig.Writer, "> "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ")), "- it says nothing but what it quotes"},
			happens{fmt.Sprintf("text %d cut", i), r.Says(pull, testrig.Writer, text[:len(text)*3/4]+"…"), own})
	}
	r.play(n, append(scenes,
		happens{"a person about such a text", r.Says(pull, testrig.Writer, "> "+strings.Fields(texts[0])[0]+"\n\nNow add a third line."), "+ a new comment"},
		happens{"the same again", r.Says(pull, testrig.Writer, "> "+strings.Fields(texts[0])[0]+"\n\nNow add a third line."), "- an attempt was made for the same words"},
		happens{"thanks", r.Says(pull, testrig.Writer, "Thanks, looks great! :tada:"), "- thanks, emoji and approvals"},
		happens{"an approval", func() error {
			_, err := r.World.Review(testrig.Repo, pull, testrig.Writer, "APPROVED", "LGTM")
			return err
		}, "- an approval asks for no work"},
		happens{"an approval with a request", func() error {
			_, err := r.World.Review(testrig.Repo, pull, testrig.Writer, "APPROVED", "LGTM, but please add a fourth line.")
			return err
		}, "+ a review remark"},
		happens{"a reader asks for all checks again", func() error {
			return r.World.RerequestAll(testrig.Repo, r.Check(r.Head(pull), "pawl").ID, testrig.Reader)
		}, "- mallory has read permission"},
		happens{"a writer asks for all checks again", func() error {
			return r.World.RerequestAll(testrig.Repo, r.Check(r.Head(pull), "pawl").ID, testrig.Writer)
		}, `+ button "retry"`},
	))
}
