package solver

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// crowd returns how many of a hundred threads may fall into one second of a span: twice the even share, plus 10 for
// chance.
func crowd(spread time.Duration) int { return 2*100/int(spread/time.Second) + 10 }

// Threads that wait for the same probe look again within ten seconds. Threads of one batch of the queue start within
// five.
func TestReleasedThreadsStartSpreadOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owner := rapid.StringMatching(`[a-z]{1,12}`).Draw(t, "owner")
		first := rapid.IntRange(1, 100_000).Draw(t, "first number")
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		looks, starts := map[time.Duration]int{}, map[time.Duration]int{}
		for n := range 100 {
			th := thread.ID{Owner: owner, Name: fmt.Sprintf("team%d", n%10), Number: first + n/10}
			s := &step{pub: &publisher{env: &attempt.Env{Now: func() time.Time { return now }}, thread: th}}
			s.later(policy.RuleProbe, "somebody else tries")
			look := s.next.Sub(now)
			if look < minLook || look >= minLook+releaseSpread {
				t.Fatalf("%s looks again after %s", th, look)
			}
			looks[look.Truncate(time.Second)]++
			start := startOf(th)
			if start < 0 || start >= startSpread {
				t.Fatalf("%s starts after %s", th, start)
			}
			starts[start.Truncate(time.Second)]++
		}
		for second, n := range looks {
			if n > crowd(releaseSpread) {
				t.Fatalf("%d of 100 threads look again in second %s: %v", n, second, looks)
			}
		}
		for second, n := range starts {
			if n > crowd(startSpread) {
				t.Fatalf("%d of 100 threads start in second %s: %v", n, second, starts)
			}
		}
	})
}

// While attempts begin, the account with the most headroom changes with each look. A step that started over each time
// would never begin.
func TestSlotIsValidForAnyUnlimitedAccount(t *testing.T) {
	for name, c := range map[string]struct {
		account     string
		bound, most int
		want        bool
	}{
		"the same account":                       {"one", 0, 0, true},
		"another account":                        {"two", 0, 0, true},
		"its limit was lifted":                   {"one", 0, 1, true},
		"another account, and a probe to return": {"two", 0, 1, false},
		"the same account, now limited":          {"one", 1, 0, false},
		"the probe is held":                      {"one", 1, 1, true},
		"the other account's probe is not":       {"two", 1, 1, false},
	} {
		now := thread.Decided{Decision: policy.Decision{Account: c.account}}
		if got := fits(now, c.bound, policy.Decision{Account: "one"}, c.most); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
