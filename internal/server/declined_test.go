package server_test

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

func TestAnAgentMayDeclineAndAPersonIsAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['grep two a.txt']\n"})
	r.Agent(testrig.Saying(t, "", "I look at the task.", "DECLINED: a.txt is to be empty, and to hold @everyone and <!-- x -->\nBoth cannot be."), "stream: codex, escalated_effort: high")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "An odd task", "Please empty a.txt.")
	r.Must(err)
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve and fill it, too")
	r.Must(err)
	s := r.Ending(n)
	all := r.State(n).Attempts
	last := all[len(all)-1].Receipt
	if r.Calls() != 1 || s.Rule != "declined" || last.Outcome != policy.Declined || len(last.Verify) != 0 || last.Detail != "" {
		t.Fatalf("%d calls, then %s (%s %q) with outcome %s, verified by %v, %q; want one, then declined", r.Calls(), s.State, s.Rule, s.Reasons, last.Outcome, last.Verify, last.Detail)
	}
	comment := ""
	for _, c := range r.World.Comments(testrig.Repo, n) {
		if strings.Contains(c.Body, checkrun.StatusMarker(testrig.ThreadName(n))) {
			comment = c.Body
		}
	}
	comment, _, _ = strings.Cut(comment, "What the agent says:") // in a block of code
	for _, want := range []string{"Stopped: the agent declined: a.txt is to be empty", "the agent declined: a.txt is to be empty", "You can:** Say in a comment what to do instead"} {
		if !strings.Contains(comment, want) || strings.Contains(comment, "<!-- x") || strings.Contains(comment, "How it failed") {
			t.Errorf("the status comment does not say %q alone:\n%s", want, comment)
		}
	}
	if g := all[0]; len(r.World.Pulls(testrig.Repo)) != 0 || g.Receipt.Progress() {
		t.Errorf("declining led to %d pull requests", len(r.World.Pulls(testrig.Repo)))
	}
	r.play(n, []happens{{"a person says what to do instead", r.Says(n, testrig.Writer, "/pawl solve only the first half then"), "+ command solve"}})
	for _, want := range []string{"and fill it, too", "only the first half then", "The last attempt declined the task", "a.txt is to be empty"} {
		if p := r.Prompt("2"); !strings.Contains(p, want) {
			t.Errorf("the second prompt does not say %q:\n%s", want, p)
		}
	}
}

func TestWhatLooksLikeADeclineIsNone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		does     string
		messages []string
		rule     policy.Rule
	}{
		"with changes":             {"echo two >> a.txt", []string{"DECLINED: I did it all the same"}, "done"},
		"in a block of code":       {"", []string{"```\nDECLINED: an example\n```"}, "no_change"},
		"in an earlier message":    {"", []string{"DECLINED: so I thought", "No, nothing is to be done."}, "no_change"},
		"after a failure":          {"", []string{"DECLINED: no"}, "no_progress"},
		"with a protected file":    {"mkdir -p .github && echo x > .github/pawl.yml", []string{"DECLINED: no"}, "left_out"},
		"further down its message": {"", []string{"I looked.\n\nDECLINED: no"}, "no_change"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			script := testrig.Saying(t, tc.does, tc.messages...)
			if tc.rule == "no_progress" {
				script = strings.Replace(script, `{"type":"turn.completed"`, `{"type":"turn.failed","error":{"message":"it broke"}`, 1) + "exit 1\n"
			}
			r.Agent(script, "stream: codex")
			r.Start()
			n := r.Solve("A task", "Please.")
			if s := r.Ending(n); s.Rule != tc.rule || r.Calls() != 1 {
				t.Errorf("%s (%s %q) after %d calls, want %s after one", s.State, s.Rule, s.Reasons, r.Calls(), tc.rule)
			}
		})
	}
}
