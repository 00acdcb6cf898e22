package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

// arm is what pawl status says of a backend.
func (r *rig) arm(name string) learning.ArmView {
	r.T.Helper()
	for _, a := range r.Status().Learning.Arms {
		if a.Backend == name {
			return a
		}
	}
	r.T.Fatalf("pawl status knows no backend %s", name)
	return learning.ArmView{}
}

// source is what pawl status says of a source of grades.
func (r *rig) source(name learning.SignalSource) learning.SourceHealth {
	r.T.Helper()
	for _, h := range r.Status().Learning.Sources {
		if h.Source == name {
			return h
		}
	}
	r.T.Fatalf("pawl status knows no source %s", name)
	return learning.SourceHealth{}
}

// merge merges a pull request as the writer.
func (r *rig) merge(pull int) {
	r.T.Helper()
	_, err := r.World.MergePull(r.T.Context(), testrig.Repo, pull, testrig.Writer)
	r.Must(err)
}

// revert opens and merges the pull request that GitHub's button Revert makes.
func (r *rig) revert(pull int) {
	r.T.Helper()
	branch := fmt.Sprintf("revert-%d", pull)
	_, err := r.World.PushCommit(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: branch, Message: "Revert it", Files: map[string]string{"a.txt": "one\n"}})
	r.Must(err)
	n, err := r.World.OpenPull(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{
		Title: `Revert "A word"`, Body: fmt.Sprintf("Reverts %s#%d", testrig.Repo, pull), Head: branch})
	r.Must(err)
	r.merge(n)
}

func TestWhatPeopleDoWithTheWorkRevisesItsReward(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("cat > /dev/null; echo done >> a.txt\n", "")
	r.Start()
	before := r.arm("mine").Mean
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	r.Await("the first reward", func() bool { return r.arm("mine").Rewards == 1 })
	verified := r.arm("mine").Mean
	if verified <= before {
		t.Errorf("mean %.2f after a verified attempt, want above the prior's %.2f", verified, before)
	}
	pull := r.PullOf(n)
	_, err := r.World.Review(testrig.Repo, pull, testrig.Writer, "APPROVED", "")
	r.Must(err)
	r.Await("the approval to count", func() bool { return r.arm("mine").Mean < verified })
	r.merge(pull)
	r.Await("the merge to count", func() bool { return r.arm("mine").Mean == verified })
	merged := r.arm("mine")
	if merged.Rewards != 1 {
		t.Errorf("%d rewards after the merge, want the one, revised", merged.Rewards)
	}
	revert, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Something else", "Nothing to do with it.")
	r.Must(err)
	_, err = r.World.Comment(testrig.Repo, revert, testrig.Writer, "a remark that is none of Pawl's business")
	r.Must(err)
	r.Settle()
	if now := r.arm("mine"); now != merged {
		t.Errorf("a signal that is missing moved the posterior from %+v to %+v", merged, now)
	}
	r.revert(pull)
	r.Await("the revert to count", func() bool { return r.arm("mine").Mean < before })
	if now := r.arm("mine"); now.Rewards != 1 {
		t.Errorf("%d rewards after the revert, want the one, revised", now.Rewards)
	}
}

// TestTheIncidentOfTheSilentRewards plays two attempts that run at the same time
// on one host: both streams claim to be of the same session and hold their first
// lines only, and the judge, whose quota is exhausted, fails for one and gives the
// lowest grade to the other without saying why. Both pushed real commits.
func TestTheIncidentOfTheSilentRewards(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	judge := filepath.Join(r.Dir, "judge.sh")
	r.Must(os.WriteFile(judge, []byte("#!/bin/sh\nif grep -q second; then echo 'quota exhausted' >&2; exit 1; fi\necho '{\"grade\": 0.02}'\n"), 0o700))
	r.Agent("cat > /dev/null; touch \"$CTRL/began.$PAWL_THREAD_N\" 2>/dev/null; echo $$ >> a.txt; echo \"$PAWL_THREAD\" >> \"$CTRL/threads\"\n"+
		"while [ $(wc -l < \"$CTRL/threads\") -lt 2 ]; do sleep 0.05; done\n"+ // both are at work
		`echo '{"type":"thread.started","thread_id":"019a1fd2-0000-7451-8d0f-9bf2a7204a41"}'; echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}'; echo '{"type":"turn.completed"}'`+"\n",
		"stream: codex")
	r.Config += fmt.Sprintf("policy: {learning: {judge: [%q]}}\nworkers: 2\n", judge)
	r.Start()
	before := r.arm("mine").Mean
	first, second := r.Solve("The first", "Please add a line."), r.Solve("The second", "Please add a second line.")
	for _, n := range []int{first, second} {
		if s := r.Ending(n); s.State != "done" {
			t.Fatalf("#%d: %s (%s %q), want done", n, s.State, s.Rule, s.Reasons)
		}
	}
	r.Settle()
	if a := r.arm("mine"); a.Rewards != 0 || a.Mean != before {
		t.Errorf("the posterior moved: %+v", a)
	}
	said := ""
	for _, name := range []learning.SignalSource{learning.JudgeSource, learning.TrajectorySource, learning.JournalSource} {
		for _, v := range r.source(name).Violations {
			said += fmt.Sprintf("%s %s %s: %s\n", v.Attempt, v.Source, v.Check, v.Reason)
		}
	}
	for _, n := range []int{first, second} {
		if !strings.Contains(said, fmt.Sprintf("%s/1 trajectory %s", testrig.ThreadName(n), learning.StubTranscript)) {
			t.Errorf("#%d is not charged with its stub:\n%s", n, said)
		}
	}
	for n, judge := range map[int]string{first: "judge gave 0.02", second: "quota exhausted"} {
		why := ""
		for _, j := range r.Status().Learning.Quarantined {
			if j.ID == testrig.ThreadName(n)+"/1" {
				why = strings.Join(j.Quarantine, "\n")
			}
		}
		for _, reason := range []string{"stub", judge} {
			if !strings.Contains(why, reason) {
				t.Errorf("#%d is not quarantined for %q:\n%s", n, reason, why)
			}
		}
	}
	if h := r.source(learning.JudgeSource); h.Failed != 1 {
		t.Errorf("the judge failed %d times, want 1: %+v", h.Failed, h)
	}
	r.merge(r.PullOf(first))
	r.Await("the merge to reward the first", func() bool { return r.arm("mine").Rewards == 1 })
	if a := r.arm("mine"); a.Mean <= before {
		t.Errorf("mean %.2f after the merge, want above %.2f", a.Mean, before)
	}
}

func TestShadowModeSaysWhatItWouldHaveTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; echo two >> a.txt\n", "")
	path := filepath.Join(r.Dir, "agent.sh")
	r.Config += fmt.Sprintf("  - {name: other, kind: command, argv: [%q]}\npolicy: {learning: {mode: shadow}}\n", path)
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	l := r.Status().Learning
	if l.Mode != policy.ModeShadow || l.InForce != policy.ModeShadow {
		t.Errorf("mode %s, in force %s; want shadow", l.Mode, l.InForce)
	}
	summary := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl").Summary
	if want := "mine is the first of the configured order that is free; sampling would take"; !strings.Contains(summary, want) {
		t.Errorf("the check run does not say %q:\n%s", want, summary)
	}
}

// TestTwoBackendsAreLearnedFromByDefault: one backend does nothing right. Nobody configured anything, and work goes to the other.
func TestTwoBackendsAreLearnedFromByDefault(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("cat > /dev/null; echo wrong >> a.txt\n", "")
	good := filepath.Join(r.Dir, "good.sh")
	r.Must(os.WriteFile(good, []byte("#!/bin/sh\ncat > /dev/null; echo done >> a.txt\n"), 0o700))
	r.Config += fmt.Sprintf("  - {name: other, kind: command, argv: [%q]}\n", good)
	r.Start()
	if l := r.Status().Learning; l.Mode != policy.ModeAuto || l.InForce != policy.ModeLearn {
		t.Fatalf("mode %s, in force %s; want auto and learn", l.Mode, l.InForce)
	}
	taken := 0
	for i := range 8 {
		n := r.Solve(fmt.Sprintf("A word %d", i), fmt.Sprintf("Please add the right word to a.txt, number %d.", i))
		s := r.Ending(n)
		if i >= 4 && s.State == "done" {
			taken++
		}
	}
	mine, other := r.arm("mine"), r.arm("other")
	if taken < 3 || other.Rewards == 0 || other.Mean <= mine.Mean {
		t.Errorf("of the last 4 threads %d went well: %+v and %+v", taken, mine, other)
	}
	if other.Chosen == "" {
		t.Errorf("nobody says why other was chosen: %+v", other)
	}
}

// TestWhatPeopleSayWithoutMerging: reviews, reactions to the status comment, and an end, each as it decides.
func TestWhatPeopleSayWithoutMerging(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("cat > /dev/null; echo done >> a.txt\n", "")
	r.Start()
	before := r.arm("mine").Mean
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	pull, comments := r.PullOf(n), r.World.Comments(testrig.Repo, n)
	status := comments[len(comments)-1].ID
	mean := func() float64 { return r.arm("mine").Mean }
	r.Await("the verified work", func() bool { return mean() > before })
	verified := mean()
	r.Must(r.World.ReactToComment(testrig.Repo, status, testrig.Reader, "-1")) // who may not write
	r.Must(r.World.ReactToComment(testrig.Repo, status, testrig.Writer, "rocket"))
	_, err := r.World.Review(testrig.Repo, pull, testrig.Writer, "APPROVED", "")
	r.Must(err)
	r.Await("the approval", func() bool { return mean() < verified })
	approved := mean()
	r.Must(r.World.ReactToComment(testrig.Repo, status, testrig.Writer, "-1"))
	r.Must(r.World.CloseIssue(testrig.Repo, n, testrig.Writer))
	r.Await("the thumb, read when the issue is closed", func() bool { return mean() < before })
	if mean() >= approved {
		t.Errorf("mean %.2f after 👎, %.2f before", mean(), approved)
	}
	r.Settle()
	down := mean()
	r.Must(r.World.ClosePull(testrig.Repo, pull, testrig.Writer))
	r.Await("the close, which is worse", func() bool { return mean() < down })
	if a := r.arm("mine"); a.Rewards != 1 {
		t.Errorf("%d rewards, want the one, revised", a.Rewards)
	}
}

// words are what people said of each attempt of a thread by the rows that are learned from: the last word of each kind.
func (r *rig) words(n int) (all []string) {
	r.T.Helper()
	r.Read(func(db *store.Store) {
		rows, err := db.Graded(r.T.Context(), time.Time{}, 100)
		r.Must(err)
		for _, row := range rows {
			var g learning.Graded
			r.Must(json.Unmarshal(row.Data, &g))
			if !strings.HasPrefix(g.ID, testrig.ThreadName(n)+"/") {
				continue
			}
			said := strings.TrimPrefix(g.ID, testrig.ThreadName(n)+"/") + ":"
			for _, s := range g.Signals {
				if s.Source == learning.PeopleSource && s.Known {
					said += fmt.Sprintf(" %s %.1f", s.Kind, s.Value)
				}
			}
			all = append(all, said)
		}
	})
	slices.Sort(all)
	return all
}

// TestEachWordOfPeopleChangesTheGrade: 👍 on the status comment, a review that asks for changes, a merge after them, and a
// revert, each as the rows have it and as the mean follows.
func TestEachWordOfPeopleChangesTheGrade(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("cat > /dev/null; echo done $(wc -l < \"$CTRL/calls\") >> a.txt\n", "")
	r.Start()
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	pull, comments := r.PullOf(n), r.World.Comments(testrig.Repo, n)
	mean := func() float64 { return r.arm("mine").Mean }
	says := func(what string, want ...string) {
		t.Helper()
		r.Await(what, func() bool { return slices.Equal(r.words(n), want) })
	}
	r.Await("the verified work", func() bool { return r.arm("mine").Rewards == 1 })
	verified := mean()
	r.Must(r.World.ReactToComment(testrig.Repo, comments[len(comments)-1].ID, testrig.Writer, "+1"))
	r.Must(r.World.CloseIssue(testrig.Repo, n, testrig.Writer))
	says("the 👍", "1: thumbs_up 0.8")
	r.Await("its mean", func() bool { return mean() < verified })
	liked := mean()
	r.Must(r.World.ReopenIssue(testrig.Repo, n, testrig.Writer))
	r.Settle()
	_, err := r.World.Review(testrig.Repo, pull, testrig.Writer, "CHANGES_REQUESTED", "Please add one more line, below the first.")
	r.Must(err)
	says("the verdict and the attempt for it", "1: thumbs_up 0.8 changes_requested 0.3", "2:")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	r.Await("two rewards", func() bool { return r.arm("mine").Rewards == 2 })
	asked := mean()
	if asked >= liked {
		t.Errorf("mean %.3f after a request for changes, %.3f before", asked, liked)
	}
	r.merge(pull)
	says("the merge after one more change", "1: thumbs_up 0.8 changes_requested 0.3 merged 0.8", "2: merged 1.0")
	r.Await("its mean", func() bool { return mean() > asked })
	merged := mean()
	r.revert(pull)
	says("the revert", "1: thumbs_up 0.8 changes_requested 0.3", "2: merged 1.0 reverted 0.0")
	r.Await("its mean", func() bool { return mean() < min(asked, merged) })
}

// TestRecoveriesAndRetriesAreSeen: in pawl status and on the page.
func TestRecoveriesAndRetriesAreSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t, tested("sh run.sh", "echo $1"))
	r.Agent("cat > /dev/null\nif [ $(wc -l < \"$CTRL/calls\") = 1 ]; then echo 'sum() { echo $2; }' > sum.sh; else echo 'sum() { echo $(($1+$2)); }' > sum.sh; fi; echo tried $(wc -l < \"$CTRL/calls\")\n", "")
	r.Start()
	n := r.Solve("Sums", "Please see to sum.sh.")
	if s := r.Ending(n); s.State != "done" || r.Calls() != 2 {
		t.Fatalf("%d calls, then %s (%s %q); want two, then done", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	r.Await("both rows", func() bool { w := r.Status().Learning.Weeks; return len(w) == 1 && w[0].Attempts == 2 })
	l := r.Status().Learning
	if two := l.Weeks[0].Rungs[1]; two != (learning.Fired{Rung: 2, Times: 1, Recovered: 1}) {
		t.Errorf("rung 2: %+v, want one that recovered", two)
	}
	if len(l.Similarities) != 20 {
		t.Errorf("similarities %v, want one retry", l.Similarities)
	}
}
