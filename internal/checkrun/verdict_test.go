package checkrun

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

func TestConclusionsFollowTheContract(t *testing.T) {
	set := func(change func(*View)) View {
		f := noLoop(base())
		f.Attempts = []Attempt{over(1)}
		change(&f)
		return f
	}
	state := func(s State) View { return set(func(f *View) { f.State = s }) }
	class := func(c policy.Class) View { return set(func(f *View) { f.Severity.Class = c }) }
	none := func(s State) View { return set(func(f *View) { f.Attempts, f.State = nil, s }) }
	for name, c := range map[string]struct {
		facts View
		check int
		want  string
	}{
		"running is in progress":                 {state(Running), 0, "in_progress"},
		"waiting is in progress":                 {state(Waiting), 0, "in_progress"},
		"verified work succeeds":                 {cases()["done"], 0, "completed success"},
		"without a verify command it is neutral": {state(Done), 0, "completed neutral"},
		"failures as on the base are neutral":    {cases()["done-as-before"], 0, "completed neutral"},
		"no test ran, which is neutral": {set(func(f *View) {
			f.State, f.Attempts[0].Verify = Done, []policy.Verified{{Command: "go test ./...", Runner: "go", Passed: true, NoTests: true}}
		}), 0, "completed neutral"},
		"a stop keeps the verified work's conclusion": {cases()["declined-on-verified-work"], 0, "completed success"},
		"stopped asks":                             {cases()["verify-failed"], 0, "completed action_required"},
		"Pawl's own failure fails":                 {state(Failed), 0, "completed failure"},
		"a configuration error asks":               {state(ConfigError), 0, "completed action_required"},
		"no loop succeeds":                         {class("none"), 1, "completed success"},
		"a repeated call is neutral":               {cases()["done-repeated-call"], 1, "completed neutral"},
		"a mild loop is neutral":                   {class("mild"), 1, "completed neutral"},
		"a moderate loop fails":                    {class("moderate"), 1, "completed failure"},
		"a severe loop fails":                      {class("severe"), 1, "completed failure"},
		"an unknown class claims nothing":          {class(""), 1, "in_progress"},
		"severity waits for an attempt":            {none(Running), 1, "in_progress"},
		"severity is queued in a wait":             {none(Waiting), 1, "queued"},
		"severity without an attempt is neutral":   {none(Stopped), 1, "completed neutral"},
		"no stagnation succeeds":                   {state(Done), 2, "completed success"},
		"one similar attempt is neutral":           {set(func(f *View) { f.Stagnation.Similar = 1 }), 2, "completed neutral"},
		"escalated stagnation asks":                {set(func(f *View) { f.Stagnation.Similar, f.Stagnation.Escalated = 2, true }), 2, "completed action_required"},
		"stagnation without an attempt is neutral": {none(Failed), 2, "completed neutral"},
		"stagnation waits for an attempt too":      {none(Running), 2, "in_progress"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Checks(c.facts)[c.check]
			if s := strings.TrimSpace(got.Status + " " + got.Conclusion); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
}

func TestButtonsFitTheState(t *testing.T) {
	shown := map[string]bool{}
	for name, want := range map[string]string{
		"first-attempt-running": "stop", "severe": "resume stop", "day-spent": "resume raise stop", "done": "retry", "done-as-before": "retry", "breaker-open": "resume", "restart-limit": "",
		"own-failure": "retry", "config-error": "retry", "verify-failed": "retry escalate", "cancelled": "resume",
	} {
		var got []string
		for _, a := range Checks(cases()[name])[0].Actions {
			got = append(got, a.Identifier)
			shown[a.Identifier] = true
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for _, c := range policy.Commands {
		if c.Button != "" && !shown[c.Name] {
			t.Errorf("no check run here shows the button of /pawl %s of policy/commands.go; see buttons in internal/checkrun/checkrun.go", c.Name)
		}
	}
}

func TestAnnotationsAreLimitedToFifty(t *testing.T) {
	f := cases()["config-error"]
	f.Problems = slices.Repeat(f.Problems, 40)
	c := Checks(f)[0]
	if len(c.Annotations) != 50 || !strings.Contains(c.Summary, "and 70 more problems") {
		t.Errorf("%d annotations; summary:\n%s", len(c.Annotations), c.Summary)
	}
}

func TestCooldownNamesBackendRepositoryAndEnd(t *testing.T) {
	want := "codex on acme/widgets: severe edit loop, 5h 12m left (until 14:03 UTC)"
	if got := Checks(cases()["severe"])[1].Summary; !strings.HasPrefix(got, want) {
		t.Errorf("got %q", got[:120])
	}
}

func TestWaitWithoutKnownEndSaysWhatItWaitsFor(t *testing.T) {
	for rule, want := range map[policy.Rule]string{
		policy.RuleProbe:   "Waiting: another attempt that tries the limited account first",
		policy.RuleCrowded: "Waiting: a free slot for another attempt",
		"of_tomorrow":      "Waiting: of tomorrow",
	} {
		f := limited(1)
		f.State, f.Rule = Waiting, rule
		if got := Checks(f)[0].Title; got != want {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
}
