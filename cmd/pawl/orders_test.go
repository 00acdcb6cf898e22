package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// ordersAtOnce are four orders that come at once on one installation.
const ordersAtOnce = 4

// order opens the issues and asks for each of them.
func (r *rig) order() (issues []int) {
	r.t.Helper()
	for i := range ordersAtOnce {
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
	r.config += fmt.Sprintf("workers: %d\n", ordersAtOnce)
	r.start()
	for _, route := range []string{"POST /repos/{owner}/{repo}/issues/comments/{id}/reactions", "POST /repos/{owner}/{repo}/issues/{number}/comments"} {
		r.world.Inject(fakegithub.Fault{Route: route, Times: -1, Status: 503})
	}
	issues := r.order()
	r.await("all agents at work", func() bool { return r.calls() == ordersAtOnce })
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
	r.wantFewWrites(1)
	sha := r.world.Pulls(rigRepo)[0].Pull.HeadSHA
	if runs := r.world.CheckRuns(rigRepo); len(runs) != 1 || runs[0].SHA != sha || runs[0].Name != "pawl" || runs[0].Conclusion != "success" {
		t.Errorf("check runs %+v, want one that is called pawl and says success", runs)
	}
}

// wantFewWrites checks that so many solved issues cost six writes each at most.
func (r *rig) wantFewWrites(issues int) {
	r.t.Helper()
	var writes []string
	for _, q := range r.world.Requests() {
		if q.Method != http.MethodGet && strings.HasPrefix(q.Path, "/repos/") {
			writes = append(writes, q.Method+" "+q.Path)
		}
	}
	if len(writes) > 6*issues || len(writes) == 0 {
		r.t.Errorf("%d writes for %d solved issues, want at most 6 each: %q", len(writes), issues, writes)
	}
}

// Whatever a write waits for, the limits' turn or GitHub, no agent waits with it: all four
// are at work before GitHub takes the first one. How long that takes is in make bench.
func TestFourOrdersAtOnceReachTheirAgentsBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n"})
	r.agent("echo two >> a.txt\n", "")
	r.config += fmt.Sprintf("workers: %d\n", ordersAtOnce)
	r.start()
	working := make(chan struct{})
	for _, method := range []string{"POST", "PATCH", "PUT", "DELETE"} {
		for depth := range 6 {
			r.world.Inject(fakegithub.Fault{Route: method + " /repos/*/*" + strings.Repeat("/*", depth), Times: -1,
				Answer: func(w http.ResponseWriter, q *http.Request, github http.Handler) {
					<-working
					github.ServeHTTP(w, q)
				}})
		}
	}
	issues := r.order()
	r.await("all agents at work", func() bool { return r.calls() == ordersAtOnce })
	close(working)
	for _, n := range issues {
		if s := r.ending(n); s.State != "done" {
			t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
		}
	}
	r.wantFewWrites(ordersAtOnce)
}
