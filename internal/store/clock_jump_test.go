package store

import (
	"errors"
	"path/filepath"
	"testing"
	"time"
)

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

func (m *machine) trusts(when string, want bool) {
	m.t.Helper()
	err := m.TrustClock(m.t.Context())
	if (err == nil) != want || err != nil && !errors.Is(err, ErrClock) {
		m.t.Errorf("%s: %v; want that the clock is trusted: %v", when, err, want)
	}
}

func TestAClockThatWasSetIsTrustedWhenItIsAsAtTheStart(t *testing.T) {
	m := newMachine(t)
	m.trusts("at the start", true)
	m.set = 8 * time.Hour
	m.trusts("after it was set", false)
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

func TestTheTimeSinceTheBootGoesOn(t *testing.T) {
	first := sinceBoot()
	began := time.Now()
	passed := time.Since(began)
	if got := sinceBoot() - first; first <= 0 || got < passed {
		t.Errorf("%s since the boot, and %s later when %s had passed", first, got, passed)
	}
}
