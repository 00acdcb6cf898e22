package thread

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/policy"
)

func commanded(command, text string) happened {
	return happened{KindFeedback, Feedback{Source: policy.FromComment, Command: command, Text: text}}
}

func startFor(n, run int, seen int64, p policy.Purpose) happened {
	return happened{KindAttemptStarted, Started{N: n, Run: run, Seen: seen, Backend: "mine", Decision: policy.Decision{Purpose: p}}}
}

func decidedFor(seen int64, a policy.Action, r policy.Rule, p policy.Purpose) happened {
	return happened{KindDecision, Decided{Decision: policy.Decision{Action: a, Rule: r, Purpose: p}, Seen: seen}}
}

func texts(all []Request) (out []string) {
	for _, r := range all {
		out = append(out, r.Command+" "+r.Text)
	}
	return out
}

func TestAttemptTakesRequestsOfItsPurpose(t *testing.T) {
	replied := policy.Receipt{Ending: policy.Completed, Outcome: policy.Answered}
	log := []happened{
		solve("one"), commanded("ask", "where?"), startFor(1, 1, 2, policy.ToAnswer), end(1, replied), // 4 events
	}
	s := fold(t, log...)
	if got := texts(s.Fresh()); !cmp.Equal(got, []string{"solve one"}) {
		t.Errorf("after the answer the requests are %q", got)
	}
	log = append(log, startFor(2, 1, 5, policy.ToChange), end(2, policy.Receipt{Ending: policy.Completed, Outcome: policy.NoChange}),
		decidedFor(6, policy.DoStop, policy.RuleNoChange, policy.ToChange), commanded("ask", "and why?"), startFor(3, 2, 8, policy.ToAnswer), // 9 events
		end(3, policy.Receipt{Ending: policy.Crashed, Outcome: policy.Outcome(policy.Crashed)}), decidedFor(10, policy.DoStop, policy.RuleNoProgress, policy.ToAnswer), commanded("retry", "please")) // 12 events
	s = fold(t, log...)
	if got := texts(s.Work(policy.ToAnswer)); !cmp.Equal(got, []string{"ask and why?", "retry please"}) || s.Fresh()[0].Purpose != policy.ToAnswer {
		t.Errorf("after a failure the question is %q, for %q", got, s.Fresh()[0].Purpose)
	}
	was, ok := s.Before()
	if !ok || was.Run != 1 || was.Decision.Rule != policy.RuleNoChange || len(was.Attempts) != 2 || len(was.Feedback) != 2 {
		t.Errorf("before the questions the thread's decision was %+v (%v)", was.Decision, ok)
	}
	log = append(log, startFor(4, 3, 12, policy.ToAnswer), end(4, replied), decidedFor(14, policy.DoDone, policy.RuleAnswered, policy.ToAnswer), commanded("retry", ""))
	s = fold(t, log...)
	if got := texts(s.Work(policy.ToAnswer)); !cmp.Equal(got, []string{"ask and why?", "retry "}) {
		t.Errorf("the retried answer's requests are %q", got)
	}
	// Unfinished work of a change remains after an answer, but its session does not.
	log = append(log[:1:1], startFor(1, 1, 1, policy.ToChange), end(1, policy.Receipt{Ending: policy.Killed, Outcome: policy.Interrupted}),
		happened{KindUnfinished, Unfinished{N: 1, Commit: "c1", Session: "s1"}}, commanded("ask", "where?"), startFor(2, 1, 5, policy.ToAnswer), end(2, replied))
	if u := fold(t, log...).Unfinished; u == nil || u.Commit != "c1" || u.Session != "" {
		t.Errorf("after the answer the unfinished work is %+v", u)
	}
}
