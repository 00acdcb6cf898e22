package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

func Count[N int | int64](n N) string { return humanize.Comma(int64(n)) }

// Dollars formats a cost with two decimals, or with four below a cent. It turns negative costs and NaN into $0.00, and
// costs of $100,000 or more into $99999.99.
func Dollars(v float64) string {
	switch v = min(v, 99_999.99); {
	case !(v > 0): // also NaN
		return "$0.00"
	case v < 0.01:
		return fmt.Sprintf("$%.4f", v)
	}
	return fmt.Sprintf("$%.2f", v)
}

// Cost is Dollars, or empty for an unknown cost.
func Cost(v *float64) string {
	if v == nil {
		return ""
	}
	return Dollars(*v)
}

// When returns the part if the condition holds, otherwise an empty string.
func When(condition bool, part string) string {
	if condition {
		return part
	}
	return ""
}

// Joined joins the non-empty parts.
func Joined(by string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" }), by)
}

// Instant formats a time in UTC, with the date unless it is today.
func Instant(now, t time.Time) string {
	now, t = now.UTC(), t.UTC()
	if now.Format(time.DateOnly) == t.Format(time.DateOnly) {
		return t.Format("15:04 UTC")
	}
	return Date(t)
}

func Date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// Left formats the time until an instant: 5h 12m left (until 14:03 UTC).
func Left(now, until time.Time) string {
	d := until.Sub(now)
	switch {
	case d <= 0:
		return "due since " + Instant(now, until)
	case d < time.Minute:
		return "under a minute left (until " + Instant(now, until) + ")"
	}
	return Span(d.Truncate(time.Minute)) + " left (until " + Instant(now, until) + ")"
}

// Reset states when a limit resets or was reset; the zero time means unknown.
func Reset(now, t time.Time) string {
	switch {
	case t.IsZero():
		return "nobody said when it resets"
	case t.After(now):
		return Left(now, t)
	}
	return "was reset at " + Instant(now, t)
}

// Span formats a duration in its two largest units: 2d 3h, 5h 12m, 4m 5s. Libraries round to one unit, which is too
// coarse for a wait.
func Span(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	units := []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}}
	i := 0
	for d < units[i].of {
		i++
	}
	s := Count(int64(d/units[i].of)) + units[i].name
	if i+1 < len(units) {
		if rest := d % units[i].of / units[i+1].of; rest > 0 {
			s += fmt.Sprintf(" %d%s", rest, units[i+1].name)
		}
	}
	return s
}

// Dash is Span, with a dash for less than a second.
func Dash(d time.Duration) string {
	if d < time.Second {
		return "–"
	}
	return Span(d)
}

// Spaced writes one of Pawl's terms with spaces: usage_limit as usage limit.
func Spaced[S ~string](term S) string { return strings.ReplaceAll(string(term), "_", " ") }
