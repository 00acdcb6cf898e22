package checkrun

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/goldentest"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// titlesPage returns docs/titles.md: the possible titles of the check runs pawl and pawl/config.
func titlesPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# What the check runs say, and what to do\n\n" +
		"For maintainers who see a check run of Pawl. [Verdicts](verdicts.md) explains the rules. `go test ./internal/checkrun -update` writes this page.\n")
	all := rules(t)
	slices.Sort(all)
	f := noLoop(base())
	f.Attempts, f.Reasons, f.Hint = []Attempt{over(1)}, nil, ""
	b.WriteString("\n## Stopped\n\nThe conclusion is `action_required`, which blocks a merge only if the check is required. The summary says what to change. " +
		"Then use the command in the table's heading. Some titles contain a command's or the agent's words, a count, or a limit's end.\n")
	f.Problems = []thread.Problem{{}}
	states := map[policy.Rule]State{policy.RuleConfigError: ConfigError, policy.RulePawlFailed: Failed}
	for _, group := range []struct {
		help policy.Help
		head string
	}{
		{policy.HelpAny, "A comment, `/pawl retry` or `/pawl escalate`\n\nThe comment says what to do differently."},
		{policy.HelpRetry, "`/pawl retry`\n\n`pawl_failed` has the conclusion `failure`."},
		{policy.HelpResume, "`/pawl resume`"},
		{policy.HelpNone, "No command; see the summary"},
	} {
		fmt.Fprintf(&b, "\n### %s\n\ntitle | rule\n---|---\n", group.head)
		for _, rule := range all {
			if rule.Words().Stops == "" || rule.Words().Help != group.help {
				continue
			}
			f.State, f.Rule = cmp.Or(states[rule], Stopped), rule
			fmt.Fprintf(&b, "`%s` | `%s`\n", Headline(f), rule)
		}
	}
	b.WriteString("\n## Waiting\n\nThe check run is in progress, and Pawl continues by itself. " +
		"`/pawl resume` continues now, except for daily limits and the limits of concurrent attempts. `/pawl stop` ends the run.\n\ntitle | rule\n---|---\n")
	for _, rule := range all {
		if f.State, f.Rule = Waiting, rule; rule.Words().Waits != "" {
			fmt.Fprintf(&b, "`%s` | `%s`\n", Headline(f), rule)
		}
	}
	b.WriteString("\n## Done\n\nThe conclusion is `success` if the work is verified, else `neutral`. MAIN stands for the base branch.\n\ntitle | when\n---|---\n")
	verified := func(v ...policy.Verified) View {
		d := noLoop(base())
		a := over(1)
		a.Verify = v
		d.State, d.Rule, d.Attempts, d.Base = Done, policy.RuleDone, []Attempt{a}, "MAIN"
		return d
	}
	passed := policy.Verified{Command: "go test ./...", Runner: "go", Passed: true}
	none, known, text := passed, passed, passed
	none.NoTests = true
	known.Exit, known.Known = 1, []string{"TestA", "TestB"}
	text.Exit, text.Known = 1, []string{text.Command}
	judged := func(e policy.TestEvidence) View {
		f := verified(passed)
		f.Attempts[0].TestEvidence = &e
		return f
	}
	foreign := verified(passed)
	foreign.Head = "another"
	for _, c := range []struct {
		when string
		f    View
	}{
		{"as in the next row, and a new or changed test fails without the change", judged(policy.TestEvidence{Without: []policy.Verified{{Failing: []policy.Failing{{Name: "TestNew"}}}}})},
		{"all verify commands exited with 0 and tests were counted, also with the base's tests", verified(passed)},
		{"all exited with 0, but a runner ran no test or no runner was recognised", verified(none)},
		{"all failing tests also fail on the base", verified(known)},
		{"a command fails as on the base, without a recognised runner", verified(text)},
		{"the change fails with the base's tests", judged(policy.TestEvidence{AsTheyWere: []policy.Verified{{Command: passed.Command}}})},
		{"fewer of the base's tests run than on the base", judged(policy.TestEvidence{Fewer: 2})},
		{"tests changed, and verification takes longer than 10 minutes", judged(policy.TestEvidence{Skipped: "too long"})},
		{"the repository names no verify commands", verified()},
		{"no attempt pushed the head commit or began from it", foreign},
	} {
		fmt.Fprintf(&b, "`%s` | %s\n", Headline(c.f), c.when)
	}
	b.WriteString("\n## Others\n\ntitle | when | conclusion\n---|---|---\n")
	running, between, nothing, question, plan := noLoop(base()), noLoop(base()), noLoop(base()), noLoop(base()), noLoop(base())
	between.Attempts = []Attempt{over(1)}
	nothing.State, nothing.Attempts = Done, nil
	question.State, question.Purpose = Answered, policy.ToAnswer
	plan.State, plan.Purpose = Planned, policy.ToPlan
	watching, ready, unwatched := between, nothing, nothing
	watching.Watch = Watch{Rounds: 5, Round: 2}
	ready.Watch = Watch{Rounds: 5, Round: 2, Ready: true}
	unwatched.State, unwatched.Run, unwatched.Watch = Running, 0, Watch{Ended: "ada ended the watch", Alone: true}
	for _, c := range []struct {
		when string
		f    View
	}{
		{"an attempt runs, here the first, on the backend `codex`", running},
		{"no attempt runs at the moment", between},
		{"no request is open, and no attempt ran", nothing},
		{"`/pawl ask` was answered, without earlier work; earlier work keeps its check run", question},
		{"`/pawl plan` made a plan, without earlier work", plan},
		{"a [watched](verdicts.md#watching) pull request; in progress during a round", watching},
		{"its required checks are green, and nothing conflicts; a verified head keeps its conclusion", ready},
		{"the watch ended, and nothing else was asked for", unwatched},
	} {
		conclusion := "in progress"
		if c := run(c.f).Conclusion; c != "" {
			conclusion = "`" + c + "`"
		}
		fmt.Fprintf(&b, "`%s` | %s | %s\n", Headline(c.f), c.when, conclusion)
	}
	fmt.Fprintf(&b, "\n## A changed file\n\nThe check run `%s` checks a commit that changes [the repository's file](configuration.md#the-repositorys-file). "+
		"Its annotations mark the errors' lines. `pawl check` finds the errors before a push.\n\ntitle | conclusion\n---|---\n", NameConfig)
	problem := config.Problem{Line: 1}
	for _, c := range []forge.CheckRun{ConfigFile("", true, []config.Problem{problem}), ConfigFile("", true, nil), ConfigFile("", false, nil)} {
		fmt.Fprintf(&b, "`%s` | `%s`\n", c.Title, c.Conclusion)
	}
	return b.String()
}

func TestTitlesPageMatchesTheRules(t *testing.T) {
	goldentest.Compare(t, "../../docs/titles.md", titlesPage(t))
}
