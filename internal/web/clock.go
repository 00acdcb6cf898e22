package web

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// moment is a time as a page shows it: short, with the whole time behind it.
type moment struct{ Text, Full, ISO string }

// ago is a time in the past; the zero time shows as nothing.
func ago(now, t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	if d := now.Sub(t); d >= time.Second {
		return at(t, span(d)+" ago")
	}
	return at(t, "now")
}

// until is a time to come; the zero time shows as nothing.
func until(now, t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	return at(t, left(now, t))
}

// logged is a time to the second, with the date where it is not today's.
func logged(now, t time.Time) moment {
	now, t = now.UTC(), t.UTC()
	if now.Format(time.DateOnly) == t.Format(time.DateOnly) {
		return at(t, t.Format(time.TimeOnly))
	}
	return at(t, t.Format(time.DateTime))
}

func at(t time.Time, text string) moment {
	t = t.UTC()
	return moment{Text: text, Full: t.Format("2006-01-02 15:04:05 UTC"), ISO: t.Format(time.RFC3339)}
}

// left says how long it is until a time, and the time itself.
func left(now, t time.Time) string {
	d := t.Sub(now)
	switch {
	case d <= 0:
		return "due since " + instant(now, t)
	case d < time.Minute:
		return "under a minute left (until " + instant(now, t) + ")"
	}
	return span(d.Truncate(time.Minute)) + " left (until " + instant(now, t) + ")"
}

// instant is a time in UTC, with the date where it is not today's.
func instant(now, t time.Time) string {
	now, t = now.UTC(), t.UTC()
	if now.Format(time.DateOnly) == t.Format(time.DateOnly) {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

// written matches a time as decisions write it, RFC 3339 in UTC.
var written = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// readable writes the times in a sentence as people do.
func readable(now time.Time, s string) string {
	return written.ReplaceAllStringFunc(s, func(w string) string {
		t, err := time.Parse(time.RFC3339, w)
		if err != nil {
			return w
		}
		return instant(now, t)
	})
}

// span is a duration in its two biggest units: 2d 3h, 5h 12m, 4m 5s, 12s.
func span(d time.Duration) string {
	units := []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.of {
			continue
		}
		s := fmt.Sprintf("%d%s", d/u.of, u.name)
		if i+1 < len(units) {
			if rest := d % u.of / units[i+1].of; rest > 0 {
				s += fmt.Sprintf(" %d%s", rest, units[i+1].name)
			}
		}
		return s
	}
	return "0s"
}

// dash is span, and a dash for what did not take a second.
func dash(d time.Duration) string {
	if d < time.Second {
		return "–"
	}
	return span(d)
}

// number is a count with thin spaces between thousands.
func number(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u2009" + s[i:]
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

// spaced writes a machine's word as people do.
func spaced(word string) string { return strings.ReplaceAll(word, "_", " ") }
