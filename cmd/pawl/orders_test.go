package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// orders are four orders that come at once on one installation.
const orders = 4

// order opens the issues and asks for each of them.
func (r *rig) order() (issues []int) {
	r.t.Helper()
	for i := range orders {
		n, err := r.world.OpenIssue(rigRepo, writer, fmt.Sprint("Issue ", i), "Please add a line to a.txt.")
		r.must(err)
		issues = append(issues, n)
	}
	for _, n := range issues {
		_, err := r.world.Comment(rigRepo, n, writer, "/pawl solve")
		r.must(err)
	}
	return issues
}

// While GitHub takes neither reactions nor comments all agents are at work; what was
// owed is written once, later.
func TestNoAgentWaitsForWhatPeopleAreShown(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("echo two >> a.txt\n"+gated, "")
	r.config += fmt.Sprintf("workers: %d\n", orders)
	r.start()
	for _, route := range []string{"POST /repos/{owner}/{repo}/issues/comments/{id}/reactions", "POST /repos/{owner}/{repo}/issues/{number}/comments"} {
		r.world.Inject(fakegithub.Fault{Route: route, Times: -1, Status: 503})
	}
	issues := r.order()
	r.await("all agents at work", func() bool { return r.calls() == orders })
	r.world.ClearFaults()
	r.touch("go")
	for _, n := range issues {
		if s := r.ending(n); s.State != "done" {
			t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
		}
		comments := r.world.Comments(rigRepo, n)
		if len(comments) != 2 || len(comments[0].Reactions) != 1 || !strings.Contains(comments[1].Body, "Done") {
			t.Errorf("issue %d: %+v; want one order with one reaction, and one status comment of the end", n, comments)
		}
	}
}

// A solved issue without any trouble: 👀, the status comment at the start and at the
// end, the draft, and one check run.
func TestASolvedIssueCostsFewWrites(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n"})
	r.agent("echo two >> a.txt\n"+gated, "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.await("the status comment of the start", func() bool { return len(r.world.Comments(rigRepo, n)) == 2 })
	r.touch("go")
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	var writes []string
	for _, q := range r.world.Requests() {
		if q.Method != http.MethodGet && strings.HasPrefix(q.Caller, "installation:") && !strings.Contains(q.Path, ".git/") {
			writes = append(writes, q.Method+" "+q.Path)
		}
	}
	if len(writes) > 6 {
		t.Errorf("%d writes, want at most 6: %q", len(writes), writes)
	}
	sha := r.world.Pulls(rigRepo)[0].Pull.HeadSHA
	if runs := r.world.CheckRuns(rigRepo); len(runs) != 1 || runs[0].SHA != sha || runs[0].Name != "pawl" || runs[0].Conclusion != "success" {
		t.Errorf("check runs %+v, want one that is called pawl and says success", runs)
	}
	t.Logf("%d writes: %q", len(writes), writes)
}

// How long orders wait for their agents is for people to read, since it depends on
// the machine: from the answer to the webhook to what the agent does first.
func TestFourOrdersAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("date +%s%N > \"$CTRL/begun-${PAWL_THREAD##*#}\"\necho two >> a.txt\n", "")
	r.config += fmt.Sprintf("workers: %d\n", orders)
	r.start()
	for depth := range 5 { // about what GitHub's API takes for an answer
		r.world.Inject(fakegithub.Fault{Route: "* /repos" + strings.Repeat("/*", depth+2), Times: -1, Latency: 100 * time.Millisecond})
	}
	issues := r.order()
	var waited []time.Duration
	for _, n := range issues {
		if s := r.ending(n); s.State != "done" {
			t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
		}
		text, err := os.ReadFile(filepath.Join(r.ctrl(), fmt.Sprint("begun-", n)))
		r.must(err)
		at, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		r.must(err)
		waited = append(waited, time.Unix(0, at).Sub(r.heard(n)).Round(time.Millisecond))
	}
	slices.Sort(waited)
	t.Logf("from orders to agents: %v", waited)
}

// heard is when the order on an issue was answered.
func (r *rig) heard(n int) time.Time {
	r.t.Helper()
	for _, d := range r.world.Deliveries() {
		var e struct {
			Issue   struct{ Number int }
			Comment struct{ Body string }
		}
		if d.Event == "issue_comment" && json.Unmarshal(d.Payload, &e) == nil && e.Issue.Number == n && e.Comment.Body == "/pawl solve" {
			return d.At.Add(d.Duration)
		}
	}
	r.t.Fatalf("no order on issue %d was delivered", n)
	return time.Time{}
}
