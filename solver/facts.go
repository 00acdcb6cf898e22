package solver

import (
	"slices"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// Running returns the attempt that has begun and not ended.
func (s State) Running() (Attempt, bool) {
	if n := len(s.Attempts); n > 0 && s.Attempts[n-1].EndedAt.IsZero() {
		return s.Attempts[n-1], true
	}
	return Attempt{}, false
}

// Pending is feedback that no attempt has taken.
func (s State) Pending() []Remark {
	var out []Remark
	for _, f := range s.Feedback {
		if f.Taken == 0 && f.Withdrawn == "" {
			out = append(out, f)
		}
	}
	return out
}

// Fresh is pending feedback that came after the run's last ending decision.
func (s State) Fresh() []Remark {
	var out []Remark
	for _, f := range s.Pending() {
		if s.Decision == nil || f.Seq > s.Decision.Seen || !ending(s.Decision.Action) {
			out = append(out, f)
		}
	}
	return out
}

func ending(a policy.Action) bool {
	return a == policy.DoStop || a == policy.DoDone || a == policy.DoAsk
}

// Open reports whether there is something to decide.
func (s State) Open() bool { return s.Run > 0 && !s.Ended }

// Tracked reports whether Pawl has worked, or is asked to work, on the thread.
func (s State) Tracked() bool { return s.Run > 0 }

// Facts are what policy decides by, as far as the log knows; the caller adds
// the limits, the backends and whether there is something to verify with.
func (s State) Facts(now time.Time) policy.Facts {
	f := policy.Facts{Now: now, Closed: s.Closed, Stopped: s.Stopped, Run: s.Run, Pinned: s.Pinned}
	for _, a := range s.Attempts {
		if !a.EndedAt.IsZero() {
			f.Attempts = append(f.Attempts, s.fact(a))
		}
	}
	for _, r := range s.Fresh() {
		f.Fresh = append(f.Fresh, policy.Trigger{Seq: r.Seq, At: r.At, Command: r.Command, By: r.By.Login, Source: r.Source})
	}
	return f
}

// fact is one attempt as policy sees it.
func (s State) fact(a Attempt) policy.Attempt {
	r := a.Receipt
	session, cost := r.Session, 0.0
	if a.Kind == config.Command || r.Merged {
		// No command is told to continue one, and none has seen what others did.
		session = ""
	}
	if r.CostUSD != nil {
		cost = *r.CostUSD
	}
	return policy.Attempt{
		N: a.N, Run: a.Run, Backend: a.Backend, Account: a.Account,
		Rung: a.Decision.Rung, Escalated: a.Decision.Escalated, Different: a.Decision.Different,
		StartedAt: a.At, EndedAt: a.EndedAt,
		Ending: r.Ending, ResetsAt: r.Limit.usable(), Outcome: r.Outcome, Progress: policy.Progress(r.StartTree, r.EndTree),
		Failing: slices.ContainsFunc(r.Verify, func(v Verified) bool { return !v.Passed }),
		Edits:   r.Edits, Detail: r.Detail, Evidence: r.Evidence, Change: r.Change,
		Tests: r.Tests, EndTree: r.EndTree, Kept: r.Kept,
		NewInput: slices.ContainsFunc(s.Feedback, func(f Remark) bool { return f.Taken == a.N && f.Withdrawn == "" }),
		ByChecks: s.byChecks(a.N),
		Gateway:  r.Gateway, Session: session, Start: r.Base, Commit: r.Commit, Context: r.Context,
		Tokens: r.Tokens.Input + r.Tokens.Output, CostUSD: cost, Budget: r.Budget,
	}
}

// Wrote reports whether the log holds an id of that kind (comment, pull) as
// something that Pawl wrote.
func (s State) Wrote(id int64) bool {
	for _, a := range s.Acts {
		if a.ID == id && id != 0 {
			return true
		}
	}
	return false
}

// byChecks reports whether an attempt took feedback, and all of it came from the
// checks of others.
func (s State) byChecks(n int) bool {
	some := false
	for _, f := range s.Feedback {
		if f.Taken != n || f.Withdrawn != "" {
			continue
		}
		if f.Source != policy.FromCheckRun {
			return false
		}
		some = true
	}
	return some
}
