package policy

import (
	"fmt"
	"testing"
)

func TestRungHelpsOnlyAfterAFailure(t *testing.T) {
	failed, done, silent := Receipt{Outcome: VerifyFailed}, Receipt{Outcome: WorkUnverified}, Receipt{Ending: NoAnswer, Outcome: Outcome(NoAnswer)}
	interrupted, limited := Receipt{Outcome: Interrupted}, Receipt{Ending: UsageLimit, Outcome: Outcome(UsageLimit)}
	answered := Receipt{Ending: Completed, Outcome: NoChange}
	all := func(r ...Receipt) []Receipt { return r }
	for _, c := range []struct {
		name   string
		rung   int
		before []Receipt
		now    Receipt
		want   string
	}{
		{"a failure is fixed", RungVerify, all(failed), done, "helped"},
		{"it fails again", RungVerify, all(failed), failed, "did not help"},
		{"interrupted attempts in between do not count", RungVerify, all(failed, interrupted, limited), done, "helped"},
		{"the escalated effort fixes it", RungEffort, all(failed, failed, failed), done, "helped"},
		{"a user escalates finished work", RungEffort, all(failed, done), done, "nothing had failed"},
		{"a user escalates from the beginning", RungEffort, nil, done, "nothing had failed"},
		{"a user escalates, and then it fails", RungEffort, all(done), failed, "nothing had failed"},
		{"a user escalates declined work", RungEffort, all(failed, Receipt{Outcome: Declined}), done, "nothing had failed"},
		{"an answer comes", RungAnswer, all(silent), answered, "helped"},
		{"still no answer", RungAnswer, all(silent), silent, "did not help"},
		{"no rung", 0, all(failed), done, ""},
	} {
		got, ok := (Decision{Rung: c.rung}).OwnRung("high", c.now, c.before)
		if ok != (c.want != "") || ok && (got.Result() != c.want || got.Recovered != (c.want == "helped") || got.Recovered != (got.Helped == 1) || got.Times != 1) {
			t.Errorf("%s: %s, %+v; want %s", c.name, got.Result(), got, c.want)
		}
	}
}

func TestDiscardedAnswerIsInTheReceipt(t *testing.T) {
	cost := 0.25
	silent := Receipt{Outcome: Outcome(NoAnswer), Tokens: Tokens{Input: 100, Output: 20}, CostUSD: &cost}
	got, _ := (Decision{Rung: RungAnswer}).OwnRung("low", Receipt{Ending: Completed, Tokens: Tokens{Input: 7, Output: 1}}, []Receipt{silent})
	if got.WastedTokens != 120 || got.WastedUSD != &cost || got.Tokens != 8 {
		t.Errorf("%+v", got)
	}
	if got, _ := (Decision{Rung: RungVerify}).OwnRung("", Receipt{}, []Receipt{silent}); got.WastedTokens != 0 {
		t.Errorf("work that failed its verification counts as discarded: %+v", got)
	}
}

func TestTestRunsRecoverAfterAFailure(t *testing.T) {
	pass, fail := TestCall{Passed: true, MS: 5}, TestCall{MS: -3}
	for _, c := range []struct {
		calls   []TestCall
		want    string
		trigger string
	}{
		{[]TestCall{pass}, "nothing had failed", "0 of 1 calls"},
		{[]TestCall{pass, pass}, "nothing had failed", "0 of 2 calls"},
		{[]TestCall{fail}, "did not help", "1 of 1 calls"},
		{[]TestCall{fail, pass}, "helped", "1 of 2 calls"},
		{[]TestCall{pass, fail}, "did not help", "1 of 2 calls"},
		{[]TestCall{fail, pass, fail, pass}, "helped", "2 of 4 calls"},
	} {
		r := RanTests(c.calls)
		if r.Result() != c.want || r.Recovered != (c.want == "helped") || r.Times != len(c.calls) || r.MS < 0 || r.Trigger != fmt.Sprintf("the agent ran the tests; %s failed", c.trigger) {
			t.Errorf("%v: %s, %+v", c.calls, r.Result(), r)
		}
	}
	if r := (Rung{Times: 3, Helped: 2}); r.Result() != "helped 2 of 3 times" {
		t.Error(r.Result())
	}
}
