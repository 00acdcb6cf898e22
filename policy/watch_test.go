package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// found returns the facts with a request that only a watch makes.
func found(f Facts) Facts {
	f = f.asked("")
	f.Fresh[0] = Request{Seq: 1, At: noon, Source: FromCheckRun, Watched: true}
	f.Watch.Rounds = 5
	return f
}

// inRound is an attempt in round n of a watch. The red tests failed before it.
func inRound(n int, red ...string) Attempt {
	a := finished()
	a.Decision.Round, a.NewInput, a.ByChecks, a.RedTests = n, true, true, red
	return a
}

func TestRoundsOfAWatchAreLimited(t *testing.T) {
	rounds := func(n int) (all []Attempt) {
		for i := range n {
			all = append(all, inRound(i+1))
		}
		return all
	}
	apart := func(f Facts) Facts {
		for i := range f.Attempts {
			f.Attempts[i].Run = i + 1
		}
		f.Run = len(f.Attempts) + 1
		return f
	}
	begins := func(n int) Decision {
		return Decision{Action: DoAttempt, Rule: RuleFeedback, Round: n, Backend: "codex"}
	}
	stops := func(reasons ...string) Decision {
		return Decision{Action: DoStop, Rule: RuleNotGreen, Reasons: wanted(reasons...)}
	}
	waits := func(until time.Time) Decision { return Decision{Action: DoWait, Rule: RuleWatch, Until: until} }
	moved := inRound(1)
	moved.Outcome, moved.Moved, moved.Detail = Cancelled, true, "the branch moved"
	cut := inRound(1)
	cut.Outcome, cut.Ending = Interrupted, Killed
	cutRed := inRound(1, "A")
	cutRed.Outcome, cutRed.Ending = WasUsageLimit, UsageLimit
	pushed := cutRed
	pushed.Pushed = true
	words := ordered(10)
	failing := func(now ...string) func(*Facts) { return func(f *Facts) { f.RedTests = now } }
	read(t, []sentence{
		{"the first", found(given()), begins(1)},
		{"the fifth", apart(found(given(rounds(4)...))), begins(5)},
		{"the sixth is one too many", apart(found(given(rounds(5)...))), stops("not green after 5 rounds", "5 rounds ran without a user's new words, which is the limit")},
		{"a lower limit", apart(found(given(rounds(2)...))).with(func(f *Facts) { f.Watch.Rounds = 2 }), stops("not green after 2 rounds")},
		{"new words begin the count again", apart(found(given(append(rounds(5), words)...))), begins(1)},
		{"also on the way", apart(found(given(rounds(5)...)).with(func(f *Facts) {
			f.Fresh = append(f.Fresh, Request{Seq: 2, At: noon, Command: "solve", By: "ada", Typed: true})
		})),
			Decision{Action: DoAttempt, Rule: RuleFeedback, Backend: "codex"}},
		{"as does another watch in new words", apart(found(given(rounds(5)...))).with(func(f *Facts) { f.Watch.Asked = noon }), begins(1)},
		{"without a watch other limits hold", apart(found(given(rounds(5)...))).with(func(f *Facts) { f.Watch = Watch{} }), Decision{Action: DoStop, Rule: RuleChecksFailed}},
		{"fewer failing tests", apart(found(given(inRound(1, "A", "B")))).with(failing("B")), begins(2)},
		{"other failing tests", apart(found(given(inRound(1, "A", "B")))).with(failing("B", "C")), begins(2)},
		{"the same", apart(found(given(inRound(1, "A", "B")))).with(failing("A", "B")), stops("not green after 1 round", "round 1 fixed no failing test: A, B")},
		{"and more", apart(found(given(inRound(1, "A")))).with(failing("A", "B")), stops("not green after 1 round")},
		{"no test is named", apart(found(given(inRound(1)))), begins(2)},
		{"only the last round counts", apart(found(given(inRound(1, "A"), inRound(2, "B")))).with(failing("A")), begins(3)},
		{"an hour after a push", found(given()).with(func(f *Facts) { f.Watch.Pushed = noon.Add(-time.Minute) }), waits(noon.Add(59 * time.Minute))},
		{"then it begins", found(given()).with(func(f *Facts) { f.Watch.Pushed = noon.Add(-time.Hour) }), begins(1)},
		{"or if a user spoke", found(given()).with(func(f *Facts) { f.Watch.Pushed, f.Watch.Spoke = noon.Add(-time.Minute), noon }), begins(1)},
		{"checks run", found(given()).with(func(f *Facts) { f.Watch.Settles = noon.Add(time.Minute) }), waits(noon.Add(time.Minute))},
		{"the branch moved", given(moved).with(func(f *Facts) { f.Watch.Rounds = 5 }), Decision{Action: DoDone, Rule: RuleMoved}},
		{"a round that was cut is not a failure", apart(found(given(cutRed))).with(failing("A")), begins(2)},
		{"a round that pushed before it was cut", apart(found(given(pushed))).with(failing("A")), stops("not green after 1 round")},
		{"a push by others may be the cause", apart(found(given(inRound(1, "A")))).with(failing("A")).with(func(f *Facts) { f.Watch.Moved = noon.Add(time.Second) }), begins(2)},
		{"the branch moved after a failed round", given(cut).with(func(f *Facts) { f.Watch.Rounds, f.Watch.Moved = 5, noon.Add(time.Second) }),
			Decision{Action: DoDone, Rule: RuleMoved, Reasons: wanted("the branch moved after attempt 1")}},
		{"and before it ended", given(cut).with(func(f *Facts) { f.Watch.Rounds, f.Watch.Moved = 5, noon.Add(-time.Hour) }), Decision{Action: DoAttempt, Rule: RuleInterrupted, Round: 1, Backend: "codex"}},
		{"the watch ended, and a retry was due", given(cut).with(func(f *Facts) { f.Watch.Ended = "ada ended the watch" }),
			Decision{Action: DoDone, Rule: RuleUnwatched, Reasons: wanted("ada ended the watch", "attempt 1 was the last")}},
		{"the watch ended, and the retry is a user's", given(cut), Decision{Action: DoAttempt, Rule: RuleInterrupted, Backend: "codex"}},
		{"the watch ended, and a user asks", found(given(cut)).with(func(f *Facts) {
			f.Watch = Watch{Ended: "ada ended the watch"}
			f.Fresh = []Request{{Seq: 2, At: noon, Command: "solve", By: "ada", Typed: true}}
		}), Decision{Action: DoAttempt, Rule: RuleFeedback, Backend: "codex"}},
		{"a day's budget holds", found(given()).with(func(f *Facts) { f.Limits.Restarts.MaxPerThreadPerDay = 0 }), Decision{Action: DoStop, Rule: RuleDailyCap}},
	})
}

func TestWhichPullRequestsMayBeWatched(t *testing.T) {
	fine := Watchable{Pull: true, Branch: "feature", Rounds: 5}
	for want, change := range map[string]func(*Watchable){
		"":                                     func(*Watchable) {},
		"this thread has no open pull request": func(w *Watchable) { w.Pull = false },
		"the pull request comes from a fork, and Pawl pushes only to branches of this repository":   func(w *Watchable) { w.Fork = true },
		"the pull request was opened by the bot deps[bot], which is not in policy.allowed_bots":     func(w *Watchable) { w.Bot = "deps[bot]" },
		"the pull request's branch is the default branch, which Pawl never pushes to":               func(w *Watchable) { w.Default = true },
		"pull request #7 has the same branch and is watched; `/pawl unwatch` there ends that watch": func(w *Watchable) { w.Other = 7 },
		"GitHub did not show the pull request: 403 Forbidden":                                       func(w *Watchable) { w.Pull, w.Unread = false, "the pull request: 403 Forbidden" },
		"branch feature is protected": func(w *Watchable) { w.Protected = true },
		".github/pawl.yml has errors": func(w *Watchable) { w.Broken = true },
		"`watch.pulls` in .github/pawl.yml counts the label only when it is added":   func(w *Watchable) { w.LabelIgnored = true },
		"`triggers` in .github/pawl.yml does not list `label`":                       func(w *Watchable) { w.Untriggered = "label" },
		"this server allows no unattended attempts (policy.unattended.max_attempts)": func(w *Watchable) { w.Rounds = 0 },
	} {
		w := fine
		change(&w)
		if got := w.Refusal(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWhatAReadyHeadLacks(t *testing.T) {
	check := func(name string, failed bool) HeadCheck { return HeadCheck{Name: name, Finished: true, Failed: failed} }
	for name, c := range map[string]struct {
		head Head
		want string
	}{
		"nothing without checks":        {Head{}, ""},
		"checks that others have":       {Head{Expects: true}, "no check has reported"},
		"a failing check":               {Head{Checks: []HeadCheck{check("unit", true)}}, "check unit fails"},
		"a check that runs":             {Head{Checks: []HeadCheck{{Name: "unit"}}}, "check unit has not finished"},
		"no optional check":             {Head{Checks: []HeadCheck{check("lint", true), check("unit", false)}, Required: []string{"unit"}}, ""},
		"a required check":              {Head{Checks: []HeadCheck{check("unit", false)}, Required: []string{"unit", "build"}}, "GitHub does not let it merge, and required check build may not have passed"},
		"no status that GitHub knows":   {Head{Checks: []HeadCheck{check("unit", false)}, Required: []string{"unit", "build"}, Mergeable: true}, ""},
		"a status that fails":           {Head{Checks: []HeadCheck{check("unit", false)}, Mergeable: true, Unstable: true}, "GitHub counts a status that has not passed"},
		"an optional status that fails": {Head{Checks: []HeadCheck{check("unit", false)}, Required: []string{"unit"}, Mergeable: true, Unstable: true}, ""},
		"a merge without conflict":      {Head{Conflicts: true}, "it conflicts with the base"},
		"the base":                      {Head{Behind: true}, "it must contain the base's newer commits"},
		"Pawl's own verification":       {Head{Failed: true, Mergeable: true}, "Pawl's verification failed"},
		"more checks than Pawl reads":   {Head{More: 500, Mergeable: true}, "it has more than 500 checks, and Pawl reads no more"},
		"GitHub's computation":          {Head{Unmerged: true}, "GitHub has not computed whether it merges"},
		"what GitHub refused to show":   {Head{Unread: "the checks"}, "GitHub did not show the checks"},
		"an answer that Pawl waits for": {Head{Waits: "the agent asks", Mergeable: true}, "the agent asks"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.head.Lacks().Why); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBlocksPush(t *testing.T) {
	for _, c := range []struct {
		kinds []string
		signs bool
		want  bool
	}{
		{nil, false, false},
		{[]string{"deletion", "non_fast_forward", "commit_message_pattern"}, false, false},
		{[]string{"deletion", "update"}, false, true},
		{[]string{"required_status_checks"}, true, true},
		{[]string{"required_signatures"}, false, true},
		{[]string{"required_signatures"}, true, false},
	} {
		if got := BlocksPush(c.kinds, c.signs); got != c.want {
			t.Errorf("BlocksPush(%q, %t) = %t", c.kinds, c.signs, got)
		}
	}
}

func TestOnlyWhatNoEventTellsIsLookedAtAgain(t *testing.T) {
	passed := []HeadCheck{{Name: "unit", Finished: true}}
	for name, c := range map[string]struct {
		head Head
		want bool
	}{
		"a ready head":       {Head{Checks: passed, Mergeable: true}, false},
		"a running check":    {Head{Checks: []HeadCheck{{Name: "unit"}}}, false},
		"a conflict":         {Head{Checks: passed, Conflicts: true}, false},
		"a required status":  {Head{Checks: passed, Required: []string{"unit", "status"}}, true},
		"an optional status": {Head{Checks: passed, Mergeable: true, Unstable: true}, true},
		"the computation":    {Head{Checks: passed, Unmerged: true}, true},
		"a refusal":          {Head{Unread: "the head"}, true},
	} {
		if got := c.head.Lacks().Silent; got != c.want {
			t.Errorf("%s: silent is %t", name, got)
		}
	}
}

func TestLookAgain(t *testing.T) {
	for name, f := range map[string]func(age time.Duration) time.Time{
		"10m0s 10m0s 20m0s 1h0m0s 1h0m0s never":    func(age time.Duration) time.Time { return LookAgain(noon, noon.Add(age)) },
		"1h0m0s 1h0m0s 1h0m0s 1h0m0s 1h0m0s never": func(age time.Duration) time.Time { return LookAgainUnread(noon, noon.Add(age)) },
		"5s 5m0s 5m0s never never never":           func(age time.Duration) time.Time { return AskAgain(noon, noon.Add(age)) },
	} {
		var got []string
		for _, age := range []time.Duration{0, 10 * time.Minute, 20 * time.Minute, time.Hour, 23 * time.Hour, 24 * time.Hour} {
			again := f(age)
			if again.IsZero() {
				got = append(got, "never")
				continue
			}
			got = append(got, again.Sub(noon.Add(age)).String())
		}
		if got := strings.Join(got, " "); got != name {
			t.Errorf("waits are %s, want %s", got, name)
		}
	}
}
