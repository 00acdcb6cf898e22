package arena

import (
	"fmt"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

const (
	chain = "2 generations of Pawl's own work"
	fast  = chain + ", and 5 threads that may be coincidence"
	cap12 = "12 attempts a day in the repository, as configured"
)

// workers are bots that change issues, branches and pull requests.
var workers = []bot{
	{name: "follower", does: "a workflow opens an issue for each pull request of Pawl's",
		acts: func(s *seat) {
			s.each(func(pull int) { s.opens(fmt.Sprintf("Follow up on #%d", pull), "Please add a test.") })
		},
		bound: bound{attempts: 3, threads: 3, why: chain}},
	{name: "spawner", does: "a workflow opens two issues for each pull request of Pawl's",
		acts: func(s *seat) {
			s.each(func(pull int) {
				s.opens("A test", fmt.Sprintf("Please add a test for #%d.", pull))
				s.opens("Docs", fmt.Sprintf("Please describe what #%d changed.", pull))
			})
		},
		bound: bound{attempts: 7, threads: 7, why: chain + ": 1 + 2 + 4"}},
	{name: "commissioner", does: "a workflow opens an issue for each pull request by Pawl, and asks for it in a user's name",
		acts: func(s *seat) {
			s.each(func(pull int) {
				n, err := s.World.OpenIssue(s.repo, writer, fmt.Sprintf("Follow up on #%d", pull), "Please add a test.")
				s.did(err)
				s.comments(n, writer, "/pawl solve")
			})
		},
		bound: bound{attempts: 3, threads: 3, why: chain}},
	{name: "labeller", does: "a script removes the label and adds it again",
		acts: func(s *seat) {
			s.did(s.World.RemoveLabel(s.repo, s.issue, writer, "pawl"))
			s.did(s.World.AddLabel(s.repo, s.issue, writer, "pawl"))
		},
		bound: bound{attempts: 6, why: five}},
	{name: "retoucher", does: "an allowed bot edits its own comment a hundred times",
		acts: func(s *seat) {
			if s.memory["mine"] == 0 {
				s.memory["mine"] = s.comments(s.pull, helper, s.words())
			}
			for i := range 100 {
				s.did(s.World.EditComment(s.repo, s.memory["mine"], helper, sentence(100*s.round+i)))
			}
		},
		bound: bound{attempts: 6, why: five}},
	{name: "doorkeeper", does: "a script closes the issue and opens it again",
		acts: func(s *seat) {
			s.did(s.World.CloseIssue(s.repo, s.issue, writer))
			s.did(s.World.ReopenIssue(s.repo, s.issue, writer))
		},
		bound: bound{attempts: 1, why: none}},
	{name: "mover", does: "users push changes to the base that conflict with Pawl's work, ten at a time",
		files: map[string]string{"shared.txt": "one\n"},
		agent: `grep -v '^[<=>][<=>]' shared.txt > c; mv c shared.txt; head -c 90 /dev/urandom | base64 -w 0 >> shared.txt; echo >> shared.txt; echo "I added a line."`,
		acts: func(s *seat) {
			for range 10 {
				text, err := s.World.Git(s.t.Context(), s.repo, "show", "main:shared.txt")
				s.must(err)
				_, err = s.World.PushCommit(s.t.Context(), s.repo, writer, fakegithub.Commit{Branch: "main", Message: "more", Files: map[string]string{"shared.txt": text + s.words() + "\n"}})
				s.did(err)
			}
		},
		bound: bound{attempts: 6, why: five}},
	{name: "stale", does: "a bot calls the issue stale and closes it; a script opens it and resumes",
		acts: func(s *seat) {
			s.did(s.World.AddLabel(s.repo, s.issue, other, "stale"))
			s.comments(s.issue, other, "This issue is stale, as nothing happened for a while.")
			s.did(s.World.CloseIssue(s.repo, s.issue, other))
			s.did(s.World.RemoveLabel(s.repo, s.issue, other, "stale"))
			s.did(s.World.ReopenIssue(s.repo, s.issue, writer))
			s.comments(s.issue, writer, "/pawl resume")
		},
		bound: bound{attempts: 7, why: again}},
	{name: "pusher", does: "a formatter pushes to Pawl's branch after each push",
		acts: func(s *seat) {
			s.pushes(fakegithub.Commit{Message: "format", Files: map[string]string{"format.txt": s.words() + "\n"}})
		},
		bound: bound{attempts: 1, why: none}},
	{name: "forcer", does: "a script reverts Pawl's work, and an allowed bot asks for it again",
		acts: func(s *seat) {
			s.pushes(fakegithub.Commit{Message: "take it back", From: "main", Files: map[string]string{"back.txt": s.words() + "\n"}})
			s.comments(s.pull, helper, s.words())
		},
		bound: bound{attempts: 1, writes: 40, why: forced}},
	{name: "closer", does: "a script closes the pull request and opens it again",
		acts: func(s *seat) {
			s.did(s.World.ClosePull(s.repo, s.pull, writer))
			s.did(s.World.ReopenIssue(s.repo, s.pull, writer))
		},
		// An attempt has 5 writes. Pawl may also update the comment and the check run at each of the 12 closings and
		// openings.
		bound: bound{attempts: 1, writes: 5 + 12*2, why: none}},
}

// multipliers are bots that start many threads. Only the configured daily limits of a repository stop them.
var multipliers = []bot{
	{name: "fan", does: "a workflow opens issue after issue about the same pull request",
		acts:  func(s *seat) { s.opens(s.words(), fmt.Sprintf("Please see #%d.", s.pull)) },
		bound: bound{attempts: 24, threads: 24, why: cap12}},
	{name: "splitter", does: "a label opens two issues with the same label",
		acts: func(s *seat) {
			opened := 0 // limits the issues per act: doubling them each time would soon be too much for the test
			for _, i := range s.World.Issues(s.repo) {
				if key := fmt.Sprint("seen ", i.Number); i.Pull == nil && s.memory[key] == 0 && opened < 4 {
					s.memory[key] = 1
					opened++
					s.opens(s.words(), "The first half of it.")
					s.opens(s.words(), "The second half of it.")
				}
			}
		},
		bound: bound{attempts: 24, threads: 24, why: cap12}},
	{name: "slowpoke", does: "a workflow opens an issue every hour, and names no other", every: time.Hour,
		acts:  func(s *seat) { s.opens(s.words(), "Please add a test.") },
		bound: bound{attempts: 24, threads: 24, why: cap12}},
	{name: "twin", does: "a script opens pull requests from Pawl's branch, with a command",
		acts: func(s *seat) {
			branch := fmt.Sprint("twin-", s.round)
			_, err := s.World.PushCommit(s.t.Context(), s.repo, writer, fakegithub.Commit{Branch: branch, From: s.head(), Message: "twin", Files: map[string]string{branch: "x\n"}})
			s.did(err)
			_, err = s.World.OpenPull(s.t.Context(), s.repo, writer, fakegithub.PullRequest{Title: s.words(), Body: "/pawl solve", Head: branch})
			s.did(err)
		},
		bound: bound{attempts: 24, threads: 24, why: cap12}},
}

// agents are repositories where the agent itself triggers more work.
var agents = []bot{
	{name: "delegator", does: "the agent opens an issue in a user's name, for Pawl",
		agent: newAgent + `
post issues '{"title": "A part of it", "body": "Please do the next part of it.", "labels": ["pawl"]}'`,
		bound: bound{attempts: 9, threads: 9, why: fast}},
	{name: "poster", does: "the agent comments and commands in a user's name",
		agent: newAgent + `
post "issues/$issue/comments" '{"body": "Status update: I am still looking at this, and I will go on soon."}'
post "issues/$issue/comments" '{"body": "/pawl solve and do not forget the documentation"}'
echo "post issues/$issue/comments Status update: I am still looking at this, and I will go on soon."
echo "post issues/$issue/comments /pawl solve and do not forget the documentation"`,
		bound: bound{attempts: 1, why: "the agent's own words are not a user's"}},
	{name: "idler", does: "the agent changes nothing, and an allowed bot keeps asking",
		agent: "echo 'There is nothing to do.'", acts: func(s *seat) { s.comments(s.issue, helper, "/pawl retry "+s.words()) },
		bound: bound{attempts: 6, why: five}},
	{name: "undoer", does: "the agent makes and reverts one change, and an allowed bot keeps asking",
		agent: `if [ $((n % 2)) = 1 ]; then echo two >> a.txt; else echo one > a.txt; fi; echo "I changed a.txt."`,
		acts:  func(s *seat) { s.comments(s.issue, helper, "/pawl retry "+s.words()) },
		bound: bound{attempts: 6, why: five}},
	{name: "limited", does: "the agent hits its limit each time, and a script resumes",
		files: map[string]string{".github/pawl.yml": "backends: [codex]\n"},
		agent: `echo '{"type":"turn.started"}'; echo '{"type":"turn.failed","error":{"message":"You have hit your usage limit."}}'; exit 1`,
		acts:  func(s *seat) { s.comments(s.issue, writer, "/pawl resume") },
		bound: bound{attempts: 7, why: again}},
}

// spinners are agents that cause many attempts for one request.
var spinners = []bot{
	{name: "doubler", does: "the agent opens two issues in a user's name, for Pawl",
		agent: newAgent + `
for part in first second; do post issues '{"title": "A part of it", "body": "Please do the '$part' part of it.", "labels": ["pawl"]}'; done`,
		bound: bound{attempts: 30, threads: 30, why: fast}},
	{name: "red", does: "no attempt is verified, and an allowed bot keeps asking",
		files: map[string]string{".github/pawl.yml": "backends: [mine]\nverify: [\"echo failed $$; exit 1\"]\n"},
		acts:  func(s *seat) { s.comments(s.issue, helper, "/pawl retry "+s.words()) },
		bound: bound{attempts: 51, why: "the ladder, for each of " + five}},
	{name: "crasher", does: "the agent fails each time after a change",
		agent: `head -c 90 /dev/urandom | base64 > "file$n.txt"; echo "$(head -c 60 /dev/urandom | base64)" >&2; exit 1`,
		bound: bound{attempts: 51, why: "50 restarts since a user asked"}},
}

// each calls do for each of Pawl's pull requests that the bot has not seen before.
func (s *seat) each(do func(pull int)) {
	for _, p := range s.World.Pulls(s.repo) {
		if key := fmt.Sprint("seen ", p.Number); p.Author == "pawl[bot]" && s.memory[key] == 0 {
			s.memory[key] = 1
			do(p.Number)
		}
	}
}

// opens opens an issue with Pawl's label as the user who opened the first issue.
func (s *seat) opens(title, body string) {
	s.t.Helper()
	_, err := s.World.OpenIssue(s.repo, writer, title, body, "pawl")
	s.did(err)
}

// pushes pushes to Pawl's branch.
func (s *seat) pushes(c fakegithub.Commit) {
	s.t.Helper()
	c.Branch = fmt.Sprint("pawl/issue-", s.issue)
	_, err := s.World.PushCommit(s.t.Context(), s.repo, writer, c)
	s.did(err)
}
