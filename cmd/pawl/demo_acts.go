package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// demoThread is the thread of the demo: its first issue.
var demoThread = thread.ID{Owner: "acme", Name: "widgets", Number: 1}

// solve is the first act: an issue becomes a verified draft pull request.
func (d *show) solve(ctx context.Context) error {
	d.say("Act 1: %s asks for a fix", demoPerson)
	d.scene.set(sceneSolve)
	title, body, file := "The greeting is misspelled", "`sh greet.sh world` prints `Helo, world`. It should print `Hello, world`.", "greet.sh"
	if d.provider != nil {
		title, body, file = "The greeting is missing", "Create hello.txt with a short greeting.", "hello.txt"
	}
	n, err := d.world.OpenIssue(demoRepo, demoPerson, title, body)
	if err != nil {
		return err
	}
	if err := d.comment(ctx, n, "mallory", "/pawl solve"); err != nil {
		return err
	}
	v, err := d.node.solver.View(ctx, demoThread)
	if err != nil {
		return err
	}
	d.holds(len(v.Attempts) == 0, "mallory, who may only read, comments /pawl solve: ignored (%s)", lastReason(v))
	if err := d.comment(ctx, n, demoPerson, "/pawl solve"); err != nil {
		return err
	}
	v, err = d.until(ctx, demoThread, "the solved issue", func(v checkrun.Facts) bool { return len(v.Attempts) > 0 && v.State != checkrun.Running })
	if err != nil {
		return err
	}
	d.holds(v.State == checkrun.Done, "%s, who may write, comments /pawl solve: %s after %d attempt(s)", demoPerson, v.State, len(v.Attempts))
	pulls := d.world.Pulls(demoRepo)
	d.holds(len(pulls) == 1 && pulls[0].Pull.Draft && pulls[0].Pull.Head == "pawl/issue-1", "one draft pull request from pawl/issue-1")
	d.holds(d.statusComments(n) == 1, "one status comment on the issue")
	d.holds(d.reacted(n), "the command was acknowledged with a 👀 reaction")
	text, err := d.world.File(ctx, demoRepo, "pawl/issue-1", file)
	d.holds(err == nil && (d.provider != nil && text != "" || strings.Contains(text, "Hello")), "the fix stands on the branch")
	for _, c := range d.checks() {
		d.holds(c.Status == "completed" && c.Conclusion == "success", "check run %-16s %s: %s", c.Name, c.Conclusion, c.Title)
	}
	d.holds(len(d.checks()) == 3, "three check runs on the head commit")
	return nil
}

// comment writes a comment and waits until everything that it leads to is done.
func (d *show) comment(ctx context.Context, number int, by, body string) error {
	if _, err := d.world.Comment(demoRepo, number, by, body); err != nil {
		return err
	}
	return d.settled(ctx)
}

// demoRounds is how often the incident turns. The real one turned 1,249 times.
const demoRounds = 12

// incident is the second act: the agent hits its usage limit again and again
// while the description's time stamp moves and comments appear under the
// person's own login.
func (d *show) incident(ctx context.Context) error {
	pulls := d.world.Pulls(demoRepo)
	if len(pulls) != 1 {
		return fmt.Errorf("the incident needs the pull request of act 1")
	}
	pr := pulls[0].Number
	before, err := d.node.solver.View(ctx, demoThread)
	if err != nil {
		return err
	}
	d.say("\nAct 2: the incident, %d rounds", demoRounds)
	d.scene.set(sceneLimit)
	for round := range demoRounds {
		if err := d.round(ctx, pr, round); err != nil {
			return err
		}
	}
	v, err := d.node.solver.View(ctx, demoThread)
	if err != nil {
		return err
	}
	calls := len(v.Attempts) - len(before.Attempts)
	d.holds(calls == 3, "%d rounds of events led to %d calls of the agent, then the breaker opened", demoRounds, calls)
	d.holds(v.State == checkrun.Stopped && v.Rule == policy.RuleLimitBreaker, "the run is %s (%s): %s", v.State, v.Rule, v.Reasons)
	d.holds(len(d.world.Pulls(demoRepo)) == 1 && d.statusComments(1) == 1, "still one pull request and one status comment")
	if err := d.comment(ctx, pr, demoPerson, "/pawl why"); err != nil {
		return err
	}
	comments := d.world.Comments(demoRepo, pr)
	d.holds(len(comments) > 0 && strings.Contains(comments[len(comments)-1].Body, "transcript"),
		"/pawl why tells that the remarks under %s's login stand in the agent's transcript", demoPerson)
	return nil
}

// round is one turn of the incident: a remark by the person in every third, and
// in each the agent's own comment under the person's login, a touched time
// stamp and a re-saved description.
func (d *show) round(ctx context.Context, pr, round int) error {
	if round%3 == 0 {
		if err := d.comment(ctx, pr, demoPerson, fmt.Sprintf("Please also greet in capital letters (round %d).", round+1)); err != nil {
			return err
		}
	}
	if _, err := d.world.Comment(demoRepo, pr, demoPerson, demoRemark); err != nil {
		return err
	}
	if err := errors.Join(d.world.TouchIssue(demoRepo, pr, demoPerson), d.world.EditBody(demoRepo, pr, demoPerson, d.world.Pulls(demoRepo)[0].Body)); err != nil {
		return err
	}
	return d.settled(ctx)
}

// summaries prints what a maintainer sees.
func (d *show) summaries() {
	d.say("\nWhat the maintainer sees on the pull request:")
	for _, c := range d.checks() {
		d.say("\n── %s · %s %s ── %s", c.Name, c.Status, c.Conclusion, c.Title)
		body, _, _ := strings.Cut(c.Summary, "<details>")
		d.say("%s", strings.TrimSpace(body))
	}
}

// checks are Pawl's check runs on the head of the pull request.
func (d *show) checks() []fakegithub.CheckRun {
	pulls := d.world.Pulls(demoRepo)
	if len(pulls) == 0 {
		return nil
	}
	var own []fakegithub.CheckRun
	for _, c := range d.world.CheckRuns(demoRepo) {
		if c.SHA == pulls[0].Pull.HeadSHA {
			own = append(own, c)
		}
	}
	return own
}

func (d *show) statusComments(number int) int {
	n := 0
	for _, c := range d.world.Comments(demoRepo, number) {
		if strings.Contains(c.Body, checkrun.StatusMarker(demoThread.String())) {
			n++
		}
	}
	return n
}

func (d *show) reacted(number int) bool {
	return slices.ContainsFunc(d.world.Comments(demoRepo, number), func(c fakegithub.Comment) bool { return c.Author == demoPerson && len(c.Reactions) > 0 })
}

func lastReason(v checkrun.Facts) string {
	if len(v.Feedback) == 0 {
		return "nothing was judged"
	}
	return v.Feedback[len(v.Feedback)-1].Reason
}

// sceneVariable tells the scripted agent what to play. The demo gives it through
// the list of variables that a backend may have, as an operator would.
const sceneVariable = "DEMO_SCENE"

// The scenes.
const (
	sceneSolve = "solve"
	sceneLimit = "limit"
)

// demoRemark is what the agent of the incident posts through a person's token.
const demoRemark = "Status update: I am still looking at the greeting, and I will continue as soon as I can."

// scene is the environment that backends see in the demo. The zero value is none.
type scene struct{ name atomic.Value }

func (s *scene) set(name string) { s.name.Store(name) }

func (s *scene) lookup(name string) (string, bool) {
	if name != sceneVariable {
		return os.LookupEnv(name)
	}
	played, ok := s.name.Load().(string)
	return played, ok
}

// demoAgent is the scripted agent, for sh: it speaks the JSON stream of codex 0.169
// and really edits the files of its working directory.
const demoAgent = `cat >/dev/null
echo '{"type":"thread.started","thread_id":"00000000-0000-7000-8000-000000000001"}'
echo '{"type":"turn.started"}'
if [ "$` + sceneVariable + `" = ` + sceneLimit + ` ]; then
	at=$(date -u -d "@$(($(date +%s) + 7200))" '+%I:%M %p')
	limit="You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at ${at#0}."
	cat <<END
{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"gh pr comment --body \"` + demoRemark + `\"","aggregated_output":"","exit_code":0,"status":"completed"}}
{"type":"error","message":"$limit"}
{"type":"turn.failed","error":{"message":"$limit"}}
END
	exit 1
fi
sed 's/Helo/Hello/g' greet.sh >greet.new && mv greet.new greet.sh || exit 1
cat <<END
{"type":"item.completed","item":{"id":"item_1","type":"file_change","changes":[{"path":"$PWD/greet.sh","kind":"update"}],"status":"completed"}}
{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"The greeting is spelled correctly now; test.sh passes."}}
{"type":"turn.completed","usage":{"input_tokens":2400,"cached_input_tokens":400,"output_tokens":68}}
END
`
