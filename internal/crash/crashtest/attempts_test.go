package crashtest

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestUnexplainedAttemptIsReported(t *testing.T) {
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	attempt := func(n int, rule policy.Rule, r policy.Receipt) thread.Attempt {
		at := began.Add(time.Duration(n) * time.Minute)
		return thread.Attempt{Started: thread.Started{N: n, Run: 1, Decision: policy.Decision{Rule: rule}}, At: at, EndedAt: at.Add(10 * time.Second), Receipt: r}
	}
	cut, silent, well := policy.Receipt{Outcome: policy.Interrupted}, policy.Receipt{Ending: policy.NoAnswer}, policy.Receipt{Ending: policy.Completed}
	asked := []thread.Request{{Taken: 1}}
	died := []Death{{At: began.Add(time.Minute + time.Second)}}
	for _, c := range []struct {
		name     string
		attempts []thread.Attempt
		want     int
	}{
		{"all are accounted for", []thread.Attempt{attempt(1, "feedback", cut), attempt(2, "interrupted", silent), attempt(3, "no_answer", well)}, 0},
		{"one remark is taken twice", []thread.Attempt{attempt(1, "feedback", well), attempt(2, "feedback", well)}, 1},
		{"one death interrupts two attempts", []thread.Attempt{attempt(1, "feedback", cut), attempt(2, "interrupted", cut)}, 1},
		{"an attempt that was not interrupted is repeated", []thread.Attempt{attempt(1, "feedback", well), attempt(2, "interrupted", well)}, 1},
		{"an attempt without progress is continued", []thread.Attempt{attempt(1, "feedback", silent), attempt(2, "progress", well)}, 1},
		{"silence is repeated twice", []thread.Attempt{attempt(1, "feedback", silent), attempt(2, "no_answer", silent), attempt(3, "no_answer", well)}, 1},
	} {
		if wrong := AttemptsWrong(thread.State{Attempts: c.attempts, Feedback: asked}, died); len(wrong) != c.want {
			t.Errorf("%s: %q, want %d", c.name, wrong, c.want)
		}
	}
}
