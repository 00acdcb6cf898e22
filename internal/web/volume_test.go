package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// manyThreads stores stopped threads.
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

func (s *site) wantTexts(path string, want ...string) {
	s.t.Helper()
	began := time.Now()
	page := s.page(path)
	s.t.Logf("%s took %s", path, time.Since(began).Round(time.Millisecond))
	for _, w := range want {
		if !strings.Contains(page, w) {
			s.t.Errorf("%s does not contain %q", path, w)
		}
	}
}

func TestThreadSearch(t *testing.T) {
	n, volume := 200, needs.AreAll()
	if volume {
		n = 10_000
	}
	s := open(t, nil)
	s.manyThreads(n)
	total := map[bool]string{true: "10\u2009000", false: "200"}[volume]
	s.wantTexts("/", "1 to 25 of "+total, "Older")
	s.wantTexts("/?page=4", "76 to 100 of "+total, "Newer", "Older")
	s.wantTexts("/?repo=acme%2Frepo7", "acme/repo7#", "1 to ")
	s.wantTexts("/?q=repo3%23"+fmt.Sprint(44), "acme/repo3#44")
	s.wantTexts("/?q=title+7&state=done", "acme/repo7#8")
	if page := s.page("/?state=done&repo=acme%2Frepo8"); strings.Contains(page, "acme/repo8#") || !strings.Contains(page, "No thread matches") {
		t.Error("a search that finds nothing lists something")
	}
	if page := s.page("/?page=999999"); !strings.Contains(page, "No thread matches") {
		t.Error("a page after the last one lists something")
	}
}
