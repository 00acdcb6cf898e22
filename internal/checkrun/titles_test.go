package checkrun

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
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
		"what the table names helps once that is done. What a command or an agent said stands in some titles in place of the words here.\n\n| title | rule | what helps |\n|---|---|---|\n")
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
	b.WriteString("\nOf the last one the conclusion is `failure`: it says nothing of the work.\n\n## Waiting\n\nThe check run is in progress, and Pawl goes on by itself. A time that is known stands behind the words. `/pawl resume` tries before that, `/pawl stop` ends the run.\n\n| title | rule |\n|---|---|\n")
	for _, rule := range all {
		if f.State, f.Rule = Waiting, rule; rule.Words().Waits != "" {
			fmt.Fprintf(&b, "| %s | `%s` |\n", Headline(f), rule)
		}
	}
	b.WriteString("\n## Done\n\nThe conclusion is `success` where the work is verified or there is nothing to verify by, else `neutral`.\n\n| title | when |\n|---|---|\n")
	verified := func(v ...policy.Verified) Facts {
		d := noLoop(base())
		a := over(1)
		a.Verify = v
		d.State, d.Rule, d.Attempts = Done, policy.RuleDone, []Attempt{a}
		return d
	}
	passed := policy.Verified{Command: "go test ./...", Passed: true}
	none := passed
	none.NoTests = true
	for _, c := range []struct {
		when string
		f    Facts
	}{
		{"all verify commands exited with 0, and tests ran", verified(passed)},
		{"they exited with 0, and none of their tests ran", verified(none)},
		{"the repository names no verify commands", verified()},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", Headline(c.f), c.when)
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
	const path = "../../docs/titles.md"
	got := titlesPage(t)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s changed (-want +got; -update rewrites it):\n%s", path, diff)
	}
}
