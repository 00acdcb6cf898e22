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

// arm returns a backend's line in pawl status.
func (r *rig) arm(name string) learning.ArmView {
	r.T.Helper()
	for _, a := range r.Status().Learning.Arms {
		if a.Backend == name {
			return a
		}
	}
	r.T.Fatalf("pawl status lacks backend %s", name)
	return learning.ArmView{}
}

func (r *rig) merge(pull int) {
	r.T.Helper()
	_, err := r.World.MergePull(r.T.Context(), testrig.Repo, pull, testrig.Writer)
	r.Must(err)
}

// revert opens a pull request as GitHub's Revert button does, and merges it.
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

// words returns users' grades of each attempt in the learning rows: the last grade of each kind.
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
			prefix := strings.TrimPrefix(g.ID, testrig.ThreadName(n)+"/") + ":"
			for _, s := range g.Signals {
				if s.Source == learning.PeopleSource && s.Known {
					prefix += fmt.Sprintf(" %s %.1f", s.Kind, s.Value)
				}
			}
			all = append(all, prefix)
		}
	})
	slices.Sort(all)
	return all
}

// Reactions to the status comment, reviews, a merge, a revert and a close each change the rows and the mean.
func TestUserSignalsChangeTheGrade(t *testing.T) {
	t.Parallel()
	r := newRig(t, verifying())
	r.Agent("cat > /dev/null; echo done $(wc -l < \"$CTRL/calls\") >> a.txt\n", "")
	r.Start()
	before := r.arm("mine").Mean
	n := r.Solve("A word", "Please add the right word to a.txt.")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	if got := fmt.Sprint(r.Status().Learning.FirstTries); got != "[{mine 1 1}]" {
		t.Errorf("first tries %s, want the one that passed", got)
	}
	pull, comments := r.PullOf(n), r.World.Comments(testrig.Repo, n)
	status := comments[len(comments)-1].ID
	mean := func() float64 { return r.arm("mine").Mean }
	expect := func(what string, moved func(float64) bool, want ...string) float64 {
		t.Helper()
		r.Await(what, func() bool { return slices.Equal(r.words(n), want) })
		r.Await("its mean", func() bool { return moved(mean()) })
		return mean()
	}
	below := func(was float64) func(float64) bool { return func(is float64) bool { return is < was } }
	above := func(was float64) func(float64) bool { return func(is float64) bool { return is > was } }
	verified := expect("the verified work", above(before), "1:")
	r.Must(r.World.ReactToComment(testrig.Repo, status, testrig.Reader, "-1")) // without write permission
	r.Must(r.World.ReactToComment(testrig.Repo, status, testrig.Writer, "rocket"))
	r.Must(r.World.ReactToComment(testrig.Repo, status, testrig.Writer, "+1"))
	r.Must(r.World.CloseIssue(testrig.Repo, n, testrig.Writer)) // Pawl reads the reactions now
	liked := expect("the 👍", below(verified), "1: thumbs_up 0.8")
	r.Must(r.World.ReopenIssue(testrig.Repo, n, testrig.Writer))
	r.Settle()
	_, err := r.World.Review(testrig.Repo, pull, testrig.Writer, "CHANGES_REQUESTED", "Please add one more line, below the first.")
	r.Must(err)
	r.Await("the attempt for it", func() bool { return r.Calls() == 2 })
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	asked := expect("the verdict", below(liked), "1: thumbs_up 0.8 changes_requested 0.3", "2:")
	r.merge(pull)
	merged := expect("the merge after one more change", above(asked), "1: thumbs_up 0.8 changes_requested 0.3 merged 0.8", "2: merged 1.0")
	if got := r.arm("mine").Rewards; got != 2 {
		t.Errorf("%d rewards, want one for each attempt, revised", got)
	}
	r.revert(pull)
	expect("the revert", below(min(asked, merged)), "1: thumbs_up 0.8 changes_requested 0.3", "2: merged 1.0 reverted 0.0")
}

// Two streams hold only their first lines, and the judge's quota is exhausted. The judge fails for one stream and
// silently gives the other the lowest grade. The tests of policy/learning cover the effect on the backends.
func TestSilentRewardsIncident(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	judge := filepath.Join(r.Dir, "judge.sh")
	r.Must(os.WriteFile(judge, []byte("#!/bin/sh\nif grep -q second; then echo 'quota exhausted' >&2; exit 1; fi\necho '{\"grade\": 0.02}'\n"), 0o700))
	r.Agent("cat > /dev/null; echo $$ >> a.txt\n"+`echo '{"type":"thread.started","thread_id":"019a1fd2-0000-7451-8d0f-9bf2a7204a41"}'; `+
		`echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}'; echo '{"type":"turn.completed"}'`+"\n", "stream: codex")
	r.Config += fmt.Sprintf("policy: {learning: {judge: [%q]}}\n", judge)
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
	quarantined := map[string]string{}
	for _, j := range r.Status().Learning.Quarantined {
		quarantined[j.ID] = strings.Join(j.Quarantine, "\n")
	}
	for n, judge := range map[int]string{first: "judge gave 0.02", second: "quota exhausted"} {
		for _, reason := range []string{"stub", judge} {
			if why := quarantined[testrig.ThreadName(n)+"/1"]; !strings.Contains(why, reason) {
				t.Errorf("#%d is not quarantined for %q:\n%s", n, reason, why)
			}
		}
	}
	r.merge(r.PullOf(first))
	r.Await("the merge to reward the first", func() bool { a := r.arm("mine"); return a.Rewards == 1 && a.Mean > before })
}

func TestShadowModeReportsItsChoice(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; echo two >> a.txt\n", "")
	r.Config += fmt.Sprintf("  - {name: other, kind: command, argv: [%q]}\npolicy: {learning: {mode: shadow}}\n", filepath.Join(r.Dir, "agent.sh"))
	r.Start()
	n, pull := r.Solved()
	if l := r.Status().Learning; l.Mode != policy.ModeShadow || l.InForce != policy.ModeShadow {
		t.Errorf("mode %s, in force %s; want shadow", l.Mode, l.InForce)
	}
	const want = "mine is the first of the configured order that is free; sampling would take"
	if summary := r.Check(r.Head(pull), "pawl").Summary; !strings.Contains(summary, want) {
		t.Errorf("the check run of #%d does not say %q:\n%s", n, want, summary)
	}
}
