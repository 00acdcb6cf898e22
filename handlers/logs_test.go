package handlers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// fails lets a job of GitHub Actions fail whose second step ran go test.
func (w *house) fails(sha, name, message, output string) {
	w.T.Helper()
	at := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
	var log strings.Builder
	log.WriteString("\ufeff")
	say := func(after time.Duration, lines string) {
		for line := range strings.SplitSeq(lines, "\n") {
			fmt.Fprintf(&log, "%s %s\r\n", at.Add(after).Format("2006-01-02T15:04:05.0000000Z"), line)
		}
	}
	say(time.Second, "##[group]Run actions/checkout@v4\nthe checkout speaks")
	say(5*time.Second, "##[group]Run go test ./...\n##[endgroup]\n"+output)
	say(9500*time.Millisecond, "##[error]Process completed with exit code 1.")
	say(11*time.Second, "Post job cleanup.")
	_, err := w.GitHub.CompleteCheckRun(houseRepo, "github-actions", fakegithub.CheckResult{SHA: sha, Name: name, Conclusion: "failure",
		Annotations: []fakegithub.CheckAnnotation{{Path: ".github", Line: 40, Message: message}},
		Job: &fakegithub.Job{Log: log.String(), Steps: []fakegithub.JobStep{
			{Name: "Checkout", Conclusion: "success", Started: at, Completed: at.Add(4 * time.Second)},
			{Name: "Test", Conclusion: "failure", Started: at.Add(5 * time.Second), Completed: at.Add(9 * time.Second)},
			{Name: "Post", Conclusion: "success", Started: at.Add(11 * time.Second), Completed: at.Add(11 * time.Second)}}}})
	w.Must(err)
	w.Handle()
}

const exited = "Process completed with exit code 1."

func TestAFailingJobTellsTheLogOfItsFailedStep(t *testing.T) {
	w := newHouse(t)
	issue, sha := w.pushed()
	w.GitHub.AddOtherApp("github-actions", 15368)
	token := "ghs_" + strings.Repeat("a1B2", 10)
	w.fails(sha, "unit", exited, "--- FAIL: TestSorted (0.00s)\n    sort_test.go:17: want [1 2], got [2 1]\nFAIL\nFAIL\texample.com/sort\t0.003s\n\x1b[31mred\x1b[0m "+token)
	f := w.state(issue).Feedback
	got := f[len(f)-1].Text
	for _, part := range []string{".github:40: " + exited, `The step "Test" failed; its whole log: http`, "  It ran: go test ./...\n", "TestSorted\n",
		"      sort_test.go:17: want [1 2], got [2 1]\n", "  red [redacted token]\n", "  ##[error]" + exited} {
		if !strings.Contains(got, part) {
			t.Errorf("the agent reads\n%s\nwithout %q", got, part)
		}
	}
	for _, not := range []string{"the checkout speaks", "Post job", "2026-03-04T", "\x1b", token} {
		if strings.Contains(got, not) {
			t.Errorf("the agent reads\n%s\nwith %q", got, not)
		}
	}
}

func TestALongLogIsCutToItsEnd(t *testing.T) {
	w := newHouse(t)
	issue, sha := w.pushed()
	w.GitHub.AddOtherApp("github-actions", 15368)
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprint("line ", i))
	}
	w.fails(sha, "short lines", exited, strings.Join(lines, "\n"))
	w.fails(sha, "long lines", exited, strings.Repeat(strings.Repeat("x", 200_000)+"\n", 30)+"the end")
	f := w.state(issue).Feedback
	short, long := f[len(f)-2].Text, f[len(f)-1].Text
	if !strings.Contains(short, "  (2803 lines before these are left out)\n  line 2801\n") || strings.Count(short, "\n  line ") != 199 {
		t.Errorf("the agent reads\n%s\nwant the last 200 lines", short)
	}
	if len(long) > 13_000 || !strings.Contains(long, "  the end\n") {
		t.Errorf("the agent reads %d bytes\n%s", len(long), long)
	}
}

func TestAFailureCountsAlsoWithoutItsLog(t *testing.T) {
	w := newHouse(t)
	issue, sha := w.pushed()
	w.GitHub.AddOtherApp("github-actions", 15368)
	w.GitHub.Inject(fakegithub.Fault{Route: "GET /repos/*/*/actions/jobs/*", Times: -1, Status: 404})
	w.fails(sha, "unit", exited, "no")
	f := w.state(issue).Feedback
	if last := f[len(f)-1]; last.Check != "unit" || !strings.Contains(last.Text, "(The log of this job could not be fetched: ") {
		t.Errorf("the last feedback is %+v", last)
	}
}

func TestNoLogIsFetchedOfAFailureOutsideOfTheWork(t *testing.T) {
	w := newHouse(t)
	_, sha := w.pushed()
	w.GitHub.AddOtherApp("github-actions", 15368)
	w.fails(sha, "unit", unpaid, "no")
	if n := w.GitHub.Calls()["GET /repos/{owner}/{repo}/actions/jobs/{id}"]; n != 0 {
		t.Errorf("%d requests for a job, want none", n)
	}
}
