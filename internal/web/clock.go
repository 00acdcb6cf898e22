package web

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
)

// moment is a time as a page shows it: short, with the whole time behind it.
type moment struct{ Text, Full, ISO string }

// ago is a time in the past; the zero time shows as nothing.
func ago(now, t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	if d := now.Sub(t); d >= time.Second {
		return at(t, checkrun.Span(d)+" ago")
	}
	return at(t, "now")
}

// until is a time to come; the zero time shows as nothing.
func until(now, t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	return at(t, checkrun.Left(now, t))
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

// written matches a time as decisions write it, RFC 3339 in UTC.
var written = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// readable writes the times in a sentence as people do.
func readable(now time.Time, s string) string {
	return written.ReplaceAllStringFunc(s, func(w string) string {
		t, err := time.Parse(time.RFC3339, w)
		if err != nil {
			return w
		}
		return checkrun.Instant(now, t)
	})
}

// dash is a duration, and a dash for what did not take a second.
func dash(d time.Duration) string {
	if d < time.Second {
		return "–"
	}
	return checkrun.Span(d)
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
