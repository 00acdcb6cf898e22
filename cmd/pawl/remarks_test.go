package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestRemarksOnLinesAreAnsweredWhereTheyWereMade(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['grep -q two a.txt']\n"})
	r.must(r.world.AddUser("mia", 1003, map[string]string{rigRepo: "maintain"}))
	r.startOnRemarks(func(ids []int64) string {
		return saying(t, "printf 'two\\nmore\\n' > a.txt", fmt.Sprintf("I went through the remarks.\nREMARK %d: it is two now, @mia\nREMARK %d DECLINED: that file is generated\nREMARK 4242: invented", ids[0], ids[1]))
	})
	n := r.pulled
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	r.await("the answers", func() bool { return len(r.world.Remarks(rigRepo, n)) == 4 })
	r.await("that the first is resolved", func() bool { return r.world.Remarks(rigRepo, n)[0].Resolved })
	r.settle()
	all := r.world.Remarks(rigRepo, n)
	if len(all) != 4 || all[2].Answers != all[0].ID || all[3].Answers != all[1].ID || all[2].Author != "pawl[bot]" {
		t.Fatalf("the remarks are %+v", all)
	}
	if b := all[2].Body; !strings.HasPrefix(b, "Done, as the agent says: it is two now, `@mia`") || !strings.Contains(b, " changed these lines, and the work was verified.") || !strings.Contains(b, r.head(n)) || !all[0].Resolved {
		t.Errorf("the first is answered %q, resolved %v", b, all[0].Resolved)
	}
	if b := all[3].Body; !strings.HasPrefix(b, "Not done, as the agent says: that file is generated") || all[1].Resolved {
		t.Errorf("the second is answered %q, resolved %v", b, all[1].Resolved)
	}
	if asked := r.world.Pulls(rigRepo)[0].Pull.Asked; !slices.Equal(asked, []string{"mia"}) {
		t.Errorf("%q were asked for a review, want who reviewed", asked)
	}
	if r.calls() != 1 {
		t.Errorf("%d calls: Pawl's own answers led to work", r.calls())
	}
}

func TestARemarkIsResolvedWhenTheChecksOfOthersHavePassedOnTheHead(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['grep -q two a.txt']\n"})
	r.must(r.world.AddUser("mia", 1003, map[string]string{rigRepo: "maintain"}))
	r.world.AddOtherApp("github-actions", 15368)
	r.startOnRemarks(func(ids []int64) string {
		return saying(t, `printf "two\n$PAWL_ATTEMPT\n" > a.txt`, fmt.Sprintf("REMARK %d: it is two now", ids[0]))
	})
	n, first := r.pulled, r.head(r.pulled)
	r.await("a push", func() bool { return r.head(n) != first })
	first = r.head(n)
	r.must(r.world.StartCheckRun(rigRepo, "github-actions", first, "unit"))
	r.await("the answer", func() bool { return len(r.world.Remarks(rigRepo, n)) > 2 })
	time.Sleep(13 * time.Second) // longer than the checks must have been quiet
	r.settle()
	if r.world.Remarks(rigRepo, n)[0].Resolved {
		t.Fatal("resolved while a check runs")
	}
	r.ends(first, "unit", "failure", job("go test ./...", "--- FAIL: TestTwo (0.00s)\nFAIL"))
	r.await("work on the failing check", func() bool { return r.head(n) != first })
	head := r.head(n)
	time.Sleep(13 * time.Second)
	r.settle()
	if r.world.Remarks(rigRepo, n)[0].Resolved {
		t.Fatal("resolved before the check ran again on the new head")
	}
	r.ends(head, "unit", "success", nil)
	r.await("that it is resolved", func() bool { return r.world.Remarks(rigRepo, n)[0].Resolved })
	r.settle()
	if all := r.world.Remarks(rigRepo, n); all[1].Resolved || r.calls() != 2 {
		t.Errorf("the remarks are %+v after %d calls, want only the first resolved", all, r.calls())
	}
	if got := r.world.Calls()["GET /repos/{owner}/{repo}/commits/{sha}/check-runs"]; got > 8 {
		t.Errorf("the checks were read %d times", got)
	}
}

// They lose it after the last other step: the review was asked for again.
func TestNoRemarkIsResolvedForWhoLostThePermission(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['grep -q two a.txt']\n"})
	r.must(r.world.AddUser("mia", 1003, map[string]string{rigRepo: "maintain"}))
	r.world.Inject(fakegithub.Fault{Route: "POST /repos/*/*/pulls/*/requested_reviewers", Times: 1, Answer: func(w http.ResponseWriter, q *http.Request, github http.Handler) {
		github.ServeHTTP(w, q)
		r.must(r.world.SetRole(rigRepo, writer, "read"))
		r.must(r.world.SetRole(rigRepo, "mia", "read"))
	}})
	r.startOnRemarks(func(ids []int64) string {
		return saying(t, `printf "two\nmore\n" > a.txt`, fmt.Sprintf("REMARK %d: it is two now", ids[0]))
	})
	n := r.pulled
	r.await("that it stops", func() bool { s := r.thread(threadName(n)); return s.State == "stopped" && s.Rule == "revoked" })
	if all := r.world.Remarks(rigRepo, n); len(all) < 3 || all[0].Resolved {
		t.Errorf("the remarks are %+v, want an answer and none resolved", all)
	}
	r.must(r.world.SetRole(rigRepo, writer, "write"))
	r.writes(n, writer, "/pawl retry")
	r.await("that it is resolved for who may write again", func() bool { return r.world.Remarks(rigRepo, n)[0].Resolved })
}

func TestARemarkWhoseWorkIsNotVerifiedStaysOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.must(r.world.AddUser("mia", 1003, map[string]string{rigRepo: "maintain"}))
	r.startOnRemarks(func(ids []int64) string {
		return saying(t, "echo two >> a.txt", fmt.Sprintf("REMARK %d: done", ids[0]))
	})
	if s := r.ending(r.pulled); s.State != "done" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	r.await("the answer", func() bool { return len(r.world.Remarks(rigRepo, r.pulled)) == 3 })
	r.settle()
	all := r.world.Remarks(rigRepo, r.pulled)
	if len(all) != 3 || !strings.HasPrefix(all[2].Body, "The agent says: done") || all[0].Resolved {
		t.Errorf("the remarks are %+v", all)
	}
}

func TestARemarkThatTheAgentDoesNotMentionIsAnsweredByItsCommit(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['true']\n"})
	r.must(r.world.AddUser("mia", 1003, map[string]string{rigRepo: "maintain"}))
	r.startOnRemarks(func([]int64) string {
		return saying(t, `[ "$PAWL_ATTEMPT" = 1 ] && printf 'two\nmore\n' > a.txt || echo c >> c.txt`, "I went through the remarks.")
	})
	if s := r.ending(r.pulled); s.State != "done" {
		t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	r.await("the answer", func() bool { return len(r.world.Remarks(rigRepo, r.pulled)) == 3 })
	r.settle()
	all := r.world.Remarks(rigRepo, r.pulled)
	changed := "Commit " + r.head(r.pulled) + " changed these lines. The agent says nothing about this remark."
	if len(all) != 3 || all[2].Answers != all[0].ID || !strings.HasPrefix(all[2].Body, changed) || all[0].Resolved {
		t.Fatalf("the remarks are %+v, want the first answered by its commit, and the other, whose lines are as they were, not", all)
	}
	asked, err := r.world.ReviewComment(t.Context(), rigRepo, r.pulled, "mia", "b.txt", 1, "Why is this b?")
	r.must(err)
	r.await("the answer to a remark that was the order", func() bool { return len(r.world.Remarks(rigRepo, r.pulled)) == 5 })
	all = r.world.Remarks(rigRepo, r.pulled)
	if all[4].Answers != asked || !strings.HasPrefix(all[4].Body, "The last attempt did not change these lines, and the agent says nothing about this remark.") || all[3].Resolved {
		t.Errorf("the remarks are %+v, want only the new one answered", all)
	}
}

// startOnRemarks opens a pull request with two remarks of mia on lines, and starts the server with an agent that knows their ids.
func (r *rig) startOnRemarks(script func(ids []int64) string) {
	r.t.Helper()
	_, err := r.world.PushCommit(r.t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "work", Message: "Begin", Files: map[string]string{"a.txt": "one\nmore\n", "b.txt": "b\n"}})
	r.must(err)
	r.pulled, err = r.world.OpenPull(r.t.Context(), rigRepo, writer, fakegithub.PullRequest{Title: "Work", Body: "Begins.", Head: "work"})
	r.must(err)
	r.agent("", "stream: codex")
	r.start()
	var ids []int64
	for _, file := range []string{"a.txt", "b.txt"} {
		id, err := r.world.ReviewComment(r.t.Context(), rigRepo, r.pulled, "mia", file, 1, "Two, please.")
		r.must(err)
		ids = append(ids, id)
	}
	r.settle() // else they may count as asked for together with the order
	r.agent(script(ids), "stream: codex")
	_, err = r.world.Comment(rigRepo, r.pulled, writer, "/pawl solve address the review")
	r.must(err)
}
