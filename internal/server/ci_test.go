package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/setup"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy/feedback"
)

// fails lets a check of GitHub Actions fail, with what it says at lines.
func (r *rig) fails(sha, name string, notes ...fakegithub.CheckAnnotation) func() error {
	return func() error {
		_, err := r.World.CompleteCheckRun(testrig.Repo, "github-actions", fakegithub.CheckResult{SHA: sha, Name: name, Conclusion: "failure", Annotations: notes})
		return err
	}
}

// withCI is a solved issue whose pull request's head another App checks.
func (r *rig) withCI() (issue, pull int, head string) {
	r.T.Helper()
	r.Agent(testrig.PlainAgent, "")
	r.World.AddOtherApp("github-actions", 15368)
	r.Start()
	issue, pull = r.Solved()
	return issue, pull, r.Head(pull)
}

func TestFailingCIOfACommitIsOneAttemptThatReadsItsAnnotations(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n, pull, head := r.withCI()
	exit := fakegithub.CheckAnnotation{Path: ".github", Line: 40, Message: "Process completed with exit code 1."}
	r.Must(r.fails(head, "unit", fakegithub.CheckAnnotation{Path: "sort_test.go", Line: 17, Title: "TestSorted", Message: "want [1 2]\ngot [2 1]"}, exit)())
	r.Must(r.fails(head, "lint", fakegithub.CheckAnnotation{Path: "sort.go", Line: 3, Message: "unused variable x"}, exit)())
	r.Must(r.fails(head, "unit", fakegithub.CheckAnnotation{Path: "sort_test.go", Line: 17, Message: "the same once more"})())
	_, err := r.World.CompleteCheckRun(testrig.Repo, "github-actions", fakegithub.CheckResult{SHA: head, Name: "vet", Conclusion: "failure", Title: "1 of 9 failed", Summary: "TestSORTED failed"})
	r.Must(err)
	r.Settle()
	r.Await("the next commit", func() bool { return r.Head(pull) != head })
	r.Settle()
	if r.Calls() != 2 {
		t.Fatalf("%d calls of the agent (%q), want one for all checks", r.Calls(), r.judged(n))
	}
	p := r.Prompt("2")
	for _, want := range []string{"sort_test.go:17: the same once more", "sort.go:3: unused variable x", "1 of 9 failed", "TestSORTED failed"} {
		if !strings.Contains(p, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, p)
		}
	}
	if !strings.Contains(p, "the same once more") {
		t.Errorf("the prompt lacks the newest run of a check:\n%s", p)
	}
	_, err = r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "feature", Message: "a feature", Files: map[string]string{"b.txt": "b\n"}})
	r.Must(err)
	other, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "A feature", Head: "feature"})
	r.Must(err)
	r.Settle()
	r.play(other, []happens{{"failure on somebody else's commit", r.fails(r.Head(other), "unit"), ""}})
}

func TestABillingFailureStartsNothingAndWhySaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n, _, head := r.withCI()
	r.play(n, []happens{{"a job that was not started", r.fails(head, "unit", fakegithub.CheckAnnotation{Path: ".github", Line: 1,
		Message: "The job was not started because recent account payments have failed or your spending limit needs to be increased. Please check the 'Billing & plans' section in your settings"}),
		`- check run "unit" failed; infrastructure: billing: The job was not started`}})
	if c := r.Check(head, "pawl"); c.Conclusion != "success" || !strings.Contains(c.Summary, "**infrastructure**: billing: The job was not started") {
		t.Errorf("the check run is %s and says\n%s", c.Conclusion, c.Summary)
	}
	before := len(r.World.Comments(testrig.Repo, n))
	r.Must(r.Says(n, testrig.Writer, "/pawl why")())
	r.Settle()
	all := r.World.Comments(testrig.Repo, n)
	if answer := all[len(all)-1].Body; len(all) != before+2 || !strings.Contains(answer, "billing: The job was not started because recent account payments have failed") {
		t.Errorf("/pawl why answers\n%s\nwant the billing", answer)
	}
}

// job is a failed job of GitHub Actions whose second step ran a script with this output.
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
	say(time.Second, "##[group]Run actions/checkout@v4\nthe checkout speaks")
	say(5*time.Second, "##[group]Run "+first+"\n\x1b[36;1m"+strings.ReplaceAll(script, "\n", "\x1b[0m\n\x1b[36;1m")+"\x1b[0m\nshell: /usr/bin/bash -e {0}\n##[endgroup]\n"+output)
	say(9500*time.Millisecond, "##[error]Process completed with exit code 1.")
	say(11*time.Second, "Post job cleanup.")
	return &fakegithub.Job{Log: log.String(), Steps: []fakegithub.JobStep{
		{Name: "Checkout", Conclusion: "success", Started: at, Completed: at.Add(4 * time.Second)},
		{Name: "Test", Conclusion: "failure", Started: at.Add(5 * time.Second), Completed: at.Add(9 * time.Second)},
		{Name: "Post", Conclusion: "success", Started: at.Add(11 * time.Second), Completed: at.Add(11 * time.Second)}}}
}

// ends lets a job of GitHub Actions end.
func (r *rig) ends(sha, name, conclusion string, j *fakegithub.Job) {
	r.T.Helper()
	c := fakegithub.CheckResult{SHA: sha, Name: name, Conclusion: conclusion, Job: j}
	if conclusion == "failure" {
		c.Annotations = []fakegithub.CheckAnnotation{{Path: ".github", Line: 40, Message: "Process completed with exit code 1."}}
	}
	_, err := r.World.CompleteCheckRun(testrig.Repo, "github-actions", c)
	r.Must(err)
}

func (r *rig) rerunsAsked() int {
	return r.World.Calls()["POST /repos/{owner}/{repo}/actions/runs/{id}/rerun-failed-jobs"]
}

func TestTheChecksOfAHeadAreLookedAtOnceWhenAllAreOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n, _, head := r.withCI()
	r.Must(r.World.StartCheckRun(testrig.Repo, "github-actions", head, "slow"))
	token := "ghs_" + strings.Repeat("a1B2", 10)
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprint("line ", i))
	}
	r.ends(head, "long", "failure", job("make all", strings.Join(lines, "\n")))
	r.ends(head, "unit", "failure", job("go vet ./...\ngo test ./...", "--- FAIL: TestSorted (0.00s)\n    sort_test.go:17: want [1 2], got [2 1]\nFAIL\nFAIL\texample.com/sort\t0.003s\n\x1b[31mred\x1b[0m "+token))
	time.Sleep(13 * time.Second) // longer than the checks must have been quiet
	r.Handled()
	if r.Calls() != 1 || len(r.State(n).Checked) != 0 {
		t.Fatalf("%d calls, looked at %+v, while a check still runs", r.Calls(), r.State(n).Checked)
	}
	r.ends(head, "slow", "failure", job("sleep 1", strings.Repeat(strings.Repeat("x", 900)+"\n", 30)+"the end"))
	r.Await("one attempt", func() bool { return r.Calls() == 2 })
	r.Settle()
	p := r.Prompt("2")
	for _, want := range []string{`Check run "unit": failure, http`, `The step "Test" failed.`, "It ran: go vet ./...\n          go test ./...\n", "Failing: ", "TestSorted",
		"sort_test.go:17: want [1 2], got [2 1]\n", "  red [redacted token]\n", "lines before these are left out)", "  line 2999\n", "  the end\n"} {
		if !strings.Contains(p, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, p)
		}
	}
	for _, not := range []string{"the checkout speaks", "Post job", "2026-03-04T", "\x1b", token, "line 2700\n"} {
		if strings.Contains(p, not) {
			t.Errorf("the prompt has %q", not)
		}
	}
	_, told, _ := strings.Cut(p, "Failing checks on the last commit\n")
	if told, _, _ = strings.Cut(told[66:], "\n====="); len(told) > 12_100 || strings.Count(told, "  line ") > 200 {
		t.Errorf("%d bytes are told of three checks, want at most 12,000", len(told))
	}
	if k := r.State(n).Checked; len(k) != 1 || len(k[0].Checks) != 3 || r.Calls() != 2 || r.rerunsAsked() != 0 {
		t.Errorf("looked at %+v, %d calls, %d re-runs; want one look for one call and none", k, r.Calls(), r.rerunsAsked())
	}
}

func TestWhatWasRedBeforeReachesNoAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n, _, head := r.withCI()
	base := r.World.Branches(testrig.Repo)["main"]
	r.ends(base, "nightly", "failure", job("true", "red"))
	r.ends(base, "begun", "failure", job("true", "red"))
	tip, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "main", Message: "more", Files: map[string]string{"m.txt": "m\n"}})
	r.Must(err)
	r.ends(tip, "nightly", "failure", job("true", "red"))
	r.ends(head, "nightly", "failure", job("true", "red"))
	r.ends(head, "begun", "failure", job("true", "red"))
	r.ends(head, "stale", "cancelled", nil)
	r.Settle()
	if r.Calls() != 1 || len(r.State(n).Feedback) != 1 {
		t.Errorf("%d calls of the agent, want none for what was red before", r.Calls())
	}
	if c := r.Check(head, "pawl"); c.Conclusion != "success" {
		t.Errorf("the check run is %s, want success as before", c.Conclusion)
	}
	for name, want := range map[string]string{"nightly": "was there before: it fails on main as well", "stale": "infrastructure: it was cancelled",
		"begun": "was there before: it failed where the work began"} {
		class, reason, _ := strings.Cut(want, ": ")
		found := false
		for _, k := range r.State(n).Checked.On(head) {
			found = found || k.Name == name && string(k.Class) == class && k.Reason == reason && !k.Update
		}
		summary := r.Check(head, "pawl").Summary
		if !found || !strings.Contains(summary, "**"+class+"**: "+reason) {
			t.Errorf("%s: %+v, shown as\n%s\nwant %s", name, r.State(n).Checked.On(head), summary, want)
		}
	}
	if got := r.World.Calls()["GET /repos/{owner}/{repo}/actions/jobs/{id}"]; got != 0 {
		t.Errorf("%d jobs were read, want none: nothing of them is told", got)
	}
}

func TestWhatTheBaseMendedIsBroughtInOnceAndWithoutAnAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n, pull, head := r.withCI()
	r.ends(r.World.Branches(testrig.Repo)["main"], "mended", "failure", job("true", "red"))
	tip, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "main", Message: "mend", Files: map[string]string{"m.txt": "m\n"}})
	r.Must(err)
	r.ends(tip, "mended", "success", nil)
	r.ends(head, "mended", "failure", job("true", "red"))
	r.Await("the base in the branch", func() bool { return r.Head(pull) != head })
	r.Settle()
	const reason = "it failed where the work began, and passes on main now, which the branch is behind"
	if k := r.State(n).Checked.On(head); len(k) != 1 || k[0].Class != feedback.Before || k[0].Reason != reason || !k[0].Update {
		t.Errorf("found %+v, want %s", k, reason)
	}
	if last := r.State(n).Attempts[1].Receipt; r.Calls() != 1 || last.Updated != tip {
		t.Errorf("%d calls of the agent, and the second attempt brought in %q; want one, and %s", r.Calls(), last.Updated, tip)
	}
	now := r.Head(pull)
	r.ends(now, "mended", "failure", job("true", "red"))
	r.Settle()
	if k := r.State(n).Checked.On(now); len(k) != 1 || k[0].Class != feedback.Before || k[0].Update || len(r.State(n).Attempts) != 2 || r.Calls() != 1 {
		t.Errorf("then found %+v after %d attempts; want nothing more done", k, len(r.State(n).Attempts))
	}
}

func TestAFlakyCheckIsRunAgainOnceAndNoWork(t *testing.T) {
	t.Parallel()
	r := newRigAt(t, nil, time.Now, func(o *fakegithub.Options) {
		o.Permissions = setup.AppPermissions()
		o.Permissions["actions"] = "write"
	})
	n, pull, head := r.withCI()
	r.ends(head, "flaky", "failure", job("go test ./...", "it broke"))
	r.ends(head, "broken", "failure", job("go build ./...", "it breaks"))
	r.Await("the jobs to run again", func() bool { return r.rerunsAsked() == 1 })
	r.Settle()
	if r.Calls() != 1 {
		t.Fatalf("%d calls of the agent before the jobs ended again", r.Calls())
	}
	r.ends(head, "flaky", "success", nil)
	r.ends(head, "broken", "failure", job("go build ./...", "it breaks again"))
	r.Await("the next commit", func() bool { return r.Head(pull) != head })
	r.Settle()
	if p := r.Prompt("2"); r.rerunsAsked() != 1 || !strings.Contains(p, "it breaks again") || strings.Contains(p, "it broke") {
		t.Errorf("%d re-runs, and the agent reads\n%s", r.rerunsAsked(), p)
	}
	for _, k := range r.State(n).Checked.On(head) {
		if want := map[string]feedback.Class{"flaky": feedback.Flaky, "broken": feedback.Ours}[k.Name]; k.Class != want {
			t.Errorf("%s is %s (%s), want %s", k.Name, k.Class, k.Reason, want)
		}
	}
	// On the next commit it passes only where a person has it run again.
	head = r.Head(pull)
	r.ends(head, "flaky", "failure", job("go test ./...", "it broke"))
	r.Await("the jobs to run again", func() bool { return r.rerunsAsked() == 2 })
	r.ends(head, "flaky", "success", nil)
	r.Settle()
	if c := r.Check(head, "pawl"); r.Calls() != 2 || !strings.Contains(c.Summary, "**flaky**: it passed when it ran again on the same commit") {
		t.Errorf("%d calls, and the check run says\n%s", r.Calls(), c.Summary)
	}
}

func TestWithoutActionsWriteNothingIsRunAgainAndThatIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n, pull, head := r.withCI()
	r.ends(head, "unit", "failure", job("go test ./...", "it broke"))
	r.Await("the next commit", func() bool { return r.Head(pull) != head })
	r.Settle()
	k := r.State(n).Checked.On(head)
	if len(k) != 1 || k[0].Class != feedback.Ours || !strings.Contains(k[0].Reason, "not run again, since the App has no actions: write") || r.rerunsAsked() != 0 {
		t.Errorf("found %+v after %d re-runs", k, r.rerunsAsked())
	}
}
