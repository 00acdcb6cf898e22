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
	// HoldAt is the used share at which attempts wait for the reset. 0.95 is our choice: an attempt uses a
	// few percent of a five-hour window.
	HoldAt float64 `yaml:"hold_at"`
	// Reserve is the share below HoldAt that only users' requests may use. 0.10 is our choice.
	Reserve float64 `yaml:"reserve"`
}

const hintHeadroom = "The operator can raise policy.headroom.hold_at; /pawl stop ends the wait."

// byHeadroom returns the backends in configured order, with each backend's accounts sorted by headroom. Among these,
// the account of a session that may be continued comes first.
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
			cmp.Compare(a.Running, b.Running),
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

// headroom divides the share left of a window by the share left of its time. Above 1, an even rate would not use up the
// window. Attempts in progress count with their typical use. The tightest current window decides. Without a current
// window, headroom is infinite.
func (f Facts) headroom(b Backend) float64 {
	least := math.Inf(1)
	for _, m := range b.filled() {
		if m.Current(f.Now) {
			left := f.Limits.Headroom.HoldAt - m.Used - m.Typical(b.Name)*float64(b.Running)
			least = min(least, max(0, left)/m.timeLeft(f.Now))
		}
	}
	return least
}

// heldByHeadroom holds a backend whose account is nearly at a usage limit. Each current window that the backend fills
// must have room. The window that resets last decides.
func (f Facts) heldByHeadroom(b Backend) *hold {
	limits := f.Limits.Headroom
	room := limits.HoldAt
	if !f.byUser() {
		room -= limits.Reserve
	}
	var last *hold
	firm := false
	for _, m := range b.filled() {
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

// filled returns the windows that the backend's attempts may fill. Providers also report windows of other models.
func (b Backend) filled() []Meter {
	return slices.DeleteFunc(slices.Clone(b.Meters), b.leavesAlone)
}

// leavesAlone reports whether the backend's last attempts never used this window but did use one at least as long.
// Rounding may hide the use of a longer window, but not of a shorter one.
func (b Backend) leavesAlone(m Meter) bool {
	if n := len(m.Uses[b.Name]); n > 0 && n < maxUses {
		return false
	}
	if m.Length == 0 || m.usedBy(b.Name) {
		return false
	}
	return slices.ContainsFunc(b.Meters, func(o Meter) bool {
		return o.Length >= m.Length && len(o.Uses[b.Name]) == maxUses && o.usedBy(b.Name)
	})
}

// byUser reports whether a user, not a bot or an event, asked for the attempt or for the work that it repeats.
func (f Facts) byUser() bool {
	if len(f.Fresh) > 0 {
		return slices.ContainsFunc(f.Fresh, Request.ByUser)
	}
	for _, a := range slices.Backward(f.run()) {
		if a.NewInput {
			return a.ByUser
		}
	}
	return false
}

// ByUser reports whether a user wrote the request in new words or by a command.
func (r Request) ByUser() bool { return !r.Bot && (r.Typed || r.Command != "") }

// use describes the attempts on a window: typical is the share that one attempt uses, 0 if unknown; running counts
// attempts in progress.
type use struct {
	typical float64
	running int
}

// lacks holds an account whose window has no room for another attempt. room is the share that may be used. After a
// reset the new window's use is unknown until the next answer, but attempts in progress will use it.
func (w Window) lacks(account string, room float64, u use, now time.Time) *hold {
	if w.ResetsAt.IsZero() {
		return nil
	}
	if !w.Current(now) {
		return w.crowded(account, room, u)
	}
	left := room - w.Used
	switch {
	case left <= 0:
		why := fmt.Sprintf("%s of the %s window is used, and %s may be; nothing is left until", percent(w.Used), w.Name, percent(room))
		return full(account, why, w.ResetsAt)
	case u.typical > left:
		why := fmt.Sprintf("an attempt uses about %s of the %s window; %s is left until", percent(u.typical), w.Name, percent(left))
		return full(account, why, w.ResetsAt)
	}
	return w.crowded(account, left, u)
}

// crowded holds an account whose attempts in progress may use the rest of the window. The attempts may end at any time,
// so the hold's end is unknown.
func (w Window) crowded(account string, left float64, u use) *hold {
	if u.running == 0 || u.typical*float64(u.running+1) <= left {
		return nil
	}
	why := fmt.Sprintf("an attempt uses about %s of the %s window, and %s; %s is left",
		percent(u.typical), w.Name, Plural(u.running, "attempt")+" already in progress", percent(left))
	return full(account, why, time.Time{})
}

func full(account, why string, until time.Time) *hold {
	return &hold{why: Reason{RuleHeadroom, "account " + account + ": " + why, until}, until: until, rule: RuleHeadroom}
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
