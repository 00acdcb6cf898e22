package policy

import "testing"

func TestFailingChecksAskNoMoreThanTheLadderAllows(t *testing.T) {
	byChecks := Attempt{Ending: Completed, Outcome: Edited, Progress: true, NewInput: true, ByChecks: true}
	byPeople := byChecks
	byPeople.ByChecks = false
	again := Attempt{Ending: Completed, Outcome: VerifyFailed, Failing: true, Progress: true}
	fails := func(f Facts) Facts {
		f.Fresh = append(f.Fresh, Trigger{Seq: 1, At: noon.Add(-gatherChecks), Source: FromCheckRun})
		return f
	}
	attempt := Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}
	stop := Decision{Action: DoStop, Rule: "checks_failed"}
	read(t, []sentence{
		{"they ask for an attempt", fails(given(byPeople)), attempt},
		{"and for more", fails(given(byPeople, byChecks, byChecks)), attempt},
		{"but not without end", fails(given(byPeople, byChecks, byChecks, byChecks)), stop},
		{"whatever Pawl itself tried between", fails(given(byPeople, byChecks, again, byChecks, again, byChecks)), stop},
		{"a person begins it anew", fails(given(byChecks, byChecks, byChecks, byPeople)), attempt},
		{"and is always heard", fails(given(byChecks, byChecks, byChecks)).asked("solve"), attempt},
	})
}
