package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

func asking(t *testing.T, verify string) *rig {
	t.Helper()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": fmt.Sprintf("verify: [%q]\n", verify)})
	r.Agent(testrig.Asked, "")
	return r
}

func (r *rig) endsAs(n int, state string, calls int) {
	r.T.Helper()
	if s := r.Ending(n); s.State != state || r.Calls() != calls {
		r.T.Fatalf("%s (%s %q) after %d calls, want %s after %d", s.State, s.Rule, s.Reasons, r.Calls(), state, calls)
	}
}

// wantOneComment checks that exactly one of Pawl's comments on a thread contains first, and that it also contains more.
func (r *rig) wantOneComment(n int, first string, more ...string) fakegithub.Comment {
	r.T.Helper()
	all := r.CommentsWith(n, first)
	if len(all) != 1 {
		r.T.Fatalf("%d comments contain %q, want one: %+v", len(all), first, r.World.Comments(testrig.Repo, n))
	}
	r.wantIn("the comment", all[0].Body, more...)
	return all[0]
}

func TestQuestionChangesNothing(t *testing.T) {
	t.Parallel()
	r := asking(t, "false")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Where is it?", "The number that is shown.")
	r.Must(err)
	r.Writes(n, testrig.Reader, "I think that it is nowhere.")
	before := r.Refs()
	r.Writes(n, testrig.Writer, "/pawl ask Where is\nthe number?")
	r.endsAs(n, "answered", 1)
	r.wantOneComment(n, testrig.AnAnswer, "\n> It is in a.txt, `@everyone`.\n> `<`! `--` pawl:status x `-->` see `#1`\n")
	status := r.StatusComment(n)
	r.wantIn("the status comment", status, "**Answered**", "[what the agent says]("+r.World.WebURL()+"/"+testrig.Repo, "its changes were discarded: `a.txt (thrown away)`")
	r.wantNoneIn("the status comment", status, "Done", "What the agent says:")
	r.wantIn("the prompt", r.Prompt("1"), "Question by ada", "Where is\nthe number?", "The number that is shown.", "> I think that it is nowhere.")
	if diff := cmp.Diff(before, r.Refs()); diff != "" {
		t.Errorf("references (-before +after):\n%s", diff)
	}
	r.pullsAre()
	if got := r.State(n).Attempts[0].Receipt; len(got.Verify) != 0 || got.Commit != "" {
		t.Errorf("verified by %v, commit %q; want neither", got.Verify, got.Commit)
	}
	if l := r.Status().Learning; len(l.Arms) > 0 && l.Arms[0].Rewards != 0 {
		t.Errorf("it was learned from: %+v", l.Arms)
	}
	r.Writes(n, testrig.Writer, "/pawl ask And who put it there?")
	r.Await("the second call", func() bool { return r.Calls() == 2 })
	r.endsAs(n, "answered", 2)
	r.wantIn("the second prompt", r.Prompt("2"), "And who put it there?", "Your last answer or plan")
}

func TestPlanWaitsForGoAndUsesItsEditedText(t *testing.T) {
	t.Parallel()
	r := asking(t, "true")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Numbers", "There are to be more numbers.")
	r.Must(err)
	r.Writes(n, testrig.Writer, "/pawl plan but only small ones")
	r.endsAs(n, "planned", 1)
	r.pullsAre()
	plan := r.wantOneComment(n, testrig.APlan, "\n1. add two\n2. add three, `@everyone`\n")
	r.wantIn("the status comment", r.StatusComment(n), "**Plan waits for `/pawl go`**")
	// An edit by a user without write permission changes nothing.
	edited := strings.Replace(plan.Body, "2. add three, `@everyone`", "2. add four\n3. stop there", 1)
	r.Must(r.World.EditComment(testrig.Repo, plan.ID, testrig.Reader, strings.Replace(edited, "four", "evil", 1)))
	r.Writes(n, testrig.Writer, "/pawl go")
	r.Settle()
	if s := r.Ending(n); s.Rule != policy.RulePlan || !strings.Contains(strings.Join(s.Reasons, " "), "edited by mallory") {
		t.Fatalf("%s (%s %q), want stopped for the edit by mallory", s.State, s.Rule, s.Reasons)
	}
	r.Must(r.World.EditComment(testrig.Repo, plan.ID, testrig.Writer, edited))
	r.Writes(n, testrig.Writer, "/pawl go and be quick")
	r.Await("the work", func() bool { return r.Calls() == 2 })
	r.endsAs(n, "done", 2)
	p := r.Prompt("2")
	r.wantIn("the prompt of the work", p, "The plan that users told you to follow", "1. add two\n2. add four\n3. stop there\n===", "and be quick", "Make the change")
	r.wantNoneIn("the prompt of the work", p, "add three", "evil", "pawl:said")
}

// An answer on Pawl's pull request changes neither its check run nor its description.
func TestQuestionOnPullRequestLeavesTheWork(t *testing.T) {
	t.Parallel()
	r := asking(t, "false")
	r.Config += "policy: {ladder: {verify_retries: 0}}\n"
	r.Start()
	n := r.Solve("A line", "Please add a line.")
	r.Ending(n)
	pull, calls := r.World.Pulls(testrig.Repo)[0], r.Calls()
	was := r.Check(pull.Pull.HeadSHA, "pawl")
	r.Writes(pull.Number, testrig.Writer, "/pawl ask What is missing?")
	r.Await("the answer", func() bool { return len(r.CommentsWith(pull.Number, testrig.AnAnswer)) == 1 })
	r.endsAs(n, "answered", calls+1)
	now := r.World.Pulls(testrig.Repo)[0]
	cost := regexp.MustCompile(`- \d attempts?.*`) // the question counts toward the limit, too
	normalized := func(body string) string { return cost.ReplaceAllString(body, "") }
	if diff := cmp.Diff(normalized(pull.Body)+pull.Pull.HeadSHA, normalized(now.Body)+now.Pull.HeadSHA); diff != "" {
		t.Errorf("the description and the head (-before +after):\n%s", diff)
	}
	check := r.Check(pull.Pull.HeadSHA, "pawl")
	if diff := cmp.Diff(was, check); diff != "" {
		t.Errorf("the check run of the commit (-before +after):\n%s", diff)
	}
}

func TestQuestionDoesNotEndWaitingWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("if grep -q 'Answer the question'; then echo yes; exit; fi\n"+testrig.Gated+"echo two >> a.txt\n", "")
	r.Start()
	n := r.Solve("A line", "Please add a line.")
	r.Await("the work", func() bool { return r.Calls() == 1 })
	r.Writes(n, testrig.Writer, "/pawl ask Does it go well?")
	r.Handled()
	r.Touch("go")
	r.Await("the answer", func() bool { return len(r.CommentsWith(n, testrig.AnAnswer)) == 1 })
	r.endsAs(n, "done", 2)
	r.pullsAre(fakegithub.Pull{Draft: true})
}

// On a user's pull request, questions and plans push nothing and count toward the daily limit.
func TestQuestionsOnUsersPullRequestPushNothing(t *testing.T) {
	t.Parallel()
	r := asking(t, "true")
	r.Config += "policy: {restarts: {max_per_thread_per_day: 2}}\n"
	r.Start()
	n := r.othersPull()
	before := r.Refs()
	for i, c := range []struct{ command, title string }{{"/pawl ask What does it change?", "Answered"}, {"/pawl plan a better one", "Plan waits for /pawl go"}} {
		r.Writes(n, testrig.Writer, c.command)
		r.Await(c.title, func() bool { return r.Check(r.Head(n), "pawl").Title == c.title })
		if got := r.Check(r.Head(n), "pawl").Conclusion; i == 0 && got != "neutral" {
			t.Errorf("the check run of an answer is %s, want neutral", got)
		}
	}
	r.wantIn("the prompt", r.Prompt("1"), "a.txt +1 −0 modified")
	r.Writes(n, testrig.Writer, "/pawl ask And this?")
	r.Await("the wait", func() bool { return r.Thread(testrig.ThreadName(n)).Rule == policy.RuleDailyCap })
	if r.Calls() != 2 || r.Refs() != before {
		t.Errorf("%d calls, want 2; references %s, want %s", r.Calls(), r.Refs(), before)
	}
}

// A server that stops while an agent answers hands the question over, and pushes none of the agent's changes.
func TestInterruptedAnswerIsHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n"})
	r.Agent("echo two >> a.txt; cat > /dev/null\n"+testrig.Gated+"echo 'It is so.'\n", "")
	r.Start()
	before := r.Refs()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Is it so?", "It.")
	r.Must(err)
	r.Writes(n, testrig.Writer, "/pawl ask Is it so?")
	r.Await("the agent", func() bool { return r.Calls() == 1 })
	r.Stop(syscall.SIGTERM)
	r.Touch("go")
	r.Start()
	r.endsAs(n, "answered", 2)
	r.wantOneComment(n, testrig.AnAnswer, "It is so.")
	if got := len(r.State(n).Attempts); got != 1 || r.Refs() != before {
		t.Errorf("%d attempts, want one; references %s, want %s", got, r.Refs(), before)
	}
}

func TestRefusedAnswerIsInTheCheckRun(t *testing.T) {
	t.Parallel()
	r := asking(t, "true")
	r.Start()
	n := r.othersPull()
	r.Writes(n, testrig.Writer, "/pawl ask What does it change?")
	r.World.Inject(fakegithub.Fault{Route: "POST /repos/*/*/issues/*/comments", Times: -1, Status: 403, Message: "Resource not accessible by integration"})
	r.endsAs(n, "answered", 1)
	r.wantIn("the check run", r.Check(r.Head(n), "pawl").Summary, "the agent's answer could not be posted", "> It is in a.txt, `@everyone`.")
}
