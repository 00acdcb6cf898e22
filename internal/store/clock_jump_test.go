package store

import (
	"context"
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
			c.jump.see(difference)
			if got := c.jump.ago(); got != want {
				t.Errorf("the last jump was %s ago, want %s", got, want)
			}
		}
		after(time.Hour, 0, time.Hour)
		after(time.Hour, -20*time.Second, 2*time.Hour) // what NTP does
		after(time.Hour, -8*time.Hour, 0)              // a night of sleep
		after(time.Hour, -8*time.Hour-time.Second, time.Hour)
		after(time.Hour, 0, 0)
	})
}

// A suspended machine's clock goes on and the process' own does not. That is
// nothing to keep old records for ever for.
func TestADayAfterASuspensionTheClockIsTrustedAgain(t *testing.T) {
	const night = 8 * time.Hour
	ctx := context.Background()
	s, err := Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.trustClock(ctx); err != nil {
		t.Fatal(err)
	}
	s.SetWall(func() time.Time { return time.Now().Add(night) })
	if err := s.trustClock(ctx); !errors.Is(err, ErrClock) {
		t.Errorf("right after the night: %v, want ErrClock", err)
	}
	s.clock.jump.at = s.clock.jump.at.Add(-trustTime)
	if err := s.trustClock(ctx); err != nil {
		t.Errorf("a day later: %v, want that it is trusted", err)
	}
	s.SetWall(func() time.Time { return time.Now().Add(365 * 24 * time.Hour) })
	if err := s.trustClock(ctx); !errors.Is(err, ErrClock) {
		t.Errorf("after one more jump: %v, want ErrClock", err)
	}
}
