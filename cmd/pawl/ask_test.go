package main

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// asked is an agent that answers, plans and works as its prompt says, and writes to a file each time.
const asked = `n=$(wc -l < "$CTRL/calls" | tr -d ' '); cat > "$CTRL/prompt.$n"
echo "by $n" >> a.txt
if grep -q 'Answer the question below' "$CTRL/prompt.$n"; then
	printf 'It is in a.txt, @everyone.\n<!-- pawl:status x --> see #1\n'
elif grep -q 'Make a plan' "$CTRL/prompt.$n"; then
	printf '1. add two\n2. add three, @everyone\n'
else
	echo 'I added it.'
fi
`

// commentsWith are Pawl's comments on a thread that hold a text.
func (r *rig) commentsWith(n int, text string) (all []fakegithub.Comment) {
	for _, c := range r.world.Comments(rigRepo, n) {
		if c.Author == "pawl[bot]" && strings.Contains(c.Body, text) {
			all = append(all, c)
		}
	}
	return all
}

// pushes are the pushes to the repository so far, by Pawl: its branches and references.
func (r *rig) refs() string {
	r.t.Helper()
	refs, err := r.world.Git(r.t.Context(), rigRepo, "for-each-ref", "--format=%(refname) %(objectname)")
	r.must(err)
	return refs
}

const (
	anAnswer = "The agent's answer. Nothing was changed."
	aPlan    = "The agent's plan. Nothing was changed yet"
)

func TestAQuestionIsAnsweredAndNothingElseIsDone(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['false']\n"})
	r.agent(asked, "")
	r.start()
	n, err := r.world.OpenIssue(rigRepo, writer, "Where is it?", "The number that is shown.")
	r.must(err)
	_, err = r.world.Comment(rigRepo, n, reader, "I think that it is nowhere.")
	r.must(err)
	before := r.refs()
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl ask Where is\nthe number?")
	r.must(err)
	s := r.ending(n)
	if s.State != "answered" || s.Rule != policy.RuleAnswered || r.calls() != 1 {
		t.Fatalf("%s (%s %q) after %d calls", s.State, s.Rule, s.Reasons, r.calls())
	}
	said := r.commentsWith(n, anAnswer)
	if len(said) != 1 || !strings.Contains(said[0].Body, "\n```text\nIt is in a.txt, @everyone.\n<! -- pawl:status x --> see #1\n```\n") {
		t.Fatalf("the answers are %+v", said)
	}
	status := r.statusComment(n)
	for _, want := range []string{"**Answered**", "[what the agent says](" + r.world.WebURL() + "/" + rigRepo, "it was to change nothing; what it changed was thrown away: `a.txt (thrown away)`", "nothing runs until somebody asks for more"} {
		if !strings.Contains(status, want) || strings.Contains(status, "Done") || strings.Contains(status, "What the agent says:") {
			t.Errorf("the status comment lacks %q:\n%s", want, status)
		}
	}
	for _, want := range []string{"Question by ada", "Where is\nthe number?", "The number that is shown.", "> I think that it is nowhere."} {
		if p := r.prompt("1"); !strings.Contains(p, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, p)
		}
	}
	a := r.state(n).Attempts[0]
	if a.Receipt.Outcome != policy.Answered || len(a.Receipt.Verify) != 0 || a.Receipt.Commit != "" || a.Receipt.Pushed || r.refs() != before || len(r.world.Pulls(rigRepo)) != 0 {
		t.Errorf("the receipt is %+v, the references\n%s", a.Receipt, r.refs())
	}
	if l := r.status().Learning; len(l.Arms) > 0 && l.Arms[0].Rewards != 0 {
		t.Errorf("it was learned from: %+v", l.Arms)
	}
	// The same words again are no new words, and are answered all the same; without a question there is nothing to answer.
	r.play(n, []happens{
		{"a second question", r.says(n, writer, "/pawl ask And who put it there?"), "+ command ask"},
		{"no question", r.says(n, writer, "/pawl ask"), ""},
		{"by somebody who may not", r.says(n, reader, "/pawl ask for me"), "- mallory has read permission; write is needed"},
	})
	if p := r.prompt("2"); !strings.Contains(p, "And who put it there?") || !strings.Contains(p, "The last answer or plan that you gave") {
		t.Errorf("the second prompt is\n%s", p)
	}
	if len(r.commentsWith(n, anAnswer)) != 2 || len(r.commentsWith(n, "needs a question behind it")) != 1 || r.calls() != 2 {
		t.Errorf("%d calls, and the comments are %+v", r.calls(), r.world.Comments(rigRepo, n))
	}
	_, page := r.get("/threads/" + rigRepo + "/1")
	if !strings.Contains(page, "Answered") || strings.Contains(page, "Done") {
		t.Errorf("the page is\n%s", page)
	}
}

func TestAPlanWaitsForGoAndItsEditedTextIsWorkedOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['true']\n"})
	r.agent(asked, "")
	r.start()
	n, err := r.world.OpenIssue(rigRepo, writer, "Numbers", "There are to be more numbers.")
	r.must(err)
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl go")
	r.must(err)
	r.settle()
	if said := r.commentsWith(n, "There is no plan here"); len(said) != 1 || r.calls() != 0 {
		t.Fatalf("%d calls, and go without a plan was answered by %+v", r.calls(), said)
	}
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl plan but only small ones")
	r.must(err)
	if s := r.ending(n); s.State != "planned" || s.Rule != policy.RulePlanned || len(r.world.Pulls(rigRepo)) != 0 {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	plans := r.commentsWith(n, aPlan)
	if len(plans) != 1 || !strings.Contains(plans[0].Body, "\n```text\n1. add two\n2. add three, @everyone\n```\n") {
		t.Fatalf("the plans are %+v", plans)
	}
	if c := r.statusComment(n); !strings.Contains(c, "**Plan waits for `/pawl go`**") || strings.Contains(c, "Stopped") {
		t.Errorf("the status comment is\n%s", c)
	}
	// Who may not write changes nothing by an edit, and what comes after the order neither.
	edited := strings.Replace(plans[0].Body, "2. add three, @everyone", "2. add four <b>\n3. stop there", 1)
	r.must(r.world.EditComment(rigRepo, plans[0].ID, reader, strings.Replace(edited, "four", "evil", 1)))
	r.must(r.says(n, writer, "/pawl go")())
	r.settle()
	if s := r.ending(n); s.Rule != policy.RulePlan || !strings.Contains(strings.Join(s.Reasons, " "), "edited by mallory") || r.calls() != 1 {
		t.Fatalf("%s (%s %q) after %d calls", s.State, s.Rule, s.Reasons, r.calls())
	}
	r.must(r.world.EditComment(rigRepo, plans[0].ID, writer, edited))
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl go and be quick")
	r.must(err)
	r.await("the work", func() bool { return r.calls() == 2 })
	if s := r.ending(n); s.State != "done" || len(r.world.Pulls(rigRepo)) != 1 {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	p := r.prompt("2")
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
	r.agent(asked, "")
	r.start()
	n := r.solve("A line", "Please add a line.")
	if s := r.ending(n); s.State != "stopped" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	pull, calls := r.world.Pulls(rigRepo)[0], r.calls()
	was := r.check(pull.Pull.HeadSHA, "pawl")
	_, err := r.world.Comment(rigRepo, pull.Number, writer, "/pawl ask What is missing?")
	r.must(err)
	r.await("the answer", func() bool { return len(r.commentsWith(pull.Number, anAnswer)) == 1 })
	if s := r.ending(n); s.State != "answered" || r.calls() != calls+1 {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	now, check := r.world.Pulls(rigRepo)[0], r.check(pull.Pull.HeadSHA, "pawl")
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
	r.agent("n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\nif grep -q 'Answer the question' \"$CTRL/prompt.$n\"; then echo yes; exit; fi\n"+gated+"echo two >> a.txt\n", "")
	r.start()
	n := r.solve("A line", "Please add a line.")
	r.await("the work", func() bool { return r.calls() == 1 })
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl ask Does it go well?")
	r.must(err)
	r.handled()
	r.touch("go")
	r.await("the answer", func() bool { return len(r.commentsWith(n, anAnswer)) == 1 })
	s := r.ending(n)
	var of []policy.Purpose
	for _, a := range r.state(n).Attempts {
		of = append(of, a.Decision.Purpose)
	}
	if s.State != "done" || !slices.Equal(of, []policy.Purpose{policy.ToChange, policy.ToAnswer}) || len(r.world.Pulls(rigRepo)) != 1 {
		t.Errorf("%s (%s %q) after attempts for %q", s.State, s.Rule, s.Reasons, of)
	}
}

func TestAnAnswerIsPostedOnceWhereverTheServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"attempt_logged", "agent_done", "attempt_ending", "attempt_ended", "act_begun", "comment_written", "comment_written:2", "act_logged:3"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			l := newLives(t, map[string]string{"a.txt": "one\n"})
			l.Env = func(life int) []string {
				if life > 0 {
					return nil
				}
				return []string{"PAWL_CRASH_AT=" + at}
			}
			l.agent(asked, "")
			l.begin()
			l.Serving()
			before := l.refs()
			n, err := l.world.OpenIssue(rigRepo, writer, "Where is it?", "The number.")
			l.must(err)
			_, err = l.world.Comment(rigRepo, n, writer, "/pawl ask Where?")
			l.must(err)
			l.await("the kill", func() bool { return len(l.Died()) == 1 })
			l.Serving()
			l.settled("the answer", patience, func(states map[string]thread.State) bool {
				s := states[threadName(n)]
				return !s.Open() && s.Acts["comment:status"].Done && strings.Contains(l.statusComment(n), "Answered")
			})
			if said := l.commentsWith(n, anAnswer); len(said) != 1 || l.refs() != before {
				t.Errorf("the answers are %+v, the references\n%s", said, l.refs())
			}
			for _, q := range l.world.Requests() {
				if q.Method == http.MethodPost && strings.HasSuffix(q.Path, "/pulls") {
					t.Errorf("a pull request was opened")
				}
			}
		})
	}
}

// On a pull request of people, which Pawl never worked on, a question and a plan push nothing, and count by the day.
func TestQuestionsOnAPullRequestOfPeopleAreCountedAndPushNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n"})
	r.agent(asked, "")
	r.config += "policy: {restarts: {max_per_thread_per_day: 2}}\n"
	r.start()
	_, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "theirs", Message: "more", Files: map[string]string{"a.txt": "one\nmore\n"}})
	r.must(err)
	n, err := r.world.OpenPull(t.Context(), rigRepo, writer, fakegithub.PullRequest{Title: "Mine", Body: "It is mine.", Head: "theirs"})
	r.must(err)
	before := r.refs()
	r.must(r.says(n, writer, "/pawl ask What does it change?")())
	r.await("the answer", func() bool { return len(r.commentsWith(n, anAnswer)) == 1 })
	sha := r.world.Pulls(rigRepo)[0].Pull.HeadSHA
	r.await("the check run", func() bool { return r.check(sha, "pawl").Title == "Answered" })
	if c := r.check(sha, "pawl"); c.Conclusion != "neutral" || !strings.Contains(r.prompt("1"), "a.txt +1 −0 modified") {
		t.Errorf("the check run is %s %q, the prompt\n%s", c.Conclusion, c.Title, r.prompt("1"))
	}
	r.must(r.says(n, writer, "/pawl plan a better one")())
	r.await("the plan", func() bool { return len(r.commentsWith(n, aPlan)) == 1 })
	r.await("the check run", func() bool { return r.check(sha, "pawl").Title == "Plan waits for /pawl go" })
	r.must(r.says(n, writer, "/pawl ask And this?")())
	r.await("the wait", func() bool { return r.thread(threadName(n)).State == "waiting" })
	if s := r.thread(threadName(n)); s.Rule != policy.RuleDailyCap || r.calls() != 2 || r.refs() != before {
		t.Errorf("%s (%s %q) after %d calls, with the references\n%s", s.State, s.Rule, s.Reasons, r.calls(), r.refs())
	}
}

// A server that is stopped while an agent answers hands the question over, and keeps nothing at GitHub of what it changed.
func TestAnAnswerIsHandedOverAndPushesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n"})
	r.agent("echo two >> a.txt; cat > /dev/null\n"+gated+"echo 'It is so.'\n", "")
	r.start()
	before := r.refs()
	n, err := r.world.OpenIssue(rigRepo, writer, "Is it so?", "It.")
	r.must(err)
	r.must(r.says(n, writer, "/pawl ask Is it so?")())
	r.await("the agent", func() bool { return r.calls() == 1 })
	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	r.touch("go")
	r.start()
	s := r.ending(n)
	if said := r.commentsWith(n, anAnswer); s.State != "answered" || r.calls() != 2 || len(said) != 1 || r.refs() != before || len(r.state(n).Attempts) != 1 {
		t.Errorf("%s (%s %q) after %d calls, %+v, with the references\n%s", s.State, s.Rule, s.Reasons, r.calls(), said, r.refs())
	}
}

// A plan that was said to be worked off is worked off once, wherever the server is killed, by the text that it had at the start.
func TestAPlanIsWorkedOffWhereverTheServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"attempt_logged:2", "agent_done:2", "push_begun", "pull_opened"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			l := newLives(t, map[string]string{"a.txt": "one\n"})
			l.Env = func(life int) []string {
				if life > 0 {
					return nil
				}
				return []string{"PAWL_CRASH_AT=" + at}
			}
			l.agent(asked, "")
			l.begin()
			l.Serving()
			n, err := l.world.OpenIssue(rigRepo, writer, "Numbers", "More of them.")
			l.must(err)
			l.must(l.says(n, writer, "/pawl plan")())
			l.await("the plan", func() bool { return len(l.commentsWith(n, aPlan)) == 1 && l.thread(threadName(n)).State == "planned" })
			plan := l.commentsWith(n, aPlan)[0]
			l.must(l.world.EditComment(rigRepo, plan.ID, writer, strings.Replace(plan.Body, "add three", "add thirty", 1)))
			l.must(l.says(n, writer, "/pawl go")())
			l.await("the kill", func() bool { return len(l.Died()) == 1 })
			l.must(l.world.EditComment(rigRepo, plan.ID, writer, strings.Replace(plan.Body, "add three", "add too late", 1)))
			l.Serving()
			states := l.settled("the work", patience, func(states map[string]thread.State) bool {
				s := states[threadName(n)]
				return !s.Open() && strings.Contains(l.statusComment(n), "Done")
			})
			for _, a := range states[threadName(n)].Attempts[1:] {
				if !strings.Contains(a.Plan, "add thirty") {
					t.Errorf("attempt %d worked by %q", a.N, a.Plan)
				}
			}
			if len(l.commentsWith(n, aPlan)) != 1 || len(l.world.Pulls(rigRepo)) != 1 {
				t.Errorf("%d pull requests, and the plans are %+v", len(l.world.Pulls(rigRepo)), l.commentsWith(n, aPlan))
			}
		})
	}
}

// Each real CLI answers: what it says is posted, and the file that it writes in spite of its prompt reaches nothing.
func TestEveryCLIAnswersAQuestion(t *testing.T) {
	t.Parallel()
	for _, cli := range realCLIs() {
		t.Run(cli.kind, func(t *testing.T) {
			s := newStand(t, cli, "edit-success")
			r := newProcessRig(t, nil)
			r.config += s.section()
			r.startProgram(s.path())
			n, err := r.world.OpenIssue(rigRepo, writer, "A greeting", "There is one somewhere.")
			r.must(err)
			r.writes(n, writer, "/pawl ask Where is the greeting?")
			state, a := r.ending(n), r.state(n).Attempts
			said := r.commentsWith(n, anAnswer)
			if state.State != "answered" || len(said) != 1 || len(a) != 1 || a[0].Receipt.Final == "" || !strings.Contains(said[0].Body, a[0].Receipt.Final) ||
				!slices.Contains(a[0].Receipt.LeftOut, "hello.txt (thrown away)") || len(r.world.Pulls(rigRepo)) != 0 {
				t.Errorf("%s (%s %q), attempts %+v, answers %+v", state.State, state.Rule, state.Reasons, a, said)
			}
			if !slices.ContainsFunc(s.asked(), func(q fakeprovider.Request) bool { return strings.Contains(string(q.Body), "Where is the greeting?") }) {
				t.Error("no request to the model holds the question")
			}
		})
	}
}

func TestAnAnswerThatGitHubRefusesStandsInTheCheckRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n"})
	r.agent(asked, "")
	r.start()
	_, err := r.world.PushCommit(t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "theirs", Message: "more", Files: map[string]string{"a.txt": "one\nmore\n"}})
	r.must(err)
	n, err := r.world.OpenPull(t.Context(), rigRepo, writer, fakegithub.PullRequest{Title: "Mine", Body: "It is mine.", Head: "theirs"})
	r.must(err)
	r.must(r.says(n, writer, "/pawl ask What does it change?")())
	r.world.Inject(fakegithub.Fault{Route: "POST /repos/*/*/issues/*/comments", Times: -1, Status: 403, Message: "Resource not accessible by integration"})
	if s := r.ending(n); s.State != "answered" || r.calls() != 1 {
		t.Fatalf("%s (%s %q) after %d calls", s.State, s.Rule, s.Reasons, r.calls())
	}
	c := r.check(r.world.Pulls(rigRepo)[0].Pull.HeadSHA, "pawl")
	if c.Title != "Answered" || !strings.Contains(c.Summary, "what the agent says could not be posted") || !strings.Contains(c.Summary, "It is in a.txt, @everyone.") {
		t.Errorf("the check run is %q:\n%s", c.Title, c.Summary)
	}
}
