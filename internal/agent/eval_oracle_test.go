//go:build eval

package agent_test

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The oracle reads a corpus message's reset independently of ResetTime: it uses the message's format label and one strict
// layout per format.
var (
	oracleAmount = regexp.MustCompile(`(\d+)\s*(days?|hours?|minutes?|seconds?|ms|d|h|m|s)`)
	oracleClock  = regexp.MustCompile(`(?i)(\d{1,2}(?::\d{2})?\s?[ap]m|\d{1,2}:\d{2})(?: (PST)| \(([A-Za-z_]+/[A-Za-z_]+)\))?\W*(?:$|\n| or )`)
	oracleDate   = regexp.MustCompile(`(\d{1,2} de jul\. de \d{4}, \d\d:\d\d|[A-Z][a-z]{2,8} \d{1,2}(?:st|nd|rd|th)?(?:, \d{4})?(?:,| at)? \d{1,2}(?::\d\d)? ?[apAP][mM])(?: \(([A-Za-z_]+/[A-Za-z_]+)\))?`)
	oracleSuffix = regexp.MustCompile(`(\d)(?:st|nd|rd|th)`)
)

// oracle returns a time at which the message could have been read and the reset that it names at that time. It returns
// false if the format names none.
func oracle(format, text string, now time.Time) (time.Time, time.Time, bool) {
	switch {
	case strings.HasPrefix(format, "none"):
		return now, time.Time{}, false
	case strings.HasPrefix(format, "relative"):
		_, rest, _ := cutLast(text, []string{"again in ", "reset after ", "retry after ", "retrying in ", "Resets in ", "wait "})
		rest, _, _ = strings.Cut(rest, ".")
		rest, _, _ = strings.Cut(rest, "attempt")
		at := now
		for _, m := range oracleAmount.FindAllStringSubmatch(rest, -1) {
			n, _ := strconv.Atoi(m[1])
			unit := map[byte]time.Duration{'d': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}[m[2][0]]
			if m[2] == "ms" {
				unit = time.Millisecond
			}
			at = at.Add(time.Duration(n) * unit)
		}
		return now, at, true
	case strings.HasPrefix(format, "epoch"):
		_, digits, _ := strings.Cut(text, "|")
		n, _ := strconv.ParseInt(digits, 10, 64)
		return time.Unix(n, 0).Add(-time.Hour), time.Unix(n, 0), true
	case strings.HasPrefix(format, "date"):
		m := oracleDate.FindStringSubmatch(text)
		return oracleDated(m[1], m[2])
	case strings.HasPrefix(format, "clock"):
		m := oracleClock.FindStringSubmatch(text)
		zone := time.UTC
		if m[2] == "PST" {
			zone = time.FixedZone("PST", -8*3600)
		} else if m[3] != "" {
			zone, _ = time.LoadLocation(m[3])
		}
		for _, layout := range []string{"3:04 PM", "3:04pm", "3pm", "15:04"} {
			c, err := time.Parse(layout, m[1])
			if err != nil {
				continue
			}
			y, month, d := now.In(zone).Date()
			at := time.Date(y, month, d, c.Hour(), c.Minute(), 0, 0, zone)
			if at.Before(now) {
				at = time.Date(y, month, d+1, c.Hour(), c.Minute(), 0, 0, zone)
			}
			return at.Add(-time.Hour), at, true // an hour ahead lies within every window that a message names
		}
	}
	return now, time.Time{}, false
}

func oracleDated(text, place string) (time.Time, time.Time, bool) {
	zone := time.UTC
	if place != "" {
		zone, _ = time.LoadLocation(place)
	}
	text = strings.NewReplacer(" de jul. de ", " Jul ").Replace(oracleSuffix.ReplaceAllString(text, "$1"))
	for _, layout := range []string{"Jan 2, 2006 3:04 PM", "January 2, 2006 at 3:04 PM", "2 Jan 2006, 15:04"} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at.Add(-50 * time.Hour), at, true
		}
	}
	for _, layout := range []string{"Jan 2, 3:04pm", "Jan 2, 3pm", "Jan 2 at 3:04pm"} {
		if at, err := time.ParseInLocation(layout+" 2006", text+" 2027", zone); err == nil {
			return at.Add(-100 * time.Hour), at, true // for a date in January, read at the end of 2026
		}
	}
	return time.Time{}, time.Time{}, false
}

// cutLast cuts text at the last of the marks.
func cutLast(text string, marks []string) (string, string, bool) {
	for _, mark := range marks {
		if i := strings.LastIndex(text, mark); i >= 0 {
			return text[:i], text[i+len(mark):], true
		}
	}
	return text, "", false
}
