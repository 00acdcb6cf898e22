package checkrun

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/goldentest"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// answer returns Pawl's answer to a command by eve.
func answer(f View, command, word string) string {
	q := thread.Feedback{Word: word}
	q.Command, q.By.Login = command, "eve"
	return Answer(f, q, "pawl-bot", nil, false)
}

// drawn shows all texts of one thread as Pawl sends them.
func drawn(f View) string {
	var b strings.Builder
	for _, c := range Checks(f) {
		fmt.Fprintf(&b, "======== check run %s (%s)\nstatus: %s %s\ntitle: %s\n", c.Name, c.ExternalID, c.Status, c.Conclusion, c.Title)
		for _, a := range c.Actions {
			fmt.Fprintf(&b, "button: %s (%s) = %s\n", a.Label, a.Description, a.Identifier)
		}
		for _, a := range c.Annotations {
			fmt.Fprintf(&b, "annotation: %s:%d-%d %s: %s\n", a.Path, a.StartLine, a.EndLine, a.Level, a.Message)
		}
		b.WriteString("\n" + c.Summary)
	}
	b.WriteString("======== status comment\n" + Comment(f))
	b.WriteString("======== pull request body\n" + PullBody(f) + "\n")
	b.WriteString("======== /pawl status\n" + answer(f, "status", ""))
	b.WriteString("======== /pawl why\n" + answer(f, "why", ""))
	if a, ok := f.last(); ok && f.Purpose != policy.ToChange && a.Final != "" {
		b.WriteString("======== comment with what the agent says\n" + AnswerComment(a.Attempt))
	}
	return b.String()
}

func TestTextsMatchGoldenFiles(t *testing.T) {
	all := cases()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) { golden(t, name, drawn(all[name])) })
	}
	t.Run("paused", func(t *testing.T) {
		f := View{Thread: "acme/widgets#1"}
		golden(t, "paused", answer(f, "pause", "")+answer(f, "pause", "acme/widgets is paused already, by @ada `x`")+
			answer(f, "unpause", "")+answer(f, feedback.Maintainer, ""))
	})
	t.Run("answers", func(t *testing.T) {
		never := View{Thread: "acme/widgets#1", State: Running, Now: now}
		all := ""
		for _, command := range []string{"status", "why", "stop", "escalate", "update", "go", "ask", feedback.Refused, feedback.NotACommand, feedback.LooksLikeACommand} {
			all += "======== " + command + "\n" + answer(never, command, "")
		}
		for _, word := range []string{"", "gpt-9@x", "other", "mine"} {
			q := thread.Feedback{Command: "use", Word: word}
			all += "======== use " + word + "\n" + Answer(never, q, "pawl-bot", []string{"mine", "main"}, word == "other")
		}
		for _, word := range []string{"", string(policy.SteerFull), string(policy.SteerMissed)} {
			all += "======== steer " + word + "\n" + answer(never, "steer", word)
		}
		golden(t, "answers", all)
	})
	t.Run("help", func(t *testing.T) { golden(t, "help", answer(View{}, "", "slove")+answer(View{}, "", "fix `@x` now")) })
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	goldentest.Compare(t, filepath.Join("testdata", name+".golden.md"), got)
}

// rules returns the constants of the type policy.Rule.
func rules(t *testing.T) (all []policy.Rule) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../policy/rule.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Rule" {
				all = append(all, policy.Rule(strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)))
			}
		}
		return true
	})
	return all
}

// quoting returns a thread for each rule whose title quotes the agent or a command.
func quoting(t *testing.T) map[policy.Rule]View {
	t.Helper()
	quiet := over(1)
	quiet.EndTree, quiet.Pushed, quiet.Commit, quiet.Edits = quiet.StartTree, false, "", policy.Edits{}
	declines, asks := quiet, quiet
	declines.Outcome, declines.Declined, declines.Final = policy.Declined, "total() is to be odd and even at once", "DECLINED: total() is to be odd and even at once\nBoth cannot be."
	asks.Outcome, asks.Question, asks.Final = policy.Asked, "shall totals be rounded half up or half to even?", "The description allows both."
	fifth := over(1).Attempt
	fifth.Decision.Round, fifth.RedTests = 5, []string{"TestTotal"}
	broken := policy.Verified{Command: "npm test", Exit: 127, Output: "sh: 1: npm: not found"}
	all := map[policy.Rule]View{}
	for rule, given := range map[policy.Rule]policy.Facts{
		policy.RuleDeclined: {Attempts: []policy.Attempt{declines.Attempt}},
		policy.RuleQuestion: {Attempts: []policy.Attempt{asks.Attempt}},
		policy.RuleNotGreen: {
			Attempts: []policy.Attempt{fifth},
			Watch:    policy.Watch{Rounds: 5},
			RedTests: fifth.RedTests,
			Fresh:    []policy.Request{{Seq: 1, At: now, Source: policy.FromCheckRun, Watched: true}},
		},
		policy.RuleVerifyBroken: {Unable: policy.Unable([]policy.Verified{broken}), Fresh: []policy.Request{{Seq: 1, At: now}}},
	} {
		given.Now, given.Run, given.Limits, given.Backends = now, 1, policy.Defaults(), []policy.Backend{{Name: "codex", Account: "main"}}
		f := noLoop(base())
		f.Decision = policy.Next(given)
		if f.Rule != rule {
			t.Fatalf("policy says %s (%s), want %s", f.Rule, f.Reasons, rule)
		}
		f.Attempts = nil
		for _, a := range given.Attempts {
			f.Attempts = append(f.Attempts, Attempt{Attempt: a, Duration: time.Minute})
		}
		all[rule] = f
	}
	f := noLoop(base())
	f.Attempts = nil
	f.Decided = *thread.Refuse(policy.RuleSetupFailed, "Correct environment.setup in .github/pawl.yml, or what it needs; /pawl retry runs it again.", "setup failed: npm ci: exit code 1")
	f.Output = "npm error code EUSAGE"
	all[policy.RuleSetupFailed] = f
	return all
}

func TestEveryRuleHasAPage(t *testing.T) {
	quoted := quoting(t)
	var b strings.Builder
	n := 0
	for _, rule := range rules(t) {
		for _, state := range []State{Stopped, Waiting} {
			if words := map[State]string{Stopped: rule.Words().Stops, Waiting: rule.Words().Waits}[state]; words == "" {
				continue
			}
			n++
			f, ok := quoted[rule]
			if !ok {
				f = noLoop(base())
				crashed := over(1)
				crashed.Ending, crashed.Outcome = policy.Crashed, policy.HasCrashed
				f.Attempts, f.Rule = []Attempt{crashed}, rule
				f.Reasons = policy.Because(rule, "the reason that policy gave")
			}
			if f.State = state; state == Waiting {
				f.Until = now.Add(90 * time.Minute)
			}
			head, _, _ := strings.Cut(Comment(f), "<details>")
			c := Checks(f)[0]
			if strings.Contains(c.Title, "the reason that policy gave") {
				t.Errorf("the title of %s contains policy's reason", rule)
			}
			fmt.Fprintf(&b, "======== %s, %s: check run %q (%s %s)\n%s", rule, state, c.Title, c.Status, c.Conclusion, head)
		}
	}
	if n < 50 {
		t.Errorf("only %d pages", n)
	}
	golden(t, "rules", b.String())
}
