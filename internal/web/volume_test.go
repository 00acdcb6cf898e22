package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// manyThreads puts threads into the database: each was asked for and stopped.
func (s *site) manyThreads(n int) {
	s.t.Helper()
	for i := range n {
		asked := remark(policy.FromComment, "octocat", "solve", "command solve", "/pawl solve")
		asked.Snapshot = about(fmt.Sprintf("Title %d", i), "https://github.com/acme/widgets/issues/1")
		rule := policy.RuleVerifyFailed
		if i%1000 == 7 {
			rule = policy.RuleDone
		}
		action := map[policy.Rule]policy.Action{policy.RuleDone: policy.DoDone, policy.RuleVerifyFailed: policy.DoStop}[rule]
		id := thread.ID{Owner: "acme", Name: fmt.Sprintf("repo%d", i%40), Number: i + 1}
		if _, err := s.store.Append(s.t.Context(), id, false, thread.NewEvent{Kind: thread.KindFeedback, At: now, Data: asked},
			thread.NewEvent{Kind: thread.KindDecision, At: now, Data: thread.Decided{Seen: 1, Decision: policy.Decision{Action: action, Rule: rule, Reasons: policy.Because(rule, "it was so")}}}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// page25 is how long a page of the list took.
func (s *site) page25(path string, want ...string) time.Duration {
	s.t.Helper()
	began := time.Now()
	page := s.page(path)
	took := time.Since(began)
	for _, w := range want {
		if !strings.Contains(page, w) {
			s.t.Errorf("%s does not say %q", path, w)
		}
	}
	return took
}

func TestThreadsAreSearchedFilteredAndPaged(t *testing.T) {
	n, volume := 200, !testing.Short()
	if volume {
		n = 10_000
	}
	s := open(t, nil)
	s.manyThreads(n)
	times := map[string]time.Duration{}
	took := func(what, path string, want ...string) { times[what] = s.page25(path, want...) }
	total := map[bool]string{true: "10\u2009000", false: "200"}[volume]
	took("first page", "/", "1 to 25 of "+total, "Older")
	took("page 4", "/?page=4", "76 to 100 of "+total, "Newer", "Older")
	took("a repository", "/?repo=acme%2Frepo7", "acme/repo7#", "1 to ")
	took("a name", "/?q=repo3%23"+fmt.Sprint(44), "acme/repo3#44")
	took("a title, first", "/?q=title+7&state=done", "acme/repo7#8")
	took("a title, again", "/?q=title+7&state=done", "acme/repo7#8")
	if page := s.page("/?state=done&repo=acme%2Frepo8"); strings.Contains(page, "acme/repo8#") || !strings.Contains(page, "No thread is like that") {
		t.Error("a search that finds nothing lists something")
	}
	if page := s.page("/?page=999999"); !strings.Contains(page, "No thread is like that") {
		t.Error("a page behind the last one lists something")
	}
	t.Logf("%d threads: %v", n, times)
	for what, took := range times {
		if what != "a title, first" && took > 2*time.Second {
			t.Errorf("%s took %s", what, took)
		}
	}
}
