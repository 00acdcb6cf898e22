package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestRemarksOnLinesAreAnsweredWhereTheyWereMade(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['grep -q two a.txt']\n"})
	r.Must(r.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
	r.startOnRemarks(func(ids []int64) string {
		return testrig.Saying(t, "printf 'two\\nmore\\n' > a.txt", fmt.Sprintf("I went through the remarks.\nREMARK %d: it is two now, @mia\nREMARK %d DECLINED: that file is generated\nREMARK 4242: invented", ids[0], ids[1]))
	})
	n := r.Pulled
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	r.Await("the answers", func() bool { return len(r.World.Remarks(testrig.Repo, n)) == 4 })
	r.Await("that the first is resolved", func() bool { return r.World.Remarks(testrig.Repo, n)[0].Resolved })
	r.Settle()
	all := r.World.Remarks(testrig.Repo, n)
	if len(all) != 4 || all[2].Answers != all[0].ID || all[3].Answers != all[1].ID || all[2].Author != "pawl[bot]" {
		t.Fatalf("the remarks are %+v", all)
	}
	if b := all[2].Body; !strings.HasPrefix(b, "Done, as the agent says: it is two now, `@mia`") || !strings.Contains(b, " changed these lines, and the work was verified.") || !strings.Contains(b, r.Head(n)) || !all[0].Resolved {
		t.Errorf("the first is answered %q, resolved %v", b, all[0].Resolved)
	}
	if b := all[3].Body; !strings.HasPrefix(b, "Not done, as the agent says: that file is generated") || all[1].Resolved {
		t.Errorf("the second is answered %q, resolved %v", b, all[1].Resolved)
	}
	if asked := r.World.Pulls(testrig.Repo)[0].Pull.Asked; !slices.Equal(asked, []string{"mia"}) {
		t.Errorf("%q were asked for a review, want who reviewed", asked)
	}
	if r.Calls() != 1 {
		t.Errorf("%d calls: Pawl's own answers led to work", r.Calls())
	}
}

func TestARemarkIsResolvedWhenTheChecksOfOthersHavePassedOnTheHead(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['grep -q two a.txt']\n"})
	r.Must(r.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
	r.World.AddOtherApp("github-actions", 15368)
	r.startOnRemarks(func(ids []int64) string {
		return testrig.Saying(t, `printf "two\n$PAWL_ATTEMPT\n" > a.txt`, fmt.Sprintf("REMARK %d: it is two now", ids[0]))
	})
	n, first := r.Pulled, r.Head(r.Pulled)
	r.Await("a push", func() bool { return r.Head(n) != first })
	first = r.Head(n)
	r.Must(r.World.StartCheckRun(testrig.Repo, "github-actions", first, "unit"))
	r.Await("the answer", func() bool { return len(r.World.Remarks(testrig.Repo, n)) > 2 })
	time.Sleep(13 * time.Second) // longer than the checks must have been quiet
	r.Settle()
	if r.World.Remarks(testrig.Repo, n)[0].Resolved {
		t.Fatal("resolved while a check runs")
	}
	r.ends(first, "unit", "failure", job("go test ./...", "--- FAIL: TestTwo (0.00s)\nFAIL"))
	r.Await("work on the failing check", func() bool { return r.Head(n) != first })
	head := r.Head(n)
	time.Sleep(13 * time.Second)
	r.Settle()
	if r.World.Remarks(testrig.Repo, n)[0].Resolved {
		t.Fatal("resolved before the check ran again on the new head")
	}
	r.ends(head, "unit", "success", nil)
	r.Await("that it is resolved", func() bool { return r.World.Remarks(testrig.Repo, n)[0].Resolved })
	r.Settle()
	if all := r.World.Remarks(testrig.Repo, n); all[1].Resolved || r.Calls() != 2 {
		t.Errorf("the remarks are %+v after %d calls, want only the first resolved", all, r.Calls())
	}
	if got := r.World.Calls()["GET /repos/{owner}/{repo}/commits/{sha}/check-runs"]; got > 8 {
		t.Errorf("the checks were read %d times", got)
	}
}

// They lose it after the last other step: the review was asked for again.
func TestNoRemarkIsResolvedForWhoLostThePermission(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['grep -q two a.txt']\n"})
	r.Must(r.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
	r.World.Inject(fakegithub.Fault{Route: "POST /repos/*/*/pulls/*/requested_reviewers", Times: 1, Answer: func(w http.ResponseWriter, q *http.Request, github http.Handler) {
		github.ServeHTTP(w, q)
		r.Must(r.World.SetRole(testrig.Repo, testrig.Writer, "read"))
		r.Must(r.World.SetRole(testrig.Repo, "mia", "read"))
	}})
	r.startOnRemarks(func(ids []int64) string {
		return testrig.Saying(t, `printf "two\nmore\n" > a.txt`, fmt.Sprintf("REMARK %d: it is two now", ids[0]))
	})
	n := r.Pulled
	r.Await("that it stops", func() bool { s := r.Thread(testrig.ThreadName(n)); return s.State == "stopped" && s.Rule == "revoked" })
	if all := r.World.Remarks(testrig.Repo, n); len(all) < 3 || all[0].Resolved {
		t.Errorf("the remarks are %+v, want an answer and none resolved", all)
	}
	r.Must(r.World.SetRole(testrig.Repo, testrig.Writer, "write"))
	r.Writes(n, testrig.Writer, "/pawl retry")
	r.Await("that it is resolved for who may write again", func() bool { return r.World.Remarks(testrig.Repo, n)[0].Resolved })
}

func TestARemarkWhoseWorkIsNotVerifiedStaysOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Must(r.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
	r.startOnRemarks(func(ids []int64) string {
		return testrig.Saying(t, "echo two >> a.txt", fmt.Sprintf("REMARK %d: done", ids[0]))
	})
	if s := r.Ending(r.Pulled); s.State != "done" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	r.Await("the answer", func() bool { return len(r.World.Remarks(testrig.Repo, r.Pulled)) == 3 })
	r.Settle()
	all := r.World.Remarks(testrig.Repo, r.Pulled)
	if len(all) != 3 || !strings.HasPrefix(all[2].Body, "The agent says: done") || all[0].Resolved {
		t.Errorf("the remarks are %+v", all)
	}
}

func TestARemarkThatTheAgentDoesNotMentionIsAnsweredByItsCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['true']\n"})
	r.Must(r.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain"}))
	r.startOnRemarks(func([]int64) string {
		return testrig.Saying(t, `[ "$PAWL_ATTEMPT" = 1 ] && printf 'two\nmore\n' > a.txt || echo c >> c.txt`, "I went through the remarks.")
	})
	if s := r.Ending(r.Pulled); s.State != "done" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	r.Await("the answer", func() bool { return len(r.World.Remarks(testrig.Repo, r.Pulled)) == 3 })
	r.Settle()
	all := r.World.Remarks(testrig.Repo, r.Pulled)
	changed := "Commit " + r.Head(r.Pulled) + " changed these lines. The agent says nothing about this remark."
	if len(all) != 3 || all[2].Answers != all[0].ID || !strings.HasPrefix(all[2].Body, changed) || all[0].Resolved {
		t.Fatalf("the remarks are %+v, want the first answered by its commit, and the other, whose lines are as they were, not", all)
	}
	asked, err := r.World.ReviewComment(t.Context(), testrig.Repo, r.Pulled, "mia", "b.txt", 1, "Why is this b?")
	r.Must(err)
	r.Await("the answer to a remark that was the order", func() bool { return len(r.World.Remarks(testrig.Repo, r.Pulled)) == 5 })
	all = r.World.Remarks(testrig.Repo, r.Pulled)
	if all[4].Answers != asked || !strings.HasPrefix(all[4].Body, "The last attempt did not change these lines, and the agent says nothing about this remark.") || all[3].Resolved {
		t.Errorf("the remarks are %+v, want only the new one answered", all)
	}
}

// startOnRemarks opens a pull request with two remarks of mia on lines, and starts the server with an agent that knows their ids.
func (r *rig) startOnRemarks(script func(ids []int64) string) {
	r.T.Helper()
	_, err := r.World.PushCommit(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "work", Message: "Begin", Files: map[string]string{"a.txt": "one\nmore\n", "b.txt": "b\n"}})
	r.Must(err)
	r.Pulled, err = r.World.OpenPull(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Work", Body: "Begins.", Head: "work"})
	r.Must(err)
	r.Agent("", "stream: codex")
	r.Start()
	var ids []int64
	for _, file := range []string{"a.txt", "b.txt"} {
		id, err := r.World.ReviewComment(r.T.Context(), testrig.Repo, r.Pulled, "mia", file, 1, "Two, please.")
		r.Must(err)
		ids = append(ids, id)
	}
	r.Settle() // else they may count as asked for together with the order
	r.Agent(script(ids), "stream: codex")
	_, err = r.World.Comment(testrig.Repo, r.Pulled, testrig.Writer, "/pawl solve address the review")
	r.Must(err)
}
