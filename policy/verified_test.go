package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFailureIsComparedWithTheBase(t *testing.T) {
	old, other := Failing{Name: "TestOld", Text: "sum_test.go:9: is 1"}, Failing{Name: "TestOther", Text: "is 2"}
	build := Failing{Name: "pkg [build failed]", Text: "undefined: x"}
	red := func(all ...Failing) Verified {
		return Verified{Command: "go test", Exit: 1, PassedTests: 3, FailedTests: len(all), Failing: all}
	}
	with := func(v Verified, change func(*Verified)) Verified { change(&v); return v }
	printed := func(output string) Verified { return Verified{Command: "make lint", Exit: 1, Output: output} }
	green := Verified{Command: "go test", Passed: true, PassedTests: 4}
	ptr := func(v Verified) *Verified { return &v }
	moved := Failing{Name: "TestOld", Text: "sum_test.go:12: is 1"}
	others := Failing{Name: "TestOld", Text: "sum_test.go:9: is 7"}
	for _, c := range []struct {
		name        string
		v           Verified
		base, again *Verified
		passed      bool
		known       []string
		failing     []string
		flaky       []string
		fixed       []string
	}{
		{name: "a new failure", v: red(other), base: &green, failing: []string{"TestOther"}},
		{name: "the same test with the same assertion, in another line", v: red(moved), base: ptr(red(old)), passed: true, known: []string{"TestOld"}},
		{name: "the same test with another assertion", v: red(others), base: ptr(red(old)), again: ptr(red(others)), failing: []string{"TestOld"}},
		{name: "an assertion that changes each time", v: red(others), base: ptr(red(old)), again: ptr(red(Failing{Name: "TestOld", Text: "is 8"})), passed: true, known: []string{"TestOld"}},
		{name: "a build whose error changes each time", v: red(Failing{Name: build.Name, Text: "undefined: y"}), base: ptr(red(build, other)),
			again: ptr(red(Failing{Name: build.Name, Text: "undefined: z"})), failing: []string{build.Name}},
		{name: "a known failure next to a new one", v: red(old, other), base: ptr(red(old)), known: []string{"TestOld"}, failing: []string{"TestOther"}},
		{name: "a known failure next to an unnamed one", v: with(red(old), func(v *Verified) { v.FailedTests = 2 }), base: ptr(red(old)), known: []string{"TestOld"}},
		{name: "a command with another exit code", v: with(red(old), func(v *Verified) { v.Exit = 3 }), base: ptr(red(old)), known: []string{"TestOld"}},
		{name: "fewer passing tests", v: with(red(old), func(v *Verified) { v.PassedTests = 2 }), base: ptr(red(old)), known: []string{"TestOld"}},
		{name: "a timeout", v: with(red(old), func(v *Verified) { v.TimedOut = true }), base: ptr(red(old)), known: []string{"TestOld"}},
		{name: "a failure that passes in the second run", v: red(other), base: &green, again: &green, passed: true, flaky: []string{"TestOther"}},
		{name: "one of two failures passes in the second run", v: red(other, old), base: &green, again: ptr(red(old)), failing: []string{"TestOld"}, flaky: []string{"TestOther"}},
		{name: "a second run that names no test", v: red(other), base: &green, again: ptr(with(red(), func(v *Verified) { v.Exit = 2 })), failing: []string{"TestOther"}},
		{name: "a second run that fails elsewhere", v: red(other), base: &green, again: ptr(red(old)), failing: []string{"TestOther"}},
		{name: "a second run that is killed", v: red(other, old), base: &green, again: ptr(with(red(old), func(v *Verified) { v.Exit = 137 })), failing: []string{"TestOther", "TestOld"}},
		{name: "a flaky failure next to a known one", v: with(red(old, other), func(v *Verified) { v.PassedTests = 2 }), base: ptr(red(old)), again: ptr(red(old)),
			passed: true, known: []string{"TestOld"}, flaky: []string{"TestOther"}},
		{name: "a command without test names that passes in the second run", v: red(), base: &green, again: &green, passed: true, flaky: []string{"go test"}},
		{name: "an output of an unknown runner, as on the base", v: printed("lint.ex:4: error after 12ms\n"), base: ptr(printed("lint.ex:9: error after 7ms\n")), passed: true, known: []string{"make lint"}},
		{name: "another output", v: printed("lint.ex:4: another error\n"), base: ptr(printed("lint.ex:4: error\n"))},
		{name: "no output", v: printed(" \n"), base: ptr(printed(" \n"))},
		{name: "the same output with another exit code", v: with(printed("x"), func(v *Verified) { v.Exit = 2 }), base: ptr(printed("x"))},
		{name: "the same output of a runner without test names", v: with(printed("x"), func(v *Verified) { v.Runner = "go" }), base: ptr(printed("x"))},
		{name: "the same output with a timeout", v: with(printed("x"), func(v *Verified) { v.TimedOut = true }), base: ptr(printed("x")), known: []string{"make lint"}},
		{name: "without a base", v: red(old), failing: []string{"TestOld"}},
		{name: "a fixed test", v: red(old), base: ptr(red(old, other)), passed: true, known: []string{"TestOld"}, fixed: []string{"TestOther"}},
		{name: "all tests are fixed", v: green, base: ptr(red(old, other)), passed: true, fixed: []string{"TestOld", "TestOther"}},
		{name: "no fixed test if the build broke", v: red(build), base: ptr(red(old)), failing: []string{build.Name}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.v.Compare(c.base, c.again)
			want := [][]string{c.known, c.failing, c.flaky, c.fixed}
			if d := cmp.Diff(want, [][]string{got.Known, Names(got.Failing), got.Flaky, got.Fixed}); got.Passed != c.passed || d != "" {
				t.Errorf("passed %v, want %v; known, failing, flaky, fixed (-want +got) %s", got.Passed, c.passed, d)
			}
		})
	}
}

func TestBrokenBaseCommandIsNotAFailure(t *testing.T) {
	failed := func(exit int, output string) Verified {
		return Verified{Command: "make test", Exit: exit, Output: output}
	}
	for why, v := range map[string]Verified{
		"exit code 127, a program is missing or may not be run":          failed(127, "sh: 1: pytest: not found"),
		"exit code 126, a program is missing or may not be run":          failed(126, ""),
		"a program is missing: make: *** [Makefile:2: test] Error 127":   failed(2, "make: pytest: No such file or directory\nmake: *** [Makefile:2: test] Error 127\n"),
		"a program is missing: /usr/bin/python3: No module named pytest": failed(1, "/usr/bin/python3: No module named pytest\n"),
		"it does not end in time":                                        {TimedOut: true, Exit: -1},
		"it is killed, as happens when memory runs out":                  failed(137, ""),
		"no test runs": {Passed: true, NoTests: true},
		"the build is broken, pkg [build failed]": {Exit: 1, NoTests: true, Failing: []Failing{{Name: "pkg [build failed]"}}},
		"": failed(1, "the word is missing"),
	} {
		v.Command = "make test"
		if got := v.Unable(); got != why {
			t.Errorf("%q, want %q", got, why)
		}
		got := v.Compare(&v, nil)
		if want := why; !v.Passed && got.Broken != want {
			t.Errorf("broken as before: %q, want %q", got.Broken, want)
		}
		if got = v.Compare(&Verified{Passed: true}, nil); got.Broken != "" {
			t.Errorf("broken by the change: %q", got.Broken)
		}
	}
}

func TestCrashOnTheBaseIsAKnownFailure(t *testing.T) {
	if why := (Verified{Exit: 139, Signal: "SIGSEGV"}).Unable(); why != "" {
		t.Error(why)
	}
	if why := (Verified{Exit: 137, Signal: "SIGKILL"}).Unable(); why == "" {
		t.Error("a command killed for lack of memory counts as working")
	}
}

func TestKilledCommandIsReportedAsTimedOut(t *testing.T) {
	if got := (Verified{TimedOut: true, Exit: 143, Signal: "SIGTERM"}).Result(); got != "did not end in time" {
		t.Errorf("%q", got)
	}
}

func TestBrokenVerifyCommandStops(t *testing.T) {
	f := Facts{Now: noon, Run: 1, Limits: Defaults(), Backends: []Backend{{Name: "a", Account: "a"}}, Unable: "pytest cannot work here: no test runs"}
	for command, want := range map[string]Rule{"": RuleVerifyBroken, "solve": RuleVerifyBroken, "retry": RuleFeedback} {
		f.Fresh = []Request{{Seq: 1, At: noon, Command: command, Source: FromComment}}
		if d := Next(f); d.Rule != want {
			t.Errorf("after %q: %s (%s), want %s", command, d.Rule, d.Reasons, want)
		}
	}
	broken := Verified{Command: "pytest", Exit: 127, Broken: "a program is missing"}
	f.Fresh, f.Attempts = nil, []Attempt{{Run: 1, Backend: "a", Receipt: Receipt{N: 1, Ending: Completed, Outcome: VerifyFailed, StartTree: "1", EndTree: "2", Verify: []Verified{broken}}}}
	if d := Next(f); d.Action != DoStop || d.Rule != RuleVerifyBroken {
		t.Errorf("after an attempt: %s by %s (%s), want a stop by %s", d.Action, d.Rule, d.Reasons, RuleVerifyBroken)
	}
}

func TestFixedTestsAreProgress(t *testing.T) {
	v := func(fixed []string, failing ...string) Attempt {
		return Attempt{Run: 1, Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed, Tests: failing, Verify: []Verified{{Fixed: fixed}}}}
	}
	many := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	for name, c := range map[string]struct {
		a, b    Attempt
		similar bool
	}{
		"the same ten":                 {v(nil, many...), v(nil, many...), true},
		"nine of ten":                  {v(nil, many...), v(nil, many[:9]...), false},
		"the same ten and another one": {v(nil, many...), v(nil, append([]string{"k"}, many...)...), true},
		"the same, and a fixed test":   {v(nil, many...), v([]string{"old"}, many...), false},
	} {
		if got := Stagnation([]Attempt{c.a, c.b}, 1, Defaults()); (got.Similar > 0) != c.similar {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
