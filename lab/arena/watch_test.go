package arena

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

const rounds = "1 + 5 rounds of a watch"

// watchers are bots on pull requests that Pawl watches.
var watchers = []bot{
	{name: "watched-breaker", does: "a check fails again after each push to a watched pull request",
		acts: func(s *seat) {
			s.watches(s.pull)
			s.fails("ci", "build", fmt.Sprintf("The build failed: %s.go:3: undefined. %s", s.word(), s.words()))
		},
		bound: bound{attempts: 6, why: rounds}},
	{name: "watched-reviewer", does: "a reviewer of a watched pull request always requests other changes",
		acts: func(s *seat) {
			s.watches(s.pull)
			s.reports("ci", fakegithub.CheckResult{Name: "build", Conclusion: "success"})
			s.reviews(writer, "CHANGES_REQUESTED", s.words()+" "+sentence(s.round+40))
		},
		bound: bound{attempts: 6, why: rounds}},
	{name: "watched-coin", does: "a job of a watched pull request fails every second time",
		acts: func(s *seat) {
			s.watches(s.pull)
			at := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
			job := &fakegithub.Job{
				Log:   "2026-03-04T05:06:01.0000000Z --- FAIL: TestNow (0.00s)\r\n",
				Steps: []fakegithub.JobStep{{Name: "Test", Conclusion: "failure", Started: at, Completed: at.Add(9 * time.Second)}},
			}
			if s.round%2 == 1 {
				s.reports("github-actions", fakegithub.CheckResult{Name: "unit", Conclusion: "failure", Job: job})
			}
			if s.round == 1 {
				s.reach(s.ahead.now().Add(15 * time.Second))
				s.await("the job to run again", s.reruns)
			}
			s.reports("github-actions", fakegithub.CheckResult{Name: "unit", Conclusion: "success"})
		},
		bound: bound{attempts: 1, why: "a job that passes when it runs again starts no attempt"}},
	{name: "watched-base", does: "users push changes to the base that conflict with two watched pull requests",
		files: map[string]string{"shared.txt": "one\n"},
		agent: `for f in shared.txt other.txt; do [ -f $f ] && grep -v '^[<=>][<=>]' $f > c && mv c $f; done
head -c 90 /dev/urandom | base64 -w 0 >> shared.txt; echo >> shared.txt; echo "I added a line."`,
		acts: func(s *seat) {
			s.watches(s.pull)
			s.watches(s.second())
			text, err := s.World.Git(s.t.Context(), s.repo, "show", "main:shared.txt")
			s.must(err)
			files := map[string]string{"shared.txt": text + s.words() + "\n", "other.txt": s.words() + "\n"}
			_, err = s.World.PushCommit(s.t.Context(), s.repo, writer, fakegithub.Commit{Branch: "main", Message: "more", Files: files})
			s.did(err)
		},
		bound: bound{attempts: 11, threads: 2, why: rounds + ", and 5 rounds of another"}},
}

// watches asks Pawl to watch a pull request, once.
func (s *seat) watches(pull int) {
	key := fmt.Sprint("watch ", pull)
	if s.memory[key] == 0 {
		s.memory[key] = s.comments(pull, writer, "/pawl watch")
	}
}

// reruns reports whether a job runs again.
func (s *seat) reruns() bool {
	return slices.ContainsFunc(s.World.CheckRuns(s.repo), func(c fakegithub.CheckRun) bool {
		return c.App == "github-actions" && c.Status != "completed"
	})
}

// second returns the number of a user's pull request, which it opens once.
func (s *seat) second() int {
	if s.memory["second"] == 0 {
		work := fakegithub.Commit{Branch: "second", Message: "mine", Files: map[string]string{"other.txt": "mine\n"}}
		_, err := s.World.PushCommit(s.t.Context(), s.repo, writer, work)
		s.must(err)
		n, err := s.World.OpenPull(s.t.Context(), s.repo, writer, fakegithub.PullRequest{Title: "Mine", Head: "second"})
		s.must(err)
		s.memory["second"] = int64(n)
	}
	return int(s.memory["second"])
}

// word returns a different word for each act.
func (s *seat) word() string {
	list := strings.Fields("parser wheel lexer catch spring queue index license header socket ledger canvas")
	return list[s.round%len(list)]
}
