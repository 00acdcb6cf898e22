package checkrun

import (
	"fmt"
	"strings"
	"time"
)

// Instant writes a time in UTC, with the date where it is not today's.
func Instant(now, t time.Time) string {
	now, t = now.UTC(), t.UTC()
	if now.Format(time.DateOnly) == t.Format(time.DateOnly) {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

// stamp writes a time in UTC with its date.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// Left writes how long it is until a time, and the time itself: 5h 12m left
// (until 14:03 UTC).
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

// Span writes a duration with its two biggest units: 2d 3h, 5h 12m, 4m 5s.
func Span(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	units := []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.of {
			continue
		}
		s := number(int64(d/u.of)) + u.name
		if i+1 < len(units) {
			if rest := d % u.of / units[i+1].of; rest > 0 {
				s += fmt.Sprintf(" %d%s", rest, units[i+1].name)
			}
		}
		return s
	}
	return "0s"
}

// dash is Span, with a dash for nothing.
func dash(d time.Duration) string {
	if d < time.Second {
		return "–"
	}
	return Span(d)
}

// number writes a count with commas.
func number(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return number(int64(n)) + " " + thing + "s"
}

// bar draws a share, 0..1, in ten steps.
func bar(share float64) string {
	n := int(clamp(share)*10 + 0.5)
	return strings.Repeat("▇", n) + strings.Repeat("▁", 10-n)
}

// clamp keeps a share in 0..1; what is no number is 0.
func clamp(share float64) float64 {
	if !(share > 0) {
		return 0
	}
	return min(1, share)
}
