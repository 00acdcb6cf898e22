package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
)

// reactions are those on the comments of an issue.
func (r *rig) reactions(n int) (all []string) {
	for _, c := range r.world.Comments(rigRepo, n) {
		all = append(all, c.Reactions...)
	}
	return all
}

func TestAnOrderBySomebodyWhoMayNotIsAnsweredOnceADay(t *testing.T) {
	t.Parallel()
	for _, public := range []bool{true, false} {
		t.Run(fmt.Sprintf("public=%t", public), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.agent(plainAgent, "")
			r.must(r.world.AddUser("eve", 1004, map[string]string{rigRepo: "read"}))
			if public {
				r.must(r.world.Publish(rigRepo))
			}
			r.start()
			n, err := r.world.OpenIssue(rigRepo, writer, "A line", "Please add a line.")
			r.must(err)
			second, err := r.world.OpenIssue(rigRepo, writer, "A line", "Please add another line.")
			r.must(err)
			say := func(n int, who, words string) {
				_, err := r.world.Comment(rigRepo, n, who, words)
				r.must(err)
				r.settle()
			}
			say(n, reader, "/pawl solve")
			say(n, reader, "/pawl stop")
			say(second, reader, "@pawl do it")
			say(n, reader, "What a pity.")
			say(n, reader, "I like @pawl very much.")
			want := map[bool][]string{true: {"confused by pawl[bot]"}}[public]
			if got := append(r.reactions(n), r.reactions(second)...); !slices.Equal(got, want) {
				t.Errorf("reactions %q, want %q", got, want)
			}
			answers := append(r.answers(n), r.answers(second)...)
			if public != (len(answers) == 0) || !public && (len(answers) != 1 || !strings.HasPrefix(answers[0], "`mallory` may not write to this repository, and Pawl takes orders from people who may; nothing was done.")) {
				t.Errorf("answers %q", answers)
			}
			say(second, "eve", "/pawl solve")
			if got := len(r.reactions(second)) + len(r.answers(second)); got != 1 || r.calls() != 0 {
				t.Errorf("another person got %d answers, and the agent %d calls", got, r.calls())
			}
			if s := r.state(n); s.Tracked() || s.Snapshot.Title != "" {
				t.Errorf("the thread is %+v", s.Snapshot)
			}
		})
	}
}

// The REST API has no reactions to reviews.
func TestAReviewIsAnsweredByAReactionToo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.must(r.world.Publish(rigRepo))
	r.start()
	n := r.solve("A line", "Please add a line to a.txt.")
	r.await("the pull request", func() bool { return r.pullOf(n) > 0 })
	r.settle()
	pull := r.pullOf(n)
	_, err := r.world.Review(rigRepo, pull, reader, "COMMENTED", "/pawl solve add another line")
	r.must(err)
	r.settle()
	_, err = r.world.Review(rigRepo, pull, writer, "CHANGES_REQUESTED", "Please add another line.")
	r.must(err)
	r.await("the second attempt", func() bool { return r.calls() == 2 })
	r.settle()
	if got, want := r.world.ReviewReactions(rigRepo, pull), []string{"confused by pawl[bot]", "eyes by pawl[bot]"}; !slices.Equal(got, want) {
		t.Errorf("reactions %q, want %q", got, want)
	}
}

func TestAMentionWithinALineIsSaidOnceToBeNoOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.must(r.world.AddUser("helper[bot]", 1005, map[string]string{rigRepo: "write"}))
	r.start()
	n, err := r.world.OpenIssue(rigRepo, writer, "A line", "Ask @pawl for it.")
	r.must(err)
	r.settle()
	quiet, err := r.world.OpenIssue(rigRepo, writer, "Another", "Nothing.")
	r.must(err)
	for _, words := range []string{"Mail foo@pawl.example.", "See `@pawl`.", "> ask @pawl", "We use @pawl-next and @pawl/team.", "```\nask @pawl now\n```"} {
		_, err := r.world.Comment(rigRepo, quiet, writer, words)
		r.must(err)
	}
	_, err = r.world.Comment(rigRepo, quiet, "helper[bot]", "I think @pawl could do it.")
	r.must(err)
	_, err = r.world.Comment(rigRepo, quiet, "pawl[bot]", "I think @pawl could do it.")
	r.must(err)
	_, err = r.world.Comment(rigRepo, n, writer, "Could @pawl do it?")
	r.must(err)
	r.settle()
	_, err = r.world.Comment(rigRepo, n, writer, "Well, @pawl?")
	r.must(err)
	r.settle()
	want := "`@pawl` within a line is no order, so nothing was done. To ask for work, begin a line with it or with `/pawl solve`."
	if all := r.answers(n); len(all) != 1 || !strings.HasPrefix(all[0], want) || r.calls() != 0 {
		t.Errorf("answers %q after %d calls of the agent", all, r.calls())
	}
	if all := r.answers(quiet); len(all) != 0 {
		t.Errorf("answers %q to what mentions nobody", all)
	}
}

func TestABackendThatTheRepositoryExcludesIsSaidNotToBeUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", config.RepoFile: "backends: [mine]\n"})
	r.agent(plainAgent, "")
	r.config += fmt.Sprintf("  - {name: other, kind: command, argv: [%q], effort: low, escalated_effort: high}\n", filepath.Join(r.dir, "agent.sh"))
	r.start()
	n, err := r.world.OpenIssue(rigRepo, writer, "A line", "Please add a line.")
	r.must(err)
	want := "`other` is none of the backends in `.github/pawl.yml` of this repository, so it is not used.\n\nThere is `mine`."
	// What the repository allows is known once it was looked at.
	r.must(r.world.AddLabel(rigRepo, n, writer, "pawl:other"))
	if s := r.ending(n); s.State != "done" || r.state(n).Attempts[0].Backend != "mine" {
		t.Fatalf("%s (%s %q) by %+v", s.State, s.Rule, s.Reasons, r.state(n).Attempts)
	}
	if all := r.answers(n); len(all) != 1 || !strings.HasPrefix(all[0], want) {
		t.Errorf("answers %q", all)
	}
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl use other")
	r.must(err)
	r.settle()
	if all := r.answers(n); len(all) != 1 || !strings.HasPrefix(all[0], want) || r.calls() != 1 {
		t.Errorf("answers %q after %d calls", all, r.calls())
	}
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl escalate")
	r.must(err)
	r.ending(n)
	if all := strings.Join(r.answers(n), "\n"); !strings.Contains(all, "No backend that works here has an escalated effort") {
		t.Errorf("escalate is answered %q", all)
	}
}
