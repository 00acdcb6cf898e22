package server_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/testrig"
)

// reactions are those on the comments of an issue.
func (r *rig) reactions(n int) (all []string) {
	for _, c := range r.World.Comments(testrig.Repo, n) {
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
			r.Agent(testrig.PlainAgent, "")
			r.Must(r.World.AddUser("eve", 1004, map[string]string{testrig.Repo: "read"}))
			if public {
				r.Must(r.World.Publish(testrig.Repo))
			}
			r.Start()
			n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A line", "Please add a line.")
			r.Must(err)
			second, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A line", "Please add another line.")
			r.Must(err)
			say := func(n int, who, words string) {
				_, err := r.World.Comment(testrig.Repo, n, who, words)
				r.Must(err)
				r.Settle()
			}
			say(n, testrig.Reader, "/pawl solve")
			say(n, testrig.Reader, "/pawl stop")
			say(second, testrig.Reader, "@pawl do it")
			say(n, testrig.Reader, "What a pity.")
			say(n, testrig.Reader, "I like @pawl very much.")
			want := map[bool][]string{true: {"confused by pawl[bot]"}}[public]
			if got := append(r.reactions(n), r.reactions(second)...); !slices.Equal(got, want) {
				t.Errorf("reactions %q, want %q", got, want)
			}
			answers := append(r.Answers(n), r.Answers(second)...)
			if public != (len(answers) == 0) || !public && (len(answers) != 1 || !strings.HasPrefix(answers[0], "`mallory` may not write to this repository, and Pawl takes orders from people who may; nothing was done.")) {
				t.Errorf("answers %q", answers)
			}
			say(second, "eve", "/pawl solve")
			if got := len(r.reactions(second)) + len(r.Answers(second)); got != 1 || r.Calls() != 0 {
				t.Errorf("another person got %d answers, and the agent %d calls", got, r.Calls())
			}
			if s := r.State(n); s.Tracked() || s.Snapshot.Title != "" {
				t.Errorf("the thread is %+v", s.Snapshot)
			}
		})
	}
}

// The REST API has no reactions to reviews.
func TestAReviewIsAnsweredByAReactionToo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Must(r.World.Publish(testrig.Repo))
	r.Start()
	n := r.Solve("A line", "Please add a line to a.txt.")
	r.Await("the pull request", func() bool { return r.PullOf(n) > 0 })
	r.Settle()
	pull := r.PullOf(n)
	_, err := r.World.Review(testrig.Repo, pull, testrig.Reader, "COMMENTED", "/pawl solve add another line")
	r.Must(err)
	r.Settle()
	_, err = r.World.Review(testrig.Repo, pull, testrig.Writer, "CHANGES_REQUESTED", "Please add another line.")
	r.Must(err)
	r.Await("the second attempt", func() bool { return r.Calls() == 2 })
	r.Settle()
	if got, want := r.World.ReviewReactions(testrig.Repo, pull), []string{"confused by pawl[bot]", "eyes by pawl[bot]"}; !slices.Equal(got, want) {
		t.Errorf("reactions %q, want %q", got, want)
	}
}

func TestAMentionWithinALineIsSaidOnceToBeNoOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Must(r.World.AddUser("helper[bot]", 1005, map[string]string{testrig.Repo: "write"}))
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A line", "Ask @pawl for it.")
	r.Must(err)
	r.Settle()
	quiet, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Another", "Nothing.")
	r.Must(err)
	for _, words := range []string{"Mail foo@pawl.example.", "See `@pawl`.", "> ask @pawl", "We use @pawl-next and @pawl/team.", "```\nask @pawl now\n```"} {
		_, err := r.World.Comment(testrig.Repo, quiet, testrig.Writer, words)
		r.Must(err)
	}
	_, err = r.World.Comment(testrig.Repo, quiet, "helper[bot]", "I think @pawl could do it.")
	r.Must(err)
	_, err = r.World.Comment(testrig.Repo, quiet, "pawl[bot]", "I think @pawl could do it.")
	r.Must(err)
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "Could @pawl do it?")
	r.Must(err)
	r.Settle()
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "Well, @pawl?")
	r.Must(err)
	r.Settle()
	want := "`@pawl` within a line is no order, so nothing was done. To ask for work, begin a line with it or with `/pawl solve`."
	if all := r.Answers(n); len(all) != 1 || !strings.HasPrefix(all[0], want) || r.Calls() != 0 {
		t.Errorf("answers %q after %d calls of the agent", all, r.Calls())
	}
	if all := r.Answers(quiet); len(all) != 0 {
		t.Errorf("answers %q to what mentions nobody", all)
	}
}

func TestABackendThatTheRepositoryExcludesIsSaidNotToBeUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", config.RepoFile: "backends: [mine]\n"})
	r.Agent(testrig.PlainAgent, "")
	r.Config += fmt.Sprintf("  - {name: other, kind: command, argv: [%q], effort: low, escalated_effort: high}\n", filepath.Join(r.Dir, "agent.sh"))
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A line", "Please add a line.")
	r.Must(err)
	want := "`other` is none of the backends in `.github/pawl.yml` of this repository, so it is not used.\n\nThere is `mine`."
	// What the repository allows is known once it was looked at.
	r.Must(r.World.AddLabel(testrig.Repo, n, testrig.Writer, "pawl:other"))
	if s := r.Ending(n); s.State != "done" || r.State(n).Attempts[0].Backend != "mine" {
		t.Fatalf("%s (%s %q) by %+v", s.State, s.Rule, s.Reasons, r.State(n).Attempts)
	}
	if all := r.Answers(n); len(all) != 1 || !strings.HasPrefix(all[0], want) {
		t.Errorf("answers %q", all)
	}
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl use other")
	r.Must(err)
	r.Settle()
	if all := r.Answers(n); len(all) != 1 || !strings.HasPrefix(all[0], want) || r.Calls() != 1 {
		t.Errorf("answers %q after %d calls", all, r.Calls())
	}
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl escalate")
	r.Must(err)
	r.Ending(n)
	if all := strings.Join(r.Answers(n), "\n"); !strings.Contains(all, "No backend that works here has an escalated effort") {
		t.Errorf("escalate is answered %q", all)
	}
}
