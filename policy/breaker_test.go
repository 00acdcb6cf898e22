package policy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// hit is one attempt on an account: its ending and the reset that it reported.
type hit struct {
	ending Ending
	reset  time.Time
}

func after(hits ...hit) Breaker {
	var b Breaker
	for i, h := range hits {
		at := noon.Add(time.Duration(i) * time.Minute)
		b = b.After(h.ending, h.reset, at, at)
	}
	return b
}

func TestBreakerCountsFailuresOfAnAccount(t *testing.T) {
	later := noon.Add(5 * time.Hour)
	for _, tc := range []struct {
		name string
		hits []hit
		want int
		kind Ending
	}{
		{"nothing happened", nil, 0, ""},
		{"three usage limits", []hit{{UsageLimit, later}, {UsageLimit, later}, {UsageLimit, later}}, 3, UsageLimit},
		{"a success closes it", []hit{{UsageLimit, later}, {UsageLimit, later}, {Completed, time.Time{}}}, 0, ""},
		{"it counts again from one after a success", []hit{{UsageLimit, later}, {Completed, time.Time{}}, {UsageLimit, later}}, 1, UsageLimit},
		{"endings without information on the account do not change it", []hit{
			{UsageLimit, later}, {Crashed, time.Time{}}, {TimedOut, time.Time{}}, {RateLimited, time.Time{}}, {Overloaded, time.Time{}},
			{Disconnected, time.Time{}}, {NoAnswer, time.Time{}}, {Misconfigured, time.Time{}}, {"", time.Time{}}, {UsageLimit, later},
		}, 2, UsageLimit},
		{"a rejected login has its own count", []hit{{UsageLimit, later}, {UsageLimit, later}, {Auth, time.Time{}}}, 1, Auth},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if b := after(tc.hits...); b.Consecutive != tc.want || b.Kind != tc.kind {
				t.Errorf("%d × %q, want %d × %q", b.Consecutive, b.Kind, tc.want, tc.kind)
			}
		})
	}
}

func TestBreakerOpensAtTheThirdFailureUntilTheReset(t *testing.T) {
	reset := noon.Add(5 * time.Hour)
	two := after(hit{UsageLimit, reset}, hit{UsageLimit, reset})
	if _, open := two.Open(noon.Add(time.Hour), 3); open {
		t.Error("open after two limits")
	}
	three := two.After(UsageLimit, reset, noon, noon.Add(2*time.Minute))
	for _, tc := range []struct {
		now  time.Time
		open bool
	}{
		{noon.Add(time.Hour), true},
		{reset.Add(-time.Nanosecond), true},
		{reset, false},
		{reset.Add(time.Hour), false},
	} {
		until, open := three.Open(tc.now, 3)
		if open != tc.open || open && !until.Equal(reset) {
			t.Errorf("at %s: open %t until %s, want %t until %s", Clock(tc.now), open, Clock(until), tc.open, Clock(reset))
		}
	}
}

func TestBreakerWithoutAKnownResetStaysLimited(t *testing.T) {
	b := after(hit{UsageLimit, time.Time{}})
	if until, limited := b.Limited(noon.Add(1000 * time.Hour)); !limited || !until.IsZero() {
		t.Errorf("limited %t until %s, want no end", limited, until)
	}
}

func TestPastResetIsUnknown(t *testing.T) {
	b := after(hit{UsageLimit, noon.Add(-time.Hour)}, hit{UsageLimit, noon}, hit{UsageLimit, noon.Add(time.Minute)})
	if _, open := b.Open(noon.Add(time.Hour), 3); !open {
		t.Error("three limits with past resets leave the breaker closed")
	}
}

func TestKnownResetSurvivesALimitWithoutOne(t *testing.T) {
	reset := noon.Add(5 * time.Hour)
	b := after(hit{UsageLimit, reset}, hit{UsageLimit, time.Time{}}, hit{UsageLimit, noon.Add(-time.Hour)})
	want := Breaker{Kind: UsageLimit, Consecutive: 3, ResetsAt: reset, At: noon.Add(2 * time.Minute)}
	if diff := cmp.Diff(want, b); diff != "" {
		t.Error(diff)
	}
	if newer := b.After(UsageLimit, reset.Add(time.Hour), noon, noon.Add(3*time.Minute)); !newer.ResetsAt.Equal(reset.Add(time.Hour)) {
		t.Errorf("the newest reported reset is not kept: %s", newer.ResetsAt)
	}
	if other := b.After(Auth, time.Time{}, noon, noon.Add(3*time.Minute)); !other.ResetsAt.IsZero() {
		t.Errorf("a rejected login took over the reset of a usage limit: %s", other.ResetsAt)
	}
}

func TestBackoffFollowsItsFormula(t *testing.T) {
	want := map[int]time.Duration{
		1: 0, 9: 0, 10: 0,
		11: 2 * time.Second, 12: 4 * time.Second, 13: 8 * time.Second, 14: 16 * time.Second,
		15: 32 * time.Second, 16: 64 * time.Second, 17: 128 * time.Second, 18: 256 * time.Second,
		19: 300 * time.Second, 20: 300 * time.Second, 50: 300 * time.Second,
	}
	for n, pause := range want {
		if got := Backoff(n, 10, 300*time.Second); got != pause {
			t.Errorf("restart %d waits %s, want %s", n, got, pause)
		}
	}
}

func TestRetryDoublesItsWaitWithJitter(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 500 * time.Millisecond, 2: time.Second, 4: 4 * time.Second, 5: 8 * time.Second, 6: 8 * time.Second, 100: 8 * time.Second} {
		whole, half := Retry(n, 500*time.Millisecond, 8*time.Second, 1), Retry(n, 500*time.Millisecond, 8*time.Second, 0.5)
		if whole != want || half != want/2 || Retry(n, time.Second, time.Minute, 0) != 0 {
			t.Errorf("retry %d waits %v, at least half of it %v, want %v", n, whole, half, want)
		}
	}
}

func TestBackoffNeverShrinksAndStaysWithinItsCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(-5, 1<<40).Draw(t, "restart")
		after := rapid.IntRange(0, 100).Draw(t, "after")
		most := time.Duration(rapid.Int64Range(0, int64(365*24*time.Hour)).Draw(t, "cap"))
		pause, next := Backoff(n, after, most), Backoff(n+1, after, most)
		if pause < 0 || pause > most || next < pause {
			t.Fatalf("restart %d waits %s and the next %s; the cap is %s", n, pause, next, most)
		}
		if n <= after && pause != 0 {
			t.Fatalf("restart %d waits %s, but waits begin after %d", n, pause, after)
		}
	})
}

// A limit that only one thread's attempts reported does not block the account. An attempt of a second thread confirms it.
func TestUnconfirmedLimitClosesNoAccount(t *testing.T) {
	reset := noon.Add(6 * 24 * time.Hour)
	at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	b := Breaker{}.AfterReported("o/r#1", UsageLimit, reset, noon, at(0)).AfterReported("o/r#1", UsageLimit, reset, at(0), at(1)).AfterReported("o/r#1", UsageLimit, reset, at(1), at(2))
	if until, limited := b.Limited(at(3)); limited {
		t.Errorf("one thread closed the account for all until %s", until)
	}
	if until, open := b.For("o/r#1").Open(at(3), 3); !open || !until.Equal(reset) {
		t.Errorf("the thread ignores its own agents' reports: %s %v", until, open)
	}
	if _, limited := b.For("o/r#2").Limited(at(3)); limited {
		t.Error("another thread trusts the report")
	}
	if _, limited := b.AfterReported("o/r#2", UsageLimit, reset, at(3), at(4)).For("o/r#3").Limited(at(5)); !limited {
		t.Error("a second thread's limit does not confirm it")
	}
	if got := b.AfterReported("o/r#2", Completed, time.Time{}, at(3), at(4)); got != (Breaker{}) {
		t.Errorf("a success that began later leaves %+v", got)
	}
	if _, limited := b.AfterReported("o/r#2", Auth, time.Time{}, at(3), at(4)).Limited(at(5)); limited {
		t.Error("another kind of refusal confirms it")
	}
	if _, limited := b.AfterReported("o/r#2", UsageLimit, reset, reset, reset.Add(time.Hour)).Limited(reset.Add(2 * time.Hour)); limited {
		t.Error("one that came after the reset confirms it")
	}
}

// A damaged breaker blocks its account until an attempt or the provider shows the account's state.
func TestDamagedBreakerHoldsItsAccount(t *testing.T) {
	damaged := Breaker{Damage: "unreadable"}
	if until, open := damaged.Open(noon, 3); !open || !until.IsZero() {
		t.Errorf("open %t until %s, want no end", open, until)
	}
	for ending, want := range map[Ending]Breaker{
		Completed:  {},
		UsageLimit: {Kind: UsageLimit, Consecutive: 1, At: noon},
		Auth:       {Kind: Auth, Consecutive: 1, At: noon},
		Crashed:    damaged,
		TimedOut:   damaged,
	} {
		if diff := cmp.Diff(want, damaged.After(ending, time.Time{}, noon, noon)); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", ending, diff)
		}
	}
	if after := damaged.AfterReported("o/r#1", UsageLimit, time.Time{}, noon, noon); after.Damage == "" {
		t.Error("one thread's claim replaces what cannot be read")
	}
}
