package policy

import (
	"maps"
	"slices"
	"time"
)

// Window is a reading of one usage window of an account, such as the five hours of a subscription.
type Window struct {
	Name     string        `json:"name"`                // such as 5h, 7d or 7d_oi
	Used     float64       `json:"used"`                // the used share; 1 is full, but providers may report more
	ResetsAt time.Time     `json:"resets_at,omitzero"`  // zero if the provider did not report it
	SeenAt   time.Time     `json:"seen_at"`             // when the provider reported it
	Length   time.Duration `json:"length_ns,omitempty"` // 0 if unknown
}

// Current reports whether the reading still holds. It does not after the window's reset, or if the reset is unknown.
func (w Window) Current(now time.Time) bool { return w.ResetsAt.After(now) }

// resetJitter is the largest difference between two reports of one reset. Codex reports the seconds that are left.
const resetJitter = time.Minute

func (w Window) sameReset(o Window) bool { return w.ResetsAt.Sub(o.ResetsAt).Abs() <= resetJitter }

// earlyFall is a drop in the used share that neither rounding nor a late answer explains. Our choice.
const earlyFall = 0.1

// Since returns the share that was used since an earlier reading. known is false after a reset between the two. A
// rolling window's reset moves; its share is known if the earlier reset has not passed and use did not fall.
func (w Window) Since(earlier Window) (share float64, known bool) {
	share = w.Used - earlier.Used
	switch {
	case share <= -earlyFall:
		return 0, false
	case w.sameReset(earlier):
		return max(0, share), true
	}
	return max(0, share), share >= 0 && earlier.Current(w.SeenAt)
}

// Freed reports whether the provider gave quota back before an earlier reading's reset.
func (w Window) Freed(earlier Window) bool {
	return earlier.Current(w.SeenAt) && earlier.Used-w.Used >= earlyFall
}

// FullAt returns when the window will be full at its average rate so far. known is false if that is after the reset,
// or if the provider reports no length.
func (w Window) FullAt() (at time.Time, known bool) {
	elapsed := w.Length - w.ResetsAt.Sub(w.SeenAt)
	if w.Used <= 0 || elapsed <= 0 {
		return time.Time{}, false
	}
	left := float64(elapsed) * (1 - w.Used) / w.Used
	at = w.SeenAt.Add(time.Duration(max(0, left)))
	return at, at.Before(w.ResetsAt)
}

// timeLeft returns the share of a current window's time that is left; 1 if its length is unknown.
func (w Window) timeLeft(now time.Time) float64 {
	if w.Length <= 0 {
		return 1
	}
	return min(1, float64(w.ResetsAt.Sub(now))/float64(w.Length))
}

// maxUses is the number of last attempts that determine a backend's typical use. Our choice.
const maxUses = 20

// Meter is a usage window with the shares that attempts used.
type Meter struct {
	Window
	// Uses are the shares that the last attempts used, by backend, oldest first. Each share includes concurrent
	// attempts on the account.
	Uses map[string][]float64 `json:"uses,omitempty"`
	// Claims are the newest readings from agents of two threads, the newest last.
	Claims []WindowClaim `json:"claims,omitempty"`
}

// WindowClaim is a reading from a file that the agents of a thread can write. Pawl did not see the provider's answer.
type WindowClaim struct {
	Thread string `json:"thread"`
	Window
}

// longestClaim limits the time until a claimed reset, as for limits that only an agent's output reports.
const longestClaim = 8 * Day

// Known reports whether there is a reading that counts for all threads.
func (m Meter) Known() bool { return !m.SeenAt.IsZero() }

// Claimed returns the meter after a thread's claim. For other threads the lower of two threads' claims counts, if both
// have the same reset.
func (m Meter) Claimed(thread string, w Window) Meter {
	if w.ResetsAt.After(w.SeenAt.Add(longestClaim)) {
		return m
	}
	m.Name = w.Name
	others := slices.DeleteFunc(slices.Clone(m.Claims), func(c WindowClaim) bool { return c.Thread == thread })
	if n := len(others); n > 0 {
		others = others[n-1:]
		believed := w
		believed.Used = min(w.Used, others[0].Used)
		if w.sameReset(others[0].Window) {
			m = m.Seen(believed)
		}
	}
	m.Claims = append(others, WindowClaim{thread, w})
	return m
}

// For returns the meter as a thread sees it, including its own agents' claim.
func (m Meter) For(thread string) Meter {
	for _, c := range m.Claims {
		newer := c.Thread == thread && !c.SeenAt.Before(m.SeenAt)
		if lower := c.sameReset(m.Window) && c.Used < m.Used; newer && !lower {
			m.Window = c.Window
		}
	}
	return m
}

// Seen returns the meter after another reading. An older reading changes nothing.
func (m Meter) Seen(w Window) Meter {
	if !w.SeenAt.Before(m.SeenAt) {
		m.Window = w
	}
	return m
}

// Spent returns the meter after an attempt of a backend.
func (m Meter) Spent(backend string, share float64) Meter {
	uses := append(slices.Clone(m.Uses[backend]), share)
	m.Uses = maps.Clone(m.Uses)
	if m.Uses == nil {
		m.Uses = map[string][]float64{}
	}
	m.Uses[backend] = uses[max(0, len(uses)-maxUses):]
	return m
}

func (m Meter) usedBy(backend string) bool {
	return slices.ContainsFunc(m.Uses[backend], func(share float64) bool { return share > 0 })
}

// Typical returns the median share that the last attempts of a backend used; 0 without one.
func (m Meter) Typical(backend string) float64 {
	uses := slices.Sorted(slices.Values(m.Uses[backend]))
	if len(uses) == 0 {
		return 0
	}
	return uses[len(uses)/2]
}
