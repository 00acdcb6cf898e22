package policy

import (
	"fmt"
	"time"
)

// HeadroomLimits keep an account away from its usage limits. Both are shares of any window that the provider reports.
type HeadroomLimits struct {
	// HoldAt is the used share from which no attempt begins before the reset. 0.95 is our choice: an attempt uses a
	// few percent of a five-hour window.
	HoldAt float64 `yaml:"hold_at"`
	// Reserve is the share below HoldAt that only users' commands may use. 0.10 is our choice.
	Reserve float64 `yaml:"reserve"`
}

// heldByHeadroom holds a backend whose account is nearly at a usage limit. Every current window must have room; a
// reading whose reset is unknown or over says nothing.
func (f Facts) heldByHeadroom(b Backend) *hold {
	room := f.Limits.Headroom.HoldAt
	if !f.commanded() {
		room -= f.Limits.Headroom.Reserve
	}
	var last *hold
	for _, w := range b.Windows {
		why := w.lacks(room, b.Typical[w.Name], f.Now)
		if why == "" {
			continue
		}
		if last == nil || w.ResetsAt.After(last.until) {
			text := fmt.Sprintf("account %s: %s left until", b.Account, why)
			last = &hold{Reason{RuleHeadroom, text, w.ResetsAt}, w.ResetsAt, RuleHeadroom}
		}
	}
	return last
}

// commanded reports whether a user, and not a bot or an event, asked for the attempt.
func (f Facts) commanded() bool {
	for _, r := range f.Fresh {
		if r.Typed && !r.Bot {
			return true
		}
	}
	return f.orders()
}

// lacks says why a window has no room for an attempt; empty if it has. Room is the share that may be used, and typical
// what an attempt uses of it; 0 if unknown.
func (w Window) lacks(room, typical float64, now time.Time) string {
	if !w.Current(now) {
		return ""
	}
	left := max(0, room-w.Used)
	switch {
	case left == 0:
		return fmt.Sprintf("%s of the %s window is used, no more than %s may be; nothing is", percent(w.Used), w.Name, percent(room))
	case typical > left:
		return fmt.Sprintf("an attempt uses about %s of the %s window; %s is", percent(typical), w.Name, percent(left))
	}
	return ""
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// Room is how much of its windows an account may still use per hour until their resets, in shares: the least of all
// current windows. Known is false if there is none. The account with the most room loses the least at its reset.
func (l HeadroomLimits) Room(windows []Window, now time.Time) (perHour float64, known bool) {
	for _, w := range windows {
		if !w.Current(now) {
			continue
		}
		room := max(0, l.HoldAt-w.Used) / max(w.ResetsAt.Sub(now).Hours(), 1.0/60)
		if !known || room < perHour {
			perHour = room
		}
		known = true
	}
	return perHour, known
}
