package policy

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEditsAreClassified(t *testing.T) {
	for _, tc := range []struct {
		name               string
		operations, repeat int
		want               Class
	}{
		{"just above the mild thresholds", 41, 8, Mild},
		{"just above the moderate thresholds", 65, 16, Moderate},
		{"just above the severe threshold of repeats", 59, 26, Severe},
		{"just above the severe threshold of edits", 105, 10, Severe},
		{"no edits", 0, 0, None},
		{"exactly the mild thresholds", 40, 8, Mild},
		{"one edit too few for a loop", 39, 8, None},
		{"one repeat too few for a loop", 40, 7, None},
		{"many edits spread over many files", 500, 7, None},
		{"few edits, all on one file", 39, 39, None},
		{"exactly moderate by edits", 60, 8, Moderate},
		{"one edit below moderate", 59, 8, Mild},
		{"exactly moderate by repeats", 40, 15, Moderate},
		{"one repeat below moderate", 40, 14, Mild},
		{"exactly severe by edits", 100, 8, Severe},
		{"one edit below severe", 99, 8, Moderate},
		{"exactly severe by repeats", 40, 25, Severe},
		{"one repeat below severe", 40, 24, Moderate},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := Edits{Operations: tc.operations, MaxRepeat: tc.repeat, MaxRepeatPath: "a.go"}
			got := Defaults().Severity.Judge(e)
			if got.Class != tc.want {
				t.Errorf("%d edits, %d on one file: %s, want %s", tc.operations, tc.repeat, got.Class, tc.want)
			}
			if len(got.Reasons) == 0 || strings.Join(got.Reasons, "") == "" {
				t.Error("the verdict has no reasons")
			}
		})
	}
}

func TestEachClassHasItsCooldownAndGrade(t *testing.T) {
	for _, tc := range []struct {
		edits    Edits
		cooldown time.Duration
		grade    float64
	}{
		{Edits{Operations: 41, MaxRepeat: 8}, 90 * time.Minute, 0.08},
		{Edits{Operations: 65, MaxRepeat: 16}, 3 * time.Hour, 0.05},
		{Edits{Operations: 59, MaxRepeat: 26}, 6 * time.Hour, 0.02},
		{Edits{Operations: 1}, 0, 0},
	} {
		v := Defaults().Severity.Judge(tc.edits)
		if v.Cooldown != tc.cooldown || v.Grade != tc.grade {
			t.Errorf("%s: cooldown %s and grade %v, want %s and %v", v.Class, v.Cooldown, v.Grade, tc.cooldown, tc.grade)
		}
	}
}

func TestVerdictNamesFileAndThreshold(t *testing.T) {
	v := Defaults().Severity.Judge(Edits{Operations: 59, MaxRepeat: 26, MaxRepeatPath: "cmd/a.go"})
	got := strings.Join(v.Reasons, "; ")
	want := "59 edits, 26 of them on cmd/a.go; the edits' content is unknown, so only the counts decide; severe from 100 edits or 25 on one file"
	if got != want {
		t.Errorf("reasons %q, want %q", got, want)
	}
	known := Edits{Operations: 40, MaxRepeat: 8, Seen: 40, MaxRepeatSeen: 8, MaxRepeatPath: "a.go", Returned: 20}
	few := known
	few.Operations, few.Seen = 39, 39
	want = "39 edits, at most 8 on one file; in circles: 20 of 39 edits only restored earlier content; a loop starts at 40 edits with 8 on one file"
	if v := Defaults().Severity.Judge(few); v.Class != None || v.Reasons[0] != want {
		t.Errorf("circles below the counts: %s %q, want none and %q", v.Class, v.Reasons, want)
	}
	r := Receipt{Ending: Completed, StartTree: "1", EndTree: "2", Edits: known, Verify: []Verified{{Passed: true, Runner: "go"}}}
	if v := Defaults().Severity.Loop(r); v.Class != None || !strings.Contains(strings.Join(v.Reasons, "; "), "commands passed, so it is not a loop") {
		t.Errorf("verified: %s %q, want none", v.Class, v.Reasons)
	}
	for name, change := range map[string]func(*Receipt){
		"not verified": func(r *Receipt) { r.Verify = nil }, "failing": func(r *Receipt) { r.Verify = []Verified{{}} },
		"no progress": func(r *Receipt) { r.EndTree = "1" }, "killed": func(r *Receipt) { r.Ending = Killed },
	} {
		r := r
		if change(&r); Defaults().Severity.Loop(r).Class != Mild {
			t.Errorf("%s: want a mild loop", name)
		}
	}
	for name, c := range map[string]struct {
		r    Receipt
		want string
	}{
		"files changed":       {Receipt{StartTree: "1", EndTree: "2"}, "reports no edits"},
		"nothing changed":     {Receipt{StartTree: "1", EndTree: "1"}, "0 edits"},
		"the base was merged": {Receipt{StartTree: "1", EndTree: "2", Updated: "3"}, "0 edits"},
		"edits were reported": {Receipt{StartTree: "1", EndTree: "2", Edits: Edits{Operations: 1}}, "1 edit"},
	} {
		if v := Defaults().Severity.Loop(c.r); v.Class != None || !strings.Contains(v.Reasons[0], c.want) {
			t.Errorf("%s: %s %q, want none and %q", name, v.Class, v.Reasons, c.want)
		}
	}
	one := Defaults().Severity.Judge(Edits{Operations: 1, MaxRepeat: 1})
	if want := "1 edit, at most 1 on one file; a loop starts at 40 edits with 8 on one file"; one.Reasons[0] != want {
		t.Errorf("reason %q, want %q", one.Reasons[0], want)
	}
}

func TestLoopsAreListed(t *testing.T) {
	e := Edits{Operations: 12, Again: 3, Returned: 5, MaxRepeatPath: "a.go", Churned: 9, CirclePath: "b.go", SameFailures: 8, SameCalls: 20, SameCall: "ls"}
	want := []Loop{{"edits", 8, "a.go"}, {"churn", 9, "b.go"}, {"failures", 8, ""}, {"repeated_calls", 20, "ls"}}
	if got := Defaults().Severity.Loops(e); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	few := Edits{Operations: 12, Returned: 7, Churned: 7, SameFailures: 7, SameCalls: 7}
	if got := Defaults().Severity.Loops(few); len(got) != 0 || got == nil || few.Repetition() != "" {
		t.Errorf("%v and %q, want an empty list and no text", got, few.Repetition())
	}
	if why := e.Repetition(); why != "the same call had the same result 20 times with no edit in between: ls" {
		t.Error(why)
	}
}

// After the third severe loop in a week, the backend is not used in the repository until a user's command.
func TestThirdSevereLoopInAWeekNeedsAUser(t *testing.T) {
	loop := func(after Cooldown, class Class, days int) Cooldown {
		at := noon.Add(time.Duration(days) * Day)
		return Cooldown{Class: class, At: at, Until: at.Add(6 * time.Hour)}.After(after)
	}
	second := loop(loop(Cooldown{}, Severe, 0), Severe, 3)
	third := loop(second, Severe, 6)
	for what, got := range map[string]Cooldown{
		"two":                              second,
		"the third after more than a week": loop(second, Severe, 8),
		"two and a moderate one":           loop(second, Moderate, 4),
		"the third after a user lifted it": loop(Lifted(noon.Add(5*Day)).After(second), Severe, 6),
	} {
		if got.Class == Runaway {
			t.Errorf("%s: %+v needs a user", what, got)
		}
	}
	for what, got := range map[string]Cooldown{"the third": third, "a mild one after it": loop(third, Mild, 7), "a mild one long after it": loop(third, Mild, 70)} {
		if got.Class != Runaway || !got.Holds(noon.Add(100*Day)) {
			t.Errorf("%s: %+v needs no user", what, got)
		}
	}
	ran := func(f *Facts) {
		f.Backends[0].Cooldown.Class, f.Backends[0].Cooldown.Until = Runaway, noon.Add(-time.Hour)
	}
	gated := given(looping()).with(ran)
	byBot := gated.alone().asked("resume")
	for i := range byBot.Fresh {
		byBot.Fresh[i].Bot = true
	}
	resting := func(f *Facts) { f.Backends[0].Escalated = Cooldown{Class: Severe, Until: noon.Add(time.Hour)} }
	read(t, []sentence{
		{"another backend continues", gated, Decision{Action: DoAttempt, Rule: "edit_loop", Backend: "claude"}},
		{"alone, the run stops although the cooldown has ended", gated.alone(), Decision{Action: DoStop, Rule: "runaway", Reasons: wanted("3 severe edit loops on this repository within a week")}},
		{"a remark does not lift it", gated.alone().asked(""), Decision{Action: DoStop, Rule: "runaway"}},
		{"pinning the backend does not lift it", gated.asked("").with(func(f *Facts) { f.Pinned = "codex" }), Decision{Action: DoStop, Rule: "runaway"}},
		{"a bot's command does not lift it", byBot, Decision{Action: DoStop, Rule: "runaway"}},
		{"a user's command lifts it", gated.alone().asked("resume"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex", Lifts: true, Reasons: wanted("a user's command ends the cooldown of backend codex here")}},
		{"a cooldown of the escalated effort does not affect the usual one", given(looping()).with(resting).asked(""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}
