package checkrun

import (
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

// titlesPage is docs/titles.md: what the check runs pawl and pawl/config may say, made from the rules and from ConfigFile.
func titlesPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# What the check runs say, and what to do\n\n" +
		"Made from the rules by `go test ./internal/checkrun -update`. [Verdicts](verdicts.md#all-rules) says when each rule speaks.\n")
	helps := map[policy.Help]string{policy.HelpNone: "", policy.HelpResume: "`/pawl resume`", policy.HelpRetry: "`/pawl retry`", policy.HelpAny: "a comment that says what to do differently, `/pawl retry`, `/pawl escalate`"}
	all := rules(t)
	slices.Sort(all)
	f := noLoop(base())
	f.Attempts, f.Reasons, f.Hint = []Attempt{over(1)}, nil, ""
	b.WriteString("\n## Stopped\n\nThe conclusion is `action_required`, which blocks a merge only where the check is required. The second line of the check run says what helps in this case, such as which setting to change; " +
		"what the table names helps once that is done. What a command or an agent said, and how many usage limits came in a row, stands in some titles in place of the words here, and behind them until when a limit lasts.\n\n| title | rule | what helps |\n|---|---|---|\n")
	for _, rule := range all {
		if f.State, f.Rule = Stopped, rule; rule.Words().Stops != "" && rule != policy.RuleConfigError && rule != policy.RulePawlFailed {
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", Headline(f), rule, helps[rule.Words().Help])
		}
	}
	f.Problems = []thread.Problem{{}}
	for _, c := range []struct {
		state State
		rule  policy.Rule
	}{{ConfigError, policy.RuleConfigError}, {Failed, policy.RulePawlFailed}} {
		f.State, f.Rule = c.state, c.rule
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", Headline(f), c.rule, helps[policy.HelpRetry])
	}
	b.WriteString("\nOf the last one the conclusion is `failure`: it says nothing of the work.\n\n## Waiting\n\nThe check run is in progress, and Pawl goes on by itself. A time that is known stands behind the words. `/pawl resume` tries before that, but for what a bound of the day or another attempt holds back; `/pawl stop` ends the run.\n\n| title | rule |\n|---|---|\n")
	for _, rule := range all {
		if f.State, f.Rule = Waiting, rule; rule.Words().Waits != "" {
			fmt.Fprintf(&b, "| %s | `%s` |\n", Headline(f), rule)
		}
	}
	b.WriteString("\n## Done\n\nThe conclusion is `success` where the work is verified, else `neutral`. MAIN stands for the name of the branch that the work began from.\n\n| title | when |\n|---|---|\n")
	verified := func(v ...policy.Verified) View {
		d := noLoop(base())
		a := over(1)
		a.Verify = v
		d.State, d.Rule, d.Attempts, d.Base = Done, policy.RuleDone, []Attempt{a}, "MAIN"
		return d
	}
	passed := policy.Verified{Command: "go test ./...", Runner: "go", Passed: true}
	none, known, text, unread := passed, passed, passed, passed
	none.NoTests = true
	unread.Runner = ""
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
		{"as the next row, and a new or changed test fails without the change", judged(policy.TestEvidence{Without: []policy.Verified{{Failing: []policy.Failing{{Name: "TestNew"}}}}})},
		{"all verify commands exited with 0 and tests were counted, also with the base's tests over the change", verified(passed)},
		{"they exited with 0, and no runner was recognised", verified(unread)},
		{"they exited with 0, and a runner ran no test", verified(none)},
		{"only tests fail that fail on the base, in the same way", verified(known)},
		{"the same of a command whose runner is not recognised, by its whole output", verified(text)},
		{"with the base's tests it fails", judged(policy.TestEvidence{AsTheyWere: []policy.Verified{{Command: passed.Command}}})},
		{"with the base's tests fewer of them run than on the base", judged(policy.TestEvidence{Fewer: 2})},
		{"tests changed, and verification takes longer than 10 minutes", judged(policy.TestEvidence{Skipped: "too long"})},
		{"the repository names no verify commands", verified()},
		{"the head commit is neither one that an attempt pushed nor one that an attempt began from", foreign},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", Headline(c.f), c.when)
	}
	b.WriteString("\n## Others\n\n| title | when | conclusion |\n|---|---|---|\n")
	running, between, nothing, question, plan := noLoop(base()), noLoop(base()), noLoop(base()), noLoop(base()), noLoop(base())
	between.Attempts = []Attempt{over(1)}
	nothing.State, nothing.Attempts = Done, nil
	question.State, question.Purpose = Answered, policy.ToAnswer
	plan.State, plan.Purpose = Planned, policy.ToPlan
	for _, c := range []struct {
		when string
		f    View
	}{
		{"an attempt runs, here the first one on the backend `codex`", running},
		{"nothing runs for the moment", between},
		{"nothing is asked for any more, and no attempt ran", nothing},
		{"`/pawl ask` was answered; the conclusion stays where something kept the work before from passing", question},
		{"`/pawl plan` was; the same", plan},
	} {
		conclusion := "in progress"
		if c := run(c.f).Conclusion; c != "" {
			conclusion = "`" + c + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", Headline(c.f), c.when, conclusion)
	}
	fmt.Fprintf(&b, "\n## A changed file\n\nThe check run `%s` stands on a commit that changes the repository's file; [configuration](configuration.md#the-repositorys-file) says when. "+
		"Its annotations are at the lines of the errors: correct them, as `pawl check` does before a push.\n\n| title | conclusion |\n|---|---|\n", NameConfig)
	problem := config.Problem{Line: 1}
	for _, c := range []forge.CheckRun{ConfigFile("", true, []config.Problem{problem}), ConfigFile("", true, []config.Problem{problem, problem}), ConfigFile("", true, nil), ConfigFile("", false, nil)} {
		fmt.Fprintf(&b, "| %s | `%s` |\n", c.Title, c.Conclusion)
	}
	return b.String()
}

func TestThePageOfTitlesIsMadeFromTheRules(t *testing.T) {
	goldentest.Compare(t, "../../docs/titles.md", titlesPage(t))
}
