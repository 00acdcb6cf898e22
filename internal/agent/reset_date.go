package agent

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The forms of a date, each followed by a clock time.
var (
	isoDate    = regexp.MustCompile(`^(\d{4})-(\d{2})-(\d{2})[tT ,]\s*`)
	monthDay   = regexp.MustCompile(`^(?:\pL{3,9}\.?,\s+)?(\pL{3,10})\.?\s+(\d{1,2})(?:st|nd|rd|th)?\b(?:,?\s+(\d{4})\b)?`)
	dayMonth   = regexp.MustCompile(`^(?:\pL{3,10}\.?,\s+)?(\d{1,2})(?:st|nd|rd|th|\.|º)?[\s\-]+(?:de\s+|of\s+)?(\pL{3,10})\.?(?:(?:,?\s+|-)(?:de\s+|del\s+)?(\d{4})\b)?`)
	dotted     = regexp.MustCompile(`^(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})\b`)
	slashed    = regexp.MustCompile(`^(\d{1,2})/(\d{1,2})/(\d{4})\b`)
	yearFirst  = regexp.MustCompile(`^(\d{4})\s?[/.年년]\s?(\d{1,2})\s?[/.月월]\s?(\d{1,2})\s?[.日일]?`)
	dotClock   = regexp.MustCompile(`^(\d{1,2})\.(\d{2})\b`)
	dateGlue   = regexp.MustCompile(`(?i)^(?:\s|,|·|г\.|(?:at|à|um|às|a las|alle|om|kl\.?|klo|saat|в|o)\s)*`)
	isoZone    = regexp.MustCompile(`^\s*(?:Z|z)(?:\W|$)`)
	dayName    = regexp.MustCompile(`(?i)^(today|tomorrow|mon|tue|wed|thu|fri|sat|sun)(?:day|s|sday|nes|nesday|rs|rsday|ur|urday)?\b,?\s+(?:at\s+)?`)
	clockGrace = time.Minute // a clock time names whole minutes, so it is past only after its minute
)

// date is a calendar day; a zero year is one that the text does not name.
type date struct {
	year  int
	month time.Month
	day   int
}

func (d date) at(c clock, year int) time.Time {
	return time.Date(year, d.month, d.day, c.hour, c.minute, c.second, 0, c.zone)
}

// valid reports whether the day exists; 29 February does without a year.
func (d date) valid() bool {
	year := d.year
	if year == 0 {
		year = 2024
	}
	t := time.Date(year, d.month, d.day, 0, 0, 0, 0, time.UTC)
	return year >= 2000 && year < 2200 && d.month >= 1 && d.month <= 12 && t.Month() == d.month && t.Day() == d.day
}

// isoTime reads "2026-11-24T08:19:00Z" and "2026-11-24 08:19".
func isoTime(s string, _ time.Time, zone *time.Location) (time.Time, bool) {
	m := isoDate.FindStringSubmatch(s)
	if m == nil {
		return time.Time{}, false
	}
	d := date{atoi(m[1]), time.Month(atoi(m[2])), atoi(m[3])}
	rest := s[len(m[0]):]
	c, after, ok := readClock(rest, zone)
	if !ok || !d.valid() {
		return time.Time{}, false
	}
	if isoZone.MatchString(after) {
		c.zone = time.UTC
	}
	return d.at(c, d.year), true
}

// datedTime reads "Nov 24th, 2026 8:19 AM", "Oct 31, 9am", "April 20, 2026 at
// 2:00 AM", "10 de jul. de 2026, 11:52" and "24.11.2026, 08:19".
func datedTime(s string, now time.Time, zone *time.Location) (time.Time, bool) {
	d, rest, ok := readDate(s)
	if !ok || !d.valid() {
		return time.Time{}, false
	}
	rest = dotClock.ReplaceAllString(rest[len(dateGlue.FindString(rest)):], "$1:$2")
	c, _, ok := readClock(rest, zone)
	if !ok {
		return time.Time{}, false
	}
	if d.year != 0 {
		return d.at(c, d.year), true
	}
	return nearest(d, c, now), true
}

func readDate(s string) (date, string, bool) {
	if m := monthDay.FindStringSubmatch(s); m != nil {
		if month := monthOf(m[1]); month != 0 {
			return date{atoi(m[3]), month, atoi(m[2])}, s[len(m[0]):], true
		}
	}
	if m := dayMonth.FindStringSubmatch(s); m != nil {
		if month := monthOf(m[2]); month != 0 {
			return date{atoi(m[3]), month, atoi(m[1])}, s[len(m[0]):], true
		}
	}
	if m := dotted.FindStringSubmatch(s); m != nil {
		return date{atoi(m[3]), time.Month(atoi(m[2])), atoi(m[1])}, s[len(m[0]):], true
	}
	if m := yearFirst.FindStringSubmatch(s); m != nil {
		return date{atoi(m[1]), time.Month(atoi(m[2])), atoi(m[3])}, s[len(m[0]):], true
	}
	if m := slashed.FindStringSubmatch(s); m != nil {
		first, second := atoi(m[1]), atoi(m[2])
		switch {
		case first > 12:
			return date{atoi(m[3]), time.Month(second), first}, s[len(m[0]):], true
		case second > 12:
			return date{atoi(m[3]), time.Month(first), second}, s[len(m[0]):], true
		}
		// Day and month cannot be told apart.
	}
	return date{}, "", false
}

// nearest finds the year of a date without one: the occurrence nearest to now.
// "Jan 2" read in December is next year's, "Nov 20" read on Nov 21 is
// yesterday's and not one in a year.
func nearest(d date, c clock, now time.Time) time.Time {
	year := now.In(c.zone).Year()
	best := d.at(c, year)
	for _, y := range []int{year - 1, year + 1} {
		if t := d.at(c, y); t.Sub(now).Abs() < best.Sub(now).Abs() && t.Day() == d.day {
			best = t
		}
	}
	return best
}

// dayTime reads "tomorrow at 9am" and "Monday 18:00".
func dayTime(s string, now time.Time, zone *time.Location) (time.Time, bool) {
	m := dayName.FindStringSubmatch(s)
	if m == nil {
		return time.Time{}, false
	}
	c, _, ok := readClock(s[len(m[0]):], zone)
	if !ok {
		return time.Time{}, false
	}
	day := strings.ToLower(m[1])
	for ahead := range 8 {
		t := c.on(now, ahead)
		switch {
		case day == "today" && ahead == 0, day == "tomorrow" && ahead == 1:
			return t, true
		case strings.ToLower(t.Weekday().String()[:3]) == day && t.After(now.Add(-clockGrace)):
			return t, true
		}
	}
	return time.Time{}, false
}

// atoi reads digits that a regexp has matched; the empty string is 0.
func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
