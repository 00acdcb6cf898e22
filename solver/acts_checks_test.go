package solver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/setup"
	"github.com/pawlbot/pawl/internal/testrig"
)

// job returns a failed GitHub Actions job whose second step ran a script with this output.
func job(script, output string) *fakegithub.Job {
	at := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
	var log strings.Builder
	log.WriteString("\ufeff")
	say := func(after time.Duration, lines string) {
		for line := range strings.SplitSeq(lines, "\n") {
			fmt.Fprintf(&log, "%s %s\r\n", at.Add(after).Format("2006-01-02T15:04:05.0000000Z"), line)
		}
	}
	first, _, _ := strings.Cut(script, "\n")
	shown := "\x1b[36;1m" + strings.ReplaceAll(script, "\n", "\x1b[0m\n\x1b[36;1m") + "\x1b[0m"
	say(time.Second, "##[group]Run actions/checkout@v4\nthe checkout speaks")
	say(5*time.Second, "##[group]Run "+first+"\n"+shown+"\nshell: /usr/bin/bash -e {0}\n##[endgroup]\n"+output)
	say(9500*time.Millisecond, "##[error]Process completed with exit code 1.")
	say(11*time.Second, "Post job cleanup.")
	return &fakegithub.Job{Log: log.String(), Steps: []fakegithub.JobStep{
		{Name: "Checkout", Conclusion: "success", Started: at, Completed: at.Add(4 * time.Second)},
		{Name: "Test", Conclusion: "failure", Started: at.Add(5 * time.Second), Completed: at.Add(9 * time.Second)},
		{Name: "Post", Conclusion: "success", Started: at.Add(11 * time.Second), Completed: at.Add(11 * time.Second)},
	}}
}

// ends finishes a GitHub Actions job on a commit.
func (a *acts) ends(sha, name, conclusion string, j *fakegithub.Job, notes ...fakegithub.CheckAnnotation) {
	a.T.Helper()
	c := fakegithub.CheckResult{SHA: sha, Name: name, Conclusion: conclusion, Job: j, Annotations: notes}
	if conclusion == "failure" {
		exit := fakegithub.CheckAnnotation{Path: ".github", Line: 40, Message: "Process completed with exit code 1."}
		c.Annotations = append(c.Annotations, exit)
	}
	_, err := a.World.CompleteCheckRun(testrig.Repo, "github-actions", c)
	a.Must(err)
}

func TestActsOnFailingChecks(t *testing.T) {
	red := func() *fakegithub.Job { return job("go test ./...", "it broke") }
	rerun := func(o *fakegithub.Options) {
		o.Permissions = setup.AppPermissions()
		o.Permissions["actions"] = "write"
	}
	token := "ghs_" + strings.Repeat("a1B2", 10)
	record(t, map[string]scenario{
		"failing checks of a commit": {agent: testrig.PlainAgent, prompts: []string{"2"}, play: func(a *acts) {
			aLine(a)
			head := a.Head(2)
			a.Must(a.World.StartCheckRun(testrig.Repo, "github-actions", head, "slow"))
			var lines strings.Builder
			for i := range 3000 {
				fmt.Fprintf(&lines, "line %d\n", i)
			}
			a.ends(head, "long", "failure", job("make all", lines.String()))
			a.ends(head, "unit", "failure", job("go vet ./...\ngo test ./...", "--- FAIL: TestSorted (0.00s)\n    sort_test.go:17: want [1 2], got [2 1]\n"+
				"FAIL\nFAIL\texample.com/sort\t0.003s\n\x1b[31mred\x1b[0m "+token))
			a.ends(head, "lint", "failure", nil, fakegithub.CheckAnnotation{Path: "sort.go", Line: 3, Message: "unused variable y"})
			a.ends(head, "lint", "failure", nil, fakegithub.CheckAnnotation{Path: "sort.go", Line: 3, Message: "unused variable x"})
			a.settle()
			if a.Calls() != 1 || len(a.state(1).Checked) != 0 {
				a.T.Errorf("%d calls, looked at %+v, while a check still runs", a.Calls(), a.state(1).Checked)
			}
			a.ends(head, "slow", "failure", job("sleep 1", strings.Repeat(strings.Repeat("x", 900)+"\n", 30)+"the end"))
			a.settle()
		}},
		"a billing failure": {agent: testrig.PlainAgent, play: func(a *acts) {
			aLine(a)
			a.ends(a.Head(2), "unit", "failure", nil, fakegithub.CheckAnnotation{Path: ".github", Line: 1, Message: "The job was not started because recent account payments have failed " +
				"or your spending limit needs to be increased. Please check the 'Billing & plans' section in your settings"})
			a.settle()
			a.comments(1, testrig.Writer, "/pawl why")
		}},
		"checks that already failed on the base": {agent: testrig.PlainAgent, play: func(a *acts) {
			aLine(a)
			head, base := a.Head(2), a.World.Branches(testrig.Repo)["main"]
			a.ends(base, "nightly", "failure", red())
			a.ends(base, "begun", "failure", red())
			a.ends(a.Push("main", "more", "m.txt", "m\n"), "nightly", "failure", red())
			a.ends(head, "nightly", "failure", red())
			a.ends(head, "begun", "failure", red())
			a.ends(head, "stale", "cancelled", nil)
			a.settle()
			if got := a.World.Calls()["GET /repos/{owner}/{repo}/actions/jobs/{id}"]; got != 0 {
				a.T.Errorf("%d jobs were read, want none: no failure is reported", got)
			}
		}},
		"a check that the base fixed": {agent: testrig.PlainAgent, play: func(a *acts) {
			aLine(a)
			head := a.Head(2)
			a.ends(a.World.Branches(testrig.Repo)["main"], "mended", "failure", red())
			a.ends(a.Push("main", "mend", "m.txt", "m\n"), "mended", "success", nil)
			a.ends(head, "mended", "failure", red())
			a.settle()
			a.ends(a.Head(2), "mended", "failure", red()) // Pawl merges the base only once
			a.settle()
		}},
		"a flaky check": {agent: testrig.PlainAgent, options: rerun, prompts: []string{"2"}, play: func(a *acts) {
			aLine(a)
			head := a.Head(2)
			a.ends(head, "flaky", "failure", red())
			a.ends(head, "broken", "failure", job("go build ./...", "it breaks"))
			a.settle()
			if a.Calls() != 1 {
				a.T.Errorf("%d agent calls before the reruns finished", a.Calls())
			}
			a.ends(head, "flaky", "success", nil)
			a.ends(head, "broken", "failure", job("go build ./...", "it breaks again"))
			a.settle()
			a.ends(a.Head(2), "flaky", "failure", red())
			a.settle()
			a.ends(a.Head(2), "flaky", "success", nil)
			a.settle()
		}},
		"without actions write": {agent: testrig.PlainAgent, play: func(a *acts) {
			aLine(a)
			a.ends(a.Head(2), "unit", "failure", red())
			a.ends(a.Head(2), "download", "failure", job("curl example.com", "curl: (6) Could not resolve host: example.com"))
			a.settle()
		}},
	})
}
