package policy

import (
	"fmt"
	"time"
)

// noon is the time of the decisions in the tests.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// given returns the facts of a run at noon. Each of its attempts took a minute, and the last one has just ended.
// Attempts without a backend ran on codex. There are two backends with one account each; codex is the first.
func given(attempts ...Attempt) Facts {
	f := Facts{Now: noon, Limits: Defaults(), Run: 1, Backends: []Backend{
		{Name: "codex", Account: "main", CanEscalate: true},
		{Name: "claude", Account: "spare"},
	}}
	for i, a := range attempts {
		a.N, a.Run = i+1, 1
		a.EndedAt = noon.Add(time.Duration(i-len(attempts)+1) * time.Minute)
		a.StartedAt = a.EndedAt.Add(-time.Minute)
		if a.Backend == "" {
			a.Backend, a.Account = "codex", "main"
		}
		if a.Outcome == "" {
			a.Outcome = a.Came(a.Decision.Purpose, f.Limits.Severity)
		}
		f.Attempts = append(f.Attempts, a.apart())
	}
	return f
}

// moved is the tree of an attempt that changed something. apart gives each attempt a different tree.
const moved = "after"

func (a Attempt) apart() Attempt {
	if a.EndTree == moved {
		a.EndTree = fmt.Sprintf("after %d", a.N)
	}
	return a
}

// with returns the facts after a change.
func (f Facts) with(change func(*Facts)) Facts {
	f.Backends = append([]Backend(nil), f.Backends...)
	change(&f)
	return f
}

// asked returns the facts with fresh feedback: one request for each command. An empty command is a comment without one.
func (f Facts) asked(commands ...string) Facts {
	f.Fresh = nil
	for i, c := range commands {
		f.Fresh = append(f.Fresh, Request{Seq: int64(i + 1), At: noon, Command: c, By: "alice", Typed: true})
	}
	return f
}

// untyped returns the facts with feedback that no user typed.
func untyped(f Facts) Facts {
	for i := range f.Fresh {
		f.Fresh[i].Typed = false
	}
	return f
}

// alone returns the facts with only the first backend.
func (f Facts) alone() Facts {
	f.Backends = append([]Backend(nil), f.Backends[:1]...)
	return f
}

// limited returns the facts with a number of usage limits in a row on the first backend's account.
func (f Facts) limited(consecutive int, reset time.Time) Facts {
	return f.with(func(f *Facts) {
		f.Backends[0].Breaker = Breaker{Kind: UsageLimit, Consecutive: consecutive, ResetsAt: reset, At: noon}
	})
}

// continuing returns the facts with auto_continue_on_limit_reset.
func (f Facts) continuing() Facts {
	f.Limits.UsageLimit.AutoContinue = true
	return f
}

// The attempts that most tests need.
func finished() Attempt {
	return Attempt{Receipt: Receipt{Ending: Completed, Outcome: WorkUnverified, StartTree: "before", EndTree: moved}}
}
func fruitless() Attempt { return Attempt{Receipt: Receipt{Ending: Crashed, Detail: "exit code 1"}} }
func timedOut() Attempt {
	return Attempt{Receipt: Receipt{Ending: TimedOut, StartTree: "before", EndTree: moved}}
}
func unverified() Attempt {
	return Attempt{Receipt: Receipt{Ending: Completed, Outcome: VerifyFailed, Verify: []Verified{{}}, StartTree: "before", EndTree: moved}}
}
func atLimit(reset time.Time) Attempt {
	return Attempt{Receipt: Receipt{Ending: UsageLimit, Limit: &Limit{ResetsAt: reset}, Detail: "You've hit your usage limit."}}
}
func looping() Attempt {
	return Attempt{Receipt: Receipt{Ending: TimedOut, Outcome: EditLoop, StartTree: "before", EndTree: moved,
		Edits: Edits{Operations: 59, Files: 3, MaxRepeat: 26, MaxRepeatPath: "a.go"}}}
}
func interruptedAttempt() Attempt {
	return Attempt{Receipt: Receipt{Ending: Killed, Outcome: Interrupted, Detail: "the node that ran it stopped"}}
}
