package store

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestAJumpOfTheClockIsTheLastLargeChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock(time.Now)
		after := func(pause, difference, want time.Duration) {
			t.Helper()
			time.Sleep(pause)
			c.note(0, difference, 0)
			if got := time.Since(c.jumped); got != want {
				t.Errorf("the last jump was %s ago, want %s", got, want)
			}
		}
		after(time.Hour, 0, time.Hour)
		after(time.Hour, -20*time.Second, 2*time.Hour) // what NTP does
		after(time.Hour, -8*time.Hour, 0)              // set by somebody
		after(time.Hour, -8*time.Hour-time.Second, time.Hour)
		after(time.Hour, 0, 0)
	})
}

// machine is a store whose machine's clocks a test moves.
type machine struct {
	*Store
	t *testing.T
	// set is how far the clock was set, slept how long all suspensions took.
	set, slept time.Duration
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	s, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	m := &machine{Store: s, t: t}
	s.SetWall(func() time.Time { return time.Now().Add(m.set + m.slept) })
	s.clock.boot = func() time.Duration { return sinceBoot() + m.slept }
	return m
}

// runs lets the process run for a day, as far as what it saw of its clocks.
func (m *machine) runs() {
	m.clock.jumped = m.clock.jumped.Add(-trustTime)
	if !m.clock.woken.IsZero() {
		m.clock.woken = m.clock.woken.Add(-trustTime)
	}
}

func (m *machine) trusts(when string, want bool) {
	m.t.Helper()
	err := m.TrustClock(m.t.Context())
	if (err == nil) != want || err != nil && !errors.Is(err, ErrClock) {
		m.t.Errorf("%s: %v; want that the clock is trusted: %v", when, err, want)
	}
}

func TestADayAfterTheClockWasSetItIsTrustedAgain(t *testing.T) {
	m := newMachine(t)
	m.trusts("at the start", true)
	m.set = 8 * time.Hour
	m.trusts("right after it was set", false)
	m.runs()
	m.trusts("a day later", true)
	m.set = 365 * 24 * time.Hour
	m.trusts("after one more jump", false)
	m.set = 8 * time.Hour
	m.trusts("after it was set back", false)
	m.set = 0
	m.trusts("when it is as at the start", true)
}

func TestAMachineThatIsSuspendedEveryNightTrustsItsClock(t *testing.T) {
	m := newMachine(t)
	for range 4 {
		m.slept += 14 * time.Hour
		m.trusts("in the morning", true)
		if off := m.Skew(); off != 0 {
			t.Errorf("the clock is said to be %s off", off)
		}
	}
	if off := m.leaseSkew() + m.slept; off.Abs() > time.Minute {
		t.Errorf("leases were moved by %s, want that no time passed for them", -m.leaseSkew())
	}
	// It counts from there.
	m.set = 365 * 24 * time.Hour
	m.trusts("after the clock was set as well", false)
}

// While a machine is suspended its board keeps the time, and may say afterwards
// that a year has passed.
func TestAClockThatJumpsInASuspensionIsNotTrusted(t *testing.T) {
	const year = 365 * 24 * time.Hour
	m := newMachine(t)
	m.trusts("at the start", true)
	m.slept += year
	m.trusts("right after it", false)
	m.trusts("when asked again", false)
	m.set = 8*time.Hour - year
	m.trusts("when it was set right", false)
	m.runs()
	m.trusts("a day later", true)
}

func TestTheTimeSinceTheBootGoesOn(t *testing.T) {
	first := sinceBoot()
	began := time.Now()
	passed := time.Since(began)
	if got := sinceBoot() - first; first <= 0 || got < passed {
		t.Errorf("%s since the boot, and %s later when %s had passed", first, got, passed)
	}
}
