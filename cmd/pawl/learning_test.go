package main

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
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

// arm is what pawl status says of a backend.
func (r *rig) arm(name string) learning.ArmView {
	r.t.Helper()
	for _, a := range r.status().Learning.Arms {
		if a.Backend == name {
			return a
		}
	}
	r.t.Fatalf("pawl status knows no backend %s", name)
	return learning.ArmView{}
}

// source is what pawl status says of a source of grades.
func (r *rig) source(name learning.SignalSource) learning.SourceHealth {
	r.t.Helper()
	for _, h := range r.status().Learning.Sources {
		if h.Source == name {
			return h
		}
	}
	r.t.Fatalf("pawl status knows no source %s", name)
	return learning.SourceHealth{}
}

// pullOf is the number of the pull request for an issue.
func (r *rig) pullOf(issue int) int {
	for _, p := range r.world.Pulls(rigRepo) {
		if p.Pull.Head == fmt.Sprintf("pawl/issue-%d", issue) {
			return p.Number
		}
	}
	return 0
}

// merge merges a pull request as the writer.
func (r *rig) merge(pull int) {
	r.t.Helper()
	_, err := r.world.MergePull(r.t.Context(), rigRepo, pull, writer)
	r.must(err)
}

// revert opens and merges the pull request that GitHub's button Revert makes.
func (r *rig) revert(pull int) {
	r.t.Helper()
	branch := fmt.Sprintf("revert-%d", pull)
	_, err := r.world.PushCommit(r.t.Context(), rigRepo, writer, fakegithub.Commit{Branch: branch, Message: "Revert it", Files: map[string]string{"a.txt": "one\n"}})
	r.must(err)
	n, err := r.world.OpenPull(r.t.Context(), rigRepo, writer, fakegithub.PullRequest{
		Title: `Revert "A word"`, Body: fmt.Sprintf("Reverts %s#%d", rigRepo, pull), Head: branch})
	r.must(err)
	r.merge(n)
}

func TestWhatPeopleDoWithTheWorkRevisesItsReward(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.agent("cat > /dev/null; echo done >> a.txt\n", "")
	r.start()
	before := r.arm("mine").Mean
	n := r.solve("A word", "Please add the right word to a.txt.")
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	r.await("the first reward", func() bool { return r.arm("mine").Rewards == 1 })
	verified := r.arm("mine").Mean
	if verified <= before {
		t.Errorf("mean %.2f after a verified attempt, want above the prior's %.2f", verified, before)
	}
	pull := r.pullOf(n)
	_, err := r.world.Review(rigRepo, pull, writer, "APPROVED", "")
	r.must(err)
	r.await("the approval to count", func() bool { return r.arm("mine").Mean < verified })
	r.merge(pull)
	r.await("the merge to count", func() bool { return r.arm("mine").Mean == verified })
	merged := r.arm("mine")
	if merged.Rewards != 1 {
		t.Errorf("%d rewards after the merge, want the one, revised", merged.Rewards)
	}
	revert, err := r.world.OpenIssue(rigRepo, writer, "Something else", "Nothing to do with it.")
	r.must(err)
	_, err = r.world.Comment(rigRepo, revert, writer, "a remark that is none of Pawl's business")
	r.must(err)
	r.settle()
	if now := r.arm("mine"); now != merged {
		t.Errorf("a signal that is missing moved the posterior from %+v to %+v", merged, now)
	}
	r.revert(pull)
	r.await("the revert to count", func() bool { return r.arm("mine").Mean < before })
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
	judge := filepath.Join(r.dir, "judge.sh")
	r.must(os.WriteFile(judge, []byte("#!/bin/sh\nif grep -q second; then echo 'quota exhausted' >&2; exit 1; fi\necho '{\"grade\": 0.02}'\n"), 0o700))
	r.agent("cat > /dev/null; touch \"$CTRL/began.$PAWL_THREAD_N\" 2>/dev/null; echo $$ >> a.txt; echo \"$PAWL_THREAD\" >> \"$CTRL/threads\"\n"+
		"while [ $(wc -l < \"$CTRL/threads\") -lt 2 ]; do sleep 0.05; done\n"+ // both are at work
		`echo '{"type":"thread.started","thread_id":"019a1fd2-0000-7451-8d0f-9bf2a7204a41"}'; echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}'; echo '{"type":"turn.completed"}'`+"\n",
		"stream: codex")
	r.config += fmt.Sprintf("policy: {learning: {judge: [%q]}}\nworkers: 2\n", judge)
	r.start()
	before := r.arm("mine").Mean
	first, second := r.solve("The first", "Please add a line."), r.solve("The second", "Please add a second line.")
	for _, n := range []int{first, second} {
		if s := r.ending(n); s.State != "done" {
			t.Fatalf("#%d: %s (%s %q), want done", n, s.State, s.Rule, s.Reasons)
		}
	}
	r.settle()
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
		if !strings.Contains(said, fmt.Sprintf("%s/1 trajectory %s", threadName(n), learning.StubTranscript)) {
			t.Errorf("#%d is not charged with its stub:\n%s", n, said)
		}
	}
	for n, judge := range map[int]string{first: "judge gave 0.02", second: "quota exhausted"} {
		why := ""
		for _, j := range r.status().Learning.Quarantined {
			if j.ID == threadName(n)+"/1" {
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
	r.merge(r.pullOf(first))
	r.await("the merge to reward the first", func() bool { return r.arm("mine").Rewards == 1 })
	if a := r.arm("mine"); a.Mean <= before {
		t.Errorf("mean %.2f after the merge, want above %.2f", a.Mean, before)
	}
}

func TestShadowModeSaysWhatItWouldHaveTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("cat > /dev/null; echo two >> a.txt\n", "")
	path := filepath.Join(r.dir, "agent.sh")
	r.config += fmt.Sprintf("  - {name: other, kind: command, argv: [%q]}\npolicy: {learning: {mode: shadow}}\n", path)
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	l := r.status().Learning
	if l.Mode != policy.ModeShadow || l.InForce != policy.ModeShadow {
		t.Errorf("mode %s, in force %s; want shadow", l.Mode, l.InForce)
	}
	summary := r.check(r.world.Pulls(rigRepo)[0].Pull.HeadSHA, "pawl").Summary
	if want := "mine is the first of the configured order that is free; sampling would take"; !strings.Contains(summary, want) {
		t.Errorf("the check run does not say %q:\n%s", want, summary)
	}
}

// TestTwoBackendsAreLearnedFromByDefault: one backend does nothing right. Nobody configured anything, and work goes to the other.
func TestTwoBackendsAreLearnedFromByDefault(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.agent("cat > /dev/null; echo wrong >> a.txt\n", "")
	good := filepath.Join(r.dir, "good.sh")
	r.must(os.WriteFile(good, []byte("#!/bin/sh\ncat > /dev/null; echo done >> a.txt\n"), 0o700))
	r.config += fmt.Sprintf("  - {name: other, kind: command, argv: [%q]}\n", good)
	r.start()
	if l := r.status().Learning; l.Mode != policy.ModeAuto || l.InForce != policy.ModeLearn {
		t.Fatalf("mode %s, in force %s; want auto and learn", l.Mode, l.InForce)
	}
	taken := 0
	for i := range 8 {
		n := r.solve(fmt.Sprintf("A word %d", i), fmt.Sprintf("Please add the right word to a.txt, number %d.", i))
		s := r.ending(n)
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
	r.agent("cat > /dev/null; echo done >> a.txt\n", "")
	r.start()
	before := r.arm("mine").Mean
	n := r.solve("A word", "Please add the right word to a.txt.")
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	pull, comments := r.pullOf(n), r.world.Comments(rigRepo, n)
	status := comments[len(comments)-1].ID
	mean := func() float64 { return r.arm("mine").Mean }
	r.await("the verified work", func() bool { return mean() > before })
	verified := mean()
	r.must(r.world.ReactToComment(rigRepo, status, reader, "-1")) // who may not write
	r.must(r.world.ReactToComment(rigRepo, status, writer, "rocket"))
	_, err := r.world.Review(rigRepo, pull, writer, "APPROVED", "")
	r.must(err)
	r.await("the approval", func() bool { return mean() < verified })
	approved := mean()
	r.must(r.world.ReactToComment(rigRepo, status, writer, "-1"))
	r.must(r.world.CloseIssue(rigRepo, n, writer))
	r.await("the thumb, read when the issue is closed", func() bool { return mean() < before })
	if mean() >= approved {
		t.Errorf("mean %.2f after 👎, %.2f before", mean(), approved)
	}
	r.settle()
	down := mean()
	r.must(r.world.ClosePull(rigRepo, pull, writer))
	r.await("the close, which is worse", func() bool { return mean() < down })
	if a := r.arm("mine"); a.Rewards != 1 {
		t.Errorf("%d rewards, want the one, revised", a.Rewards)
	}
}

// words are what people said of each attempt of a thread by the rows that are learned from: the last word of each kind.
func (r *rig) words(n int) (all []string) {
	r.t.Helper()
	r.read(func(db *store.Store) {
		rows, err := db.Graded(r.t.Context(), time.Time{}, 100)
		r.must(err)
		for _, row := range rows {
			var g learning.Graded
			r.must(json.Unmarshal(row.Data, &g))
			if !strings.HasPrefix(g.ID, threadName(n)+"/") {
				continue
			}
			said := strings.TrimPrefix(g.ID, threadName(n)+"/") + ":"
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
	r.agent("cat > /dev/null; echo done $(wc -l < \"$CTRL/calls\") >> a.txt\n", "")
	r.start()
	n := r.solve("A word", "Please add the right word to a.txt.")
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	pull, comments := r.pullOf(n), r.world.Comments(rigRepo, n)
	mean := func() float64 { return r.arm("mine").Mean }
	says := func(what string, want ...string) {
		t.Helper()
		r.await(what, func() bool { return slices.Equal(r.words(n), want) })
	}
	r.await("the verified work", func() bool { return r.arm("mine").Rewards == 1 })
	verified := mean()
	r.must(r.world.ReactToComment(rigRepo, comments[len(comments)-1].ID, writer, "+1"))
	r.must(r.world.CloseIssue(rigRepo, n, writer))
	says("the 👍", "1: thumbs_up 0.8")
	r.await("its mean", func() bool { return mean() < verified })
	liked := mean()
	r.must(r.world.ReopenIssue(rigRepo, n, writer))
	r.settle()
	_, err := r.world.Review(rigRepo, pull, writer, "CHANGES_REQUESTED", "Please add one more line, below the first.")
	r.must(err)
	says("the verdict and the attempt for it", "1: thumbs_up 0.8 changes_requested 0.3", "2:")
	if s := r.ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	r.await("two rewards", func() bool { return r.arm("mine").Rewards == 2 })
	asked := mean()
	if asked >= liked {
		t.Errorf("mean %.3f after a request for changes, %.3f before", asked, liked)
	}
	r.merge(pull)
	says("the merge after one more change", "1: thumbs_up 0.8 changes_requested 0.3 merged 0.8", "2: merged 1.0")
	r.await("its mean", func() bool { return mean() > asked })
	merged := mean()
	r.revert(pull)
	says("the revert", "1: thumbs_up 0.8 changes_requested 0.3", "2: merged 1.0 reverted 0.0")
	r.await("its mean", func() bool { return mean() < min(asked, merged) })
}

// TestRecoveriesAndRetriesAreSeen: in pawl status and on the page.
func TestRecoveriesAndRetriesAreSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t, tested("sh run.sh", "echo $1"))
	r.agent("cat > /dev/null\nif [ $(wc -l < \"$CTRL/calls\") = 1 ]; then echo 'sum() { echo $2; }' > sum.sh; else echo 'sum() { echo $(($1+$2)); }' > sum.sh; fi; echo tried $(wc -l < \"$CTRL/calls\")\n", "")
	r.start()
	n := r.solve("Sums", "Please see to sum.sh.")
	if s := r.ending(n); s.State != "done" || r.calls() != 2 {
		t.Fatalf("%d calls, then %s (%s %q); want two, then done", r.calls(), s.State, s.Rule, s.Reasons)
	}
	r.await("both rows", func() bool { w := r.status().Learning.Weeks; return len(w) == 1 && w[0].Attempts == 2 })
	l := r.status().Learning
	if two := l.Weeks[0].Rungs[1]; two != (learning.Fired{Rung: 2, Times: 1, Recovered: 1}) {
		t.Errorf("rung 2: %+v, want one that recovered", two)
	}
	if len(l.Similarities) != 20 {
		t.Errorf("similarities %v, want one retry", l.Similarities)
	}
}
