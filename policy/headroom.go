package policy

import (
	"cmp"
	"fmt"
	"math"
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

// byHeadroom returns the backends in their order. Each backend's accounts follow by headroom, but the account of the
// session that may be continued is first.
func (f Facts) byHeadroom() []Backend {
	place := map[string]int{}
	for i, b := range slices.Backward(f.Backends) {
		place[b.Name] = i
	}
	return slices.SortedStableFunc(slices.Values(f.Backends), func(a, b Backend) int {
		return cmp.Or(
			cmp.Compare(place[a.Name], place[b.Name]),
			cmp.Compare(f.afterSession(a), f.afterSession(b)),
			cmp.Compare(f.headroom(b), f.headroom(a)),
		)
	})
}

// afterSession is 0 for the account of a session that may be continued, else 1.
func (f Facts) afterSession(b Backend) int {
	if b.Name == f.Handover.Backend && b.Account == f.Handover.Account {
		return 0
	}
	a, _ := f.last()
	same := b.Name == a.Backend && b.Account == a.Account
	if same && a.resumable() {
		return 0
	}
	return 1
}

// headroom compares the share that is left of a window with the share of its time that is left: an account above 1
// would not use up its windows at an even rate. The tightest current window counts. Without one it is infinite.
func (f Facts) headroom(b Backend) float64 {
	least := math.Inf(1)
	for _, m := range b.Meters {
		if m.Current(f.Now) {
			least = min(least, max(0, f.Limits.Headroom.HoldAt-m.Used)/m.timeLeft(f.Now))
		}
	}
	return least
}

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
		need := use{typical: m.Typical(b.Name), running: b.Running}
		h := m.lacks(b.Account, room, need, f.Now)
		if h == nil {
			continue
		}
		firm = firm || m.lacks(b.Account, limits.HoldAt, need, f.Now) != nil
		if last == nil || h.until.After(last.until) {
			last = h
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

// use is what attempts need of a window: typical is the share that one uses, 0 if unknown, and running how many run
// already.
type use struct {
	typical float64
	running int
}

// lacks holds an account whose window has no room for another attempt. room is the share that may be used. Running
// attempts may end at any time, so a hold for them has no end.
func (w Window) lacks(account string, room float64, u use, now time.Time) *hold {
	if !w.Current(now) {
		return nil
	}
	left := room - w.Used
	var why string
	until := w.ResetsAt
	switch {
	case left <= 0:
		why = fmt.Sprintf("%s of the %s window is used, and %s may be; nothing is left until", percent(w.Used), w.Name, percent(room))
	case u.typical > left:
		why = fmt.Sprintf("an attempt uses about %s of the %s window; %s is left until", percent(u.typical), w.Name, percent(left))
	case u.typical*float64(u.running+1) > left:
		until = time.Time{}
		why = fmt.Sprintf("an attempt uses about %s of the %s window, and %s; %s is left",
			percent(u.typical), w.Name, Plural(u.running, "attempt")+" already in progress", percent(left))
	default:
		return nil
	}
	return &hold{why: Reason{RuleHeadroom, "account " + account + ": " + why, until}, until: until, rule: RuleHeadroom}
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
