package server_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

func TestAQuestionIsAnsweredAndNothingElseIsDone(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['false']\n"})
	r.Agent(testrig.Asked, "")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Where is it?", "The number that is shown.")
	r.Must(err)
	_, err = r.World.Comment(testrig.Repo, n, testrig.Reader, "I think that it is nowhere.")
	r.Must(err)
	before := r.Refs()
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl ask Where is\nthe number?")
	r.Must(err)
	s := r.Ending(n)
	if s.State != "answered" || s.Rule != policy.RuleAnswered || r.Calls() != 1 {
		t.Fatalf("%s (%s %q) after %d calls", s.State, s.Rule, s.Reasons, r.Calls())
	}
	said := r.CommentsWith(n, testrig.AnAnswer)
	if len(said) != 1 || !strings.Contains(said[0].Body, "\n```text\nIt is in a.txt, @everyone.\n<! -- pawl:status x --> see #1\n```\n") {
		t.Fatalf("the answers are %+v", said)
	}
	status := r.StatusComment(n)
	for _, want := range []string{"**Answered**", "[what the agent says](" + r.World.WebURL() + "/" + testrig.Repo, "it was to change nothing; what it changed was thrown away: `a.txt (thrown away)`", "nothing runs until somebody asks for more"} {
		if !strings.Contains(status, want) || strings.Contains(status, "Done") || strings.Contains(status, "What the agent says:") {
			t.Errorf("the status comment lacks %q:\n%s", want, status)
		}
	}
	for _, want := range []string{"Question by ada", "Where is\nthe number?", "The number that is shown.", "> I think that it is nowhere."} {
		if p := r.Prompt("1"); !strings.Contains(p, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, p)
		}
	}
	a := r.State(n).Attempts[0]
	if a.Receipt.Outcome != policy.Answered || len(a.Receipt.Verify) != 0 || a.Receipt.Commit != "" || a.Receipt.Pushed || r.Refs() != before || len(r.World.Pulls(testrig.Repo)) != 0 {
		t.Errorf("the receipt is %+v, the references\n%s", a.Receipt, r.Refs())
	}
	if l := r.Status().Learning; len(l.Arms) > 0 && l.Arms[0].Rewards != 0 {
		t.Errorf("it was learned from: %+v", l.Arms)
	}
	// The same words again are no new words, and are answered all the same; without a question there is nothing to answer.
	r.play(n, []happens{
		{"a second question", r.Says(n, testrig.Writer, "/pawl ask And who put it there?"), "+ command ask"},
		{"no question", r.Says(n, testrig.Writer, "/pawl ask"), ""},
		{"by somebody who may not", r.Says(n, testrig.Reader, "/pawl ask for me"), "- mallory has read permission; write is needed"},
	})
	if p := r.Prompt("2"); !strings.Contains(p, "And who put it there?") || !strings.Contains(p, "The last answer or plan that you gave") {
		t.Errorf("the second prompt is\n%s", p)
	}
	if len(r.CommentsWith(n, testrig.AnAnswer)) != 2 || len(r.CommentsWith(n, "needs a question behind it")) != 1 || r.Calls() != 2 {
		t.Errorf("%d calls, and the comments are %+v", r.Calls(), r.World.Comments(testrig.Repo, n))
	}
	_, page := r.Get("/threads/" + testrig.Repo + "/1")
	if !strings.Contains(page, "Answered") || strings.Contains(page, "Done") {
		t.Errorf("the page is\n%s", page)
	}
}

func TestAPlanWaitsForGoAndItsEditedTextIsWorkedOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['true']\n"})
	r.Agent(testrig.Asked, "")
	r.Start()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Numbers", "There are to be more numbers.")
	r.Must(err)
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl go")
	r.Must(err)
	r.Settle()
	if said := r.CommentsWith(n, "There is no plan here"); len(said) != 1 || r.Calls() != 0 {
		t.Fatalf("%d calls, and go without a plan was answered by %+v", r.Calls(), said)
	}
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl plan but only small ones")
	r.Must(err)
	if s := r.Ending(n); s.State != "planned" || s.Rule != policy.RulePlanned || len(r.World.Pulls(testrig.Repo)) != 0 {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	plans := r.CommentsWith(n, testrig.APlan)
	if len(plans) != 1 || !strings.Contains(plans[0].Body, "\n```text\n1. add two\n2. add three, @everyone\n```\n") {
		t.Fatalf("the plans are %+v", plans)
	}
	if c := r.StatusComment(n); !strings.Contains(c, "**Plan waits for `/pawl go`**") || strings.Contains(c, "Stopped") {
		t.Errorf("the status comment is\n%s", c)
	}
	// Who may not write changes nothing by an edit, and what comes after the order neither.
	edited := strings.Replace(plans[0].Body, "2. add three, @everyone", "2. add four <b>\n3. stop there", 1)
	r.Must(r.World.EditComment(testrig.Repo, plans[0].ID, testrig.Reader, strings.Replace(edited, "four", "evil", 1)))
	r.Must(r.Says(n, testrig.Writer, "/pawl go")())
	r.Settle()
	if s := r.Ending(n); s.Rule != policy.RulePlan || !strings.Contains(strings.Join(s.Reasons, " "), "edited by mallory") || r.Calls() != 1 {
		t.Fatalf("%s (%s %q) after %d calls", s.State, s.Rule, s.Reasons, r.Calls())
	}
	r.Must(r.World.EditComment(testrig.Repo, plans[0].ID, testrig.Writer, edited))
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl go and be quick")
	r.Must(err)
	r.Await("the work", func() bool { return r.Calls() == 2 })
	if s := r.Ending(n); s.State != "done" || len(r.World.Pulls(testrig.Repo)) != 1 {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	p := r.Prompt("2")
	for _, want := range []string{"The plan, which people said to work by", "1. add two\n2. add four <b>\n3. stop there\n===", "and be quick", "Make the change"} {
		if !strings.Contains(p, want) || strings.Contains(p, "add three") || strings.Contains(p, "evil") || strings.Contains(p, "pawl:said") {
			t.Errorf("the prompt of the work lacks %q:\n%s", want, p)
		}
	}
}

// On a pull request that Pawl works on an answer changes nothing that the check run and the description say of the work.
func TestAQuestionOnAPullRequestLeavesTheWorkAsItStands(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['false']\n"})
	r.Agent(testrig.Asked, "")
	r.Start()
	n := r.Solve("A line", "Please add a line.")
	if s := r.Ending(n); s.State != "stopped" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	pull, calls := r.World.Pulls(testrig.Repo)[0], r.Calls()
	was := r.Check(pull.Pull.HeadSHA, "pawl")
	_, err := r.World.Comment(testrig.Repo, pull.Number, testrig.Writer, "/pawl ask What is missing?")
	r.Must(err)
	r.Await("the answer", func() bool { return len(r.CommentsWith(pull.Number, testrig.AnAnswer)) == 1 })
	if s := r.Ending(n); s.State != "answered" || r.Calls() != calls+1 {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	now, check := r.World.Pulls(testrig.Repo)[0], r.Check(pull.Pull.HeadSHA, "pawl")
	if now.Body != pull.Body || now.Pull.HeadSHA != pull.Pull.HeadSHA {
		t.Errorf("the pull request was\n%s\nand is\n%s", pull.Body, now.Body)
	}
	if was.Conclusion != "action_required" || check.Conclusion != "action_required" || check.Title != "Answered" || !strings.Contains(check.Summary, "the work before: "+was.Title) {
		t.Errorf("the check run was %s %q and is %s %q:\n%s", was.Conclusion, was.Title, check.Conclusion, check.Title, check.Summary)
	}
}

// A question while work waits is answered, and the work goes on waiting.
func TestAQuestionDoesNotEndTheWorkThatWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\nif grep -q 'Answer the question' \"$CTRL/prompt.$n\"; then echo yes; exit; fi\n"+testrig.Gated+"echo two >> a.txt\n", "")
	r.Start()
	n := r.Solve("A line", "Please add a line.")
	r.Await("the work", func() bool { return r.Calls() == 1 })
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl ask Does it go well?")
	r.Must(err)
	r.Handled()
	r.Touch("go")
	r.Await("the answer", func() bool { return len(r.CommentsWith(n, testrig.AnAnswer)) == 1 })
	s := r.Ending(n)
	var of []policy.Purpose
	for _, a := range r.State(n).Attempts {
		of = append(of, a.Decision.Purpose)
	}
	if s.State != "done" || !slices.Equal(of, []policy.Purpose{policy.ToChange, policy.ToAnswer}) || len(r.World.Pulls(testrig.Repo)) != 1 {
		t.Errorf("%s (%s %q) after attempts for %q", s.State, s.Rule, s.Reasons, of)
	}
}

// On a pull request of people, which Pawl never worked on, a question and a plan push nothing, and count by the day.
func TestQuestionsOnAPullRequestOfPeopleAreCountedAndPushNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n"})
	r.Agent(testrig.Asked, "")
	r.Config += "policy: {restarts: {max_per_thread_per_day: 2}}\n"
	r.Start()
	_, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "theirs", Message: "more", Files: map[string]string{"a.txt": "one\nmore\n"}})
	r.Must(err)
	n, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Mine", Body: "It is mine.", Head: "theirs"})
	r.Must(err)
	before := r.Refs()
	r.Must(r.Says(n, testrig.Writer, "/pawl ask What does it change?")())
	r.Await("the answer", func() bool { return len(r.CommentsWith(n, testrig.AnAnswer)) == 1 })
	sha := r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA
	r.Await("the check run", func() bool { return r.Check(sha, "pawl").Title == "Answered" })
	if c := r.Check(sha, "pawl"); c.Conclusion != "neutral" || !strings.Contains(r.Prompt("1"), "a.txt +1 −0 modified") {
		t.Errorf("the check run is %s %q, the prompt\n%s", c.Conclusion, c.Title, r.Prompt("1"))
	}
	r.Must(r.Says(n, testrig.Writer, "/pawl plan a better one")())
	r.Await("the plan", func() bool { return len(r.CommentsWith(n, testrig.APlan)) == 1 })
	r.Await("the check run", func() bool { return r.Check(sha, "pawl").Title == "Plan waits for /pawl go" })
	r.Must(r.Says(n, testrig.Writer, "/pawl ask And this?")())
	r.Await("the wait", func() bool { return r.Thread(testrig.ThreadName(n)).State == "waiting" })
	if s := r.Thread(testrig.ThreadName(n)); s.Rule != policy.RuleDailyCap || r.Calls() != 2 || r.Refs() != before {
		t.Errorf("%s (%s %q) after %d calls, with the references\n%s", s.State, s.Rule, s.Reasons, r.Calls(), r.Refs())
	}
}

// A server that is stopped while an agent answers hands the question over, and keeps nothing at GitHub of what it changed.
func TestAnAnswerIsHandedOverAndPushesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n"})
	r.Agent("echo two >> a.txt; cat > /dev/null\n"+testrig.Gated+"echo 'It is so.'\n", "")
	r.Start()
	before := r.Refs()
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Is it so?", "It.")
	r.Must(err)
	r.Must(r.Says(n, testrig.Writer, "/pawl ask Is it so?")())
	r.Await("the agent", func() bool { return r.Calls() == 1 })
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	r.Touch("go")
	r.Start()
	s := r.Ending(n)
	if said := r.CommentsWith(n, testrig.AnAnswer); s.State != "answered" || r.Calls() != 2 || len(said) != 1 || r.Refs() != before || len(r.State(n).Attempts) != 1 {
		t.Errorf("%s (%s %q) after %d calls, %+v, with the references\n%s", s.State, s.Rule, s.Reasons, r.Calls(), said, r.Refs())
	}
}

func TestAnAnswerThatGitHubRefusesStandsInTheCheckRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n"})
	r.Agent(testrig.Asked, "")
	r.Start()
	_, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "theirs", Message: "more", Files: map[string]string{"a.txt": "one\nmore\n"}})
	r.Must(err)
	n, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Mine", Body: "It is mine.", Head: "theirs"})
	r.Must(err)
	r.Must(r.Says(n, testrig.Writer, "/pawl ask What does it change?")())
	r.World.Inject(fakegithub.Fault{Route: "POST /repos/*/*/issues/*/comments", Times: -1, Status: 403, Message: "Resource not accessible by integration"})
	if s := r.Ending(n); s.State != "answered" || r.Calls() != 1 {
		t.Fatalf("%s (%s %q) after %d calls", s.State, s.Rule, s.Reasons, r.Calls())
	}
	c := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl")
	if c.Title != "Answered" || !strings.Contains(c.Summary, "what the agent says could not be posted") || !strings.Contains(c.Summary, "It is in a.txt, @everyone.") {
		t.Errorf("the check run is %q:\n%s", c.Title, c.Summary)
	}
}
