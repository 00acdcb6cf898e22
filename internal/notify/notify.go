// Package notify reports to the operator, in a chat channel, what needs action: unhandled deliveries, a stuck queue, an
// open breaker, a budget near its limit, a day without success, an ignored learning signal.
//
//	alerts and their thresholds            notify.go, Health.alerts
//	repetitions, and the end of an alert   notify.go, reported.news
//	one report from several nodes          watch.go, turn
//	the message, and a failure to send it  watch.go, send
package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

// Thresholds of alerts, our choice. They match config/deploy/prometheus/alerts.yml.
const (
	// queueAge is twice the age at which a server is not ready.
	queueAge = 10 * time.Minute
	// nearEnd is the used share of a daily limit that raises an alert.
	nearEnd = 0.9
	// unsolved is the number of attempts in a day without success that raises an alert.
	unsolved = 3
	// again is the time after which an alert is repeated.
	again = 24 * time.Hour
)

// Health is the state of all nodes on a database.
type Health struct {
	GivenUp  int           // deliveries that are no longer retried
	QueueAge time.Duration // longest time that a thread has waited for a step
	Breakers map[string]policy.Breaker
	// MaxConsecutive is how many consecutive failures open a breaker.
	MaxConsecutive int
	Day            policy.Ledger
	Degraded       []string // sources of grades that learning ignores
}

// alert is a condition that needs action. Its key does not change while it lasts.
type alert struct{ key, text string }

func (f Health) alerts(now time.Time, t reported) []alert {
	var all []alert
	add := func(holds bool, key, format string, args ...any) {
		if holds {
			all = append(all, alert{key, fmt.Sprintf(format, args...)})
		}
	}
	add(f.GivenUp > 0, "deliveries", "webhook deliveries could not be handled and are no longer tried: %d. `pawl status` lists them, `pawl deliveries` retries or dismisses them", f.GivenUp)
	add(f.QueueAge > queueAge, "queue", "a thread has waited %s for a step: more workers or servers are needed, or they hang", render.Span(f.QueueAge))
	for account, b := range f.Breakers {
		add(b.Damage != "", "damaged breaker "+account, "account %s is not used: %s", render.Line(account, 100), render.Line(b.Damage, 300))
		if b.Damage != "" {
			continue
		}
		if _, open := b.Open(now, f.MaxConsecutive); open {
			when := "when it resets is unknown"
			if !b.ResetsAt.IsZero() {
				when = "it resets at " + render.Instant(now, b.ResetsAt)
			}
			add(true, "breaker "+account, "the breaker of account %s is open after %d × %s: %s", render.Line(account, 100), b.Consecutive, render.Spaced(b.Kind), when)
		}
	}
	for _, b := range []struct {
		what      string
		used, max float64
	}{
		{"attempts", float64(f.Day.Attempts), float64(f.Day.MaxAttempts)}, {"tokens", float64(f.Day.Tokens), float64(f.Day.MaxTokens)}, {"US dollars", f.Day.USD, f.Day.MaxUSD},
	} {
		add(b.max > 0 && b.used >= nearEnd*b.max, "budget "+b.what, "%.0f %% of the 24-hour limit for %s is used: %s", 100*b.used/max(b.max, 1e-9), b.what, f.Day)
	}
	add(t.Unsolved >= unsolved && now.Sub(t.Solved) >= again, "success", "no attempt has succeeded for %s (%d attempts)", render.Span(now.Sub(t.Solved)), t.Unsolved)
	for _, source := range f.Degraded {
		add(true, "signal "+source, "Pawl does not learn from %s, because its values are implausible: the backends page lists the attempts", render.Line(source, 100))
	}
	slices.SortFunc(all, func(a, b alert) int { return strings.Compare(a.key, b.key) })
	return all
}

// reported is the state that all nodes share. The zero value has no reports.
type reported struct {
	Looked   time.Time            `json:"looked"` // last check by any node
	At       map[string]time.Time `json:"at"`     // last report of each current alert, by key
	Solved   time.Time            `json:"solved"` // last success, or first counted attempt
	Unsolved int                  `json:"unsolved"`
}

func (t *reported) attempt(o policy.Outcome, now time.Time) {
	switch o {
	case policy.WorkVerified, policy.WorkUnverified, policy.Answered, policy.Planned:
		t.Solved, t.Unsolved = now, 0
	case policy.Asked, policy.Declined, policy.Cancelled, policy.NotPermitted, policy.Interrupted: // neither success nor failure
	default:
		if t.Solved.IsZero() {
			t.Solved = now
		}
		t.Unsolved++
	}
}

// news returns the lines to send and updates t.
func (t *reported) news(all []alert, now time.Time) (lines []string) {
	holds := map[string]time.Time{}
	for _, a := range all {
		at, known := t.At[a.key]
		if !known || now.Sub(at).Abs() >= again {
			at, lines = now, append(lines, a.text)
		}
		holds[a.key] = at
	}
	for key := range t.At {
		if _, still := holds[key]; !still {
			lines = append(lines, "resolved: "+key)
		}
	}
	slices.Sort(lines)
	t.At = holds
	return lines
}
