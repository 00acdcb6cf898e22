package solver_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// reviewed requests work on two of mia's remarks on lines of a pull request. The agent knows their ids.
func (a *acts) reviewed(does string, message func(ids []int64) string) (pull int) {
	a.T.Helper()
	pull = a.pull("work", map[string]string{"a.txt": "one\nmore\n", "b.txt": "b\n"})
	a.settle()
	var ids []int64
	for _, file := range []string{"a.txt", "b.txt"} {
		id, err := a.World.ReviewComment(a.T.Context(), testrig.Repo, pull, "mia", file, 1, "Two, please.")
		a.Must(err)
		ids = append(ids, id)
	}
	a.settle() // otherwise they may count as part of the command's request
	a.Agent(testrig.Saying(a.T, does, message(ids)), "stream: codex")
	a.comments(pull, testrig.Writer, "/pawl solve address the review")
	return pull
}

// first returns an agent's message that the first remark is done.
func first(ids []int64) string { return fmt.Sprintf("REMARK %d: it is two now", ids[0]) }

func TestActsOnRemarks(t *testing.T) {
	const codex = "stream: codex"
	const work = `printf "two\n$PAWL_ATTEMPT\n" > a.txt`
	record(t, map[string]scenario{
		"remarks are answered in their threads": {files: verified, more: codex, play: func(a *acts) {
			a.reviewed("printf 'two\\nmore\\n' > a.txt", func(ids []int64) string {
				return fmt.Sprintf("I went through the remarks.\nREMARK %d: it is two now, @mia\nREMARK %d DECLINED: that file is generated\nREMARK 4242: invented", ids[0], ids[1])
			})
		}},
		"a remark waits for other checks": {files: verified, more: codex, play: func(a *acts) {
			start := func(w http.ResponseWriter, q *http.Request, github http.Handler) { // right after the push
				github.ServeHTTP(w, q)
				a.Must(a.World.StartCheckRun(testrig.Repo, "github-actions", a.World.Branches(testrig.Repo)["work"], "unit"))
			}
			a.World.Inject(fakegithub.Fault{Route: "POST /{owner}/{repo}.git/git-receive-pack", Times: 1, Answer: start})
			n := a.reviewed(work, first)
			a.pass(patience)
			a.isOpen(n, "while a check runs")
			a.ends(a.Head(n), "unit", "failure", job("go test ./...", "--- FAIL: TestTwo (0.00s)\nFAIL"))
			a.settle()
			a.isOpen(n, "before the check ran again on the new head")
			a.ends(a.Head(n), "unit", "success", nil)
			a.settle()
			if got := a.World.Calls()["GET /repos/{owner}/{repo}/commits/{sha}/check-runs"]; got > 8 {
				a.T.Errorf("the checks were read %d times", got)
			}
		}},
		"no user left who may resolve": {files: verified, more: codex, play: func(a *acts) {
			lose := func(w http.ResponseWriter, q *http.Request, github http.Handler) { // after all other acts
				github.ServeHTTP(w, q)
				a.Must(a.World.SetRole(testrig.Repo, testrig.Writer, "read"))
				a.Must(a.World.SetRole(testrig.Repo, "mia", "read"))
			}
			a.World.Inject(fakegithub.Fault{Route: "POST /repos/*/*/pulls/*/requested_reviewers", Times: 1, Answer: lose})
			n := a.reviewed(work, first)
			a.isOpen(n, "for who lost the permission")
			if d := a.state(n).Decision; d.Rule != "revoked" {
				a.T.Errorf("the rule is %s, want revoked", d.Rule)
			}
			a.Must(a.World.SetRole(testrig.Repo, testrig.Writer, "write"))
			a.comments(n, testrig.Writer, "/pawl retry")
		}},
		"remarks whose work is not verified": {more: codex, play: func(a *acts) { a.reviewed(work, first) }},
		"remarks that the agent does not mention": {
			files: map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['true']\n"},
			more:  codex,
			play: func(a *acts) {
				n := a.reviewed("printf 'two\\nmore\\n' > a.txt", func([]int64) string { return "I went through the remarks." })
				a.Agent(testrig.Saying(a.T, "", "I went through the remarks.")+"echo c >> c.txt\n", codex)
				_, err := a.World.ReviewComment(a.T.Context(), testrig.Repo, n, "mia", "b.txt", 1, "Why is this b?")
				a.Must(err)
				a.settle()
			},
		},
	})
}

// isOpen checks that the first remark is not resolved.
func (a *acts) isOpen(pull int, when string) {
	a.T.Helper()
	if a.World.Remarks(testrig.Repo, pull)[0].Resolved {
		a.T.Fatalf("resolved %s", when)
	}
}

// rewritten prepares a user's branch that was force-pushed after Pawl had worked on it. gone is the commit that Pawl
// pushed.
func (a *acts) rewritten() (pull int, begun, gone string) {
	a.T.Helper()
	pull = a.pull("work", map[string]string{"b.txt": "one\ntwo\nthree\n"})
	begun = a.Head(pull)
	a.comments(pull, testrig.Writer, "/pawl solve add a line")
	gone = a.Head(pull)
	a.forcePush(begun)
	a.settle()
	return pull, begun, gone
}

func (a *acts) forcePush(from string) {
	a.T.Helper()
	mine := fakegithub.Commit{Branch: "work", From: from, Message: "Begin anew", Files: map[string]string{"c.txt": "mine\n"}}
	_, err := a.World.PushCommit(a.T.Context(), testrig.Repo, testrig.Writer, mine)
	a.Must(err)
}

func TestActsOnARewrittenBranch(t *testing.T) {
	bot := "policy: {allowed_bots: [77]}\n"
	review := func(a *acts) int {
		a.Must(a.World.AddBot("helper[bot]", 77))
		n, _, gone := a.rewritten()
		_, err := a.World.ReviewCommentOn(a.T.Context(), testrig.Repo, n, "mia", gone, "b.txt", 2, "Two is wrong.")
		a.Must(err)
		a.settle()
		a.comments(n, "helper[bot]", "Go on with the line.")
		return n
	}
	during := func(a *acts) int {
		n := a.pull("work", map[string]string{"b.txt": "one\ntwo\nthree\n"})
		a.during(func() {
			a.forcePush("main")
			a.deliver()
		})
		a.comments(n, testrig.Writer, "/pawl solve add a line")
		return n
	}
	record(t, map[string]scenario{
		"a review of a removed commit":               {config: bot, agent: testrig.PlainAgent, play: func(a *acts) { review(a) }},
		"a review of a removed commit and a retry":   {config: bot, agent: testrig.PlainAgent, prompts: []string{"2"}, play: func(a *acts) { a.comments(review(a), testrig.Writer, "/pawl retry") }},
		"a force push during an attempt":             {agent: testrig.PlainAgent, play: func(a *acts) { during(a) }},
		"a force push during an attempt and a retry": {agent: testrig.PlainAgent, play: func(a *acts) { a.comments(during(a), testrig.Writer, "/pawl retry on what is there now") }},
		"remarks on lines that changed since": {agent: testrig.PlainAgent, prompts: []string{"2"}, play: func(a *acts) {
			n := a.pull("work", map[string]string{"b.txt": "one\ntwo\nthree\n"})
			begun := a.Head(n)
			a.comments(n, testrig.Writer, "/pawl solve add a line")
			a.Push("work", "Count on", "b.txt", "one\n2\nthree\n")
			a.settle()
			for line, words := range []string{"One is fine?", "Two is wrong."} {
				_, err := a.World.ReviewCommentOn(a.T.Context(), testrig.Repo, n, "mia", begun, "b.txt", line+1, words)
				a.Must(err)
			}
			a.settle()
		}},
	})
}
