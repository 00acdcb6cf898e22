package policy

import (
	"fmt"
	"slices"
	"time"
)

// HeadroomLimits keep an account below its usage limits. Both are shares of any window that the provider reports.
type HeadroomLimits struct {
	// HoldAt is the used share from which no attempt begins before the reset. 0.95 is our choice: an attempt uses a
	// few percent of a five-hour window.
	HoldAt float64 `yaml:"hold_at"`
	// Reserve is the share below HoldAt that only users' commands may use. 0.10 is our choice.
	Reserve float64 `yaml:"reserve"`
}

const hintHeadroom = "The operator can raise policy.headroom.hold_at; /pawl stop ends the wait."

// heldByHeadroom holds a backend whose account is nearly at a usage limit. Each current window must have room. The
// window that resets last decides.
func (f Facts) heldByHeadroom(b Backend) *hold {
	limits := f.Limits.Headroom
	room := limits.HoldAt
	if !f.byUser() {
		room -= limits.Reserve
	}
	var last *hold
	firm := false
	for _, m := range b.Meters {
		typical := m.Typical(b.Name)
		why := m.lacks(room, typical, f.Now)
		if why == "" {
			continue
		}
		firm = firm || m.lacks(limits.HoldAt, typical, f.Now) != ""
		if last == nil || m.ResetsAt.After(last.until) {
			text := fmt.Sprintf("account %s: %s left until", b.Account, why)
			last = &hold{why: Reason{RuleHeadroom, text, m.ResetsAt}, until: m.ResetsAt, rule: RuleHeadroom}
		}
	}
	if last != nil {
		last.firm = firm
	}
	return last
}

// byUser reports whether a user, not a bot or an event, asked for the attempt.
func (f Facts) byUser() bool {
	typed := slices.ContainsFunc(f.Fresh, func(r Request) bool { return r.Typed && !r.Bot })
	return typed || f.commanded()
}

// lacks says why a window has no room for an attempt, else "". Room is the share that may be used, and typical what an
// attempt uses; 0 if unknown.
func (w Window) lacks(room, typical float64, now time.Time) string {
	if !w.Current(now) {
		return ""
	}
	left := room - w.Used
	switch {
	case left <= 0:
		return fmt.Sprintf("%s of the %s window is used, and %s may be; nothing is", percent(w.Used), w.Name, percent(room))
	case typical > left:
		return fmt.Sprintf("an attempt uses about %s of the %s window; %s is", percent(typical), w.Name, percent(left))
	}
	return ""
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
