package limit

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	clockForm = regexp.MustCompile(`(?i)^(\d{1,2})(?:[:h](\d{2})(?::(\d{2})(?:\.\d+)?)?)?(?:\s*([ap])\.?m\b\.?)?`)
	zoneName  = regexp.MustCompile(`^\s*\(([A-Za-z][A-Za-z0-9_+\-/]{1,40})\)`)
	zoneShort = regexp.MustCompile(`^\s*(?:\(?([A-Z]{2,4}T|[PMCE]T|UTC|GMT)\b|[Zz](?:\W|$))`)
	zoneShift = regexp.MustCompile(`^\s*\(?(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?\b`)
)

type clock struct {
	hour, minute, second int
	zone                 *time.Location
}

func (c clock) on(now time.Time, days int) time.Time {
	y, m, d := now.In(c.zone).Date()
	return time.Date(y, m, d+days, c.hour, c.minute, c.second, 0, c.zone)
}

// clockTime parses "9:06 AM", "3pm (America/Bogota)", "2:55 PM PST" or "18:00". The time is today's, or tomorrow's if
// it passed more than clockGrace ago.
func clockTime(s string, now time.Time, zone *time.Location) time.Time {
	c, rest, ok := readClock(s, zone)
	if !ok {
		return time.Time{}
	}
	if thenTomorrow.MatchString(rest) {
		return c.on(now, 1)
	}
	if on := thenDate.FindString(rest); on != "" {
		if d, _, ok := readDate(rest[len(on):]); ok {
			return d.on(c, now)
		}
	}
	if t := c.on(now, 0); t.After(now.Add(-clockGrace)) {
		return t
	}
	return c.on(now, 1)
}

// The day may follow the clock time and the zone: "3pm tomorrow", "9 AM (UTC) on Nov 24".
var (
	thenTomorrow = regexp.MustCompile(`(?i)^[^.;\n]{0,30}?\btomorrow\b`)
	thenDate     = regexp.MustCompile(`(?i)^[^.;\n]{0,30}?\bon\s+`)
)

// readClock parses a time of day with its zone, and returns the rest. A bare hour without minutes, AM or PM is no time.
func readClock(s string, zone *time.Location) (clock, string, bool) {
	m := clockForm.FindStringSubmatch(s)
	if m == nil {
		return clock{}, "", false
	}
	minutes, half := m[2], m[4]
	if minutes == "" && half == "" {
		return clock{}, "", false
	}
	c := clock{
		hour:   hourOf(atoi(m[1]), half),
		minute: atoi(minutes),
		second: atoi(m[3]),
	}
	if c.hour > 23 || c.minute > 59 || c.second > 59 {
		return clock{}, "", false
	}
	rest := s[len(m[0]):]
	var ok bool
	c.zone, ok = readZone(rest, zone)
	return c, rest, ok
}

func hourOf(hour int, half string) int {
	switch {
	case half == "":
		return hour
	case hour < 1, hour > 12:
		return 24
	case strings.EqualFold(half, "p"):
		return hour%12 + 12
	}
	return hour % 12
}

// readZone parses the zone after a clock time; false if ambiguous.
func readZone(s string, otherwise *time.Location) (*time.Location, bool) {
	if m := zoneShift.FindStringSubmatch(s); m != nil {
		shift := atoi(m[2])*3600 + atoi(m[3])*60
		if shift > 14*3600 {
			return nil, false
		}
		if m[1] == "-" {
			shift = -shift
		}
		return time.FixedZone("", shift), true
	}
	if m := zoneShort.FindStringSubmatch(s); m != nil {
		return zoneNamed(zones[m[1]])
	}
	if m := zoneName.FindStringSubmatch(s); m != nil {
		return zoneNamed(m[1])
	}
	return otherwise, true
}

func zoneNamed(name string) (*time.Location, bool) {
	switch name {
	case "", "Local":
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// zones maps unambiguous abbreviations in these tools' messages to zones. Names such as Etc/GMT+8 have POSIX's inverted
// sign. IST, BST and the like are ambiguous.
var zones = map[string]string{
	"": "UTC", "UTC": "UTC", "GMT": "UTC",
	"PT":  "America/Los_Angeles",
	"MT":  "America/Denver",
	"CT":  "America/Chicago",
	"ET":  "America/New_York",
	"PST": "Etc/GMT+8", "PDT": "Etc/GMT+7",
	"MST": "Etc/GMT+7", "MDT": "Etc/GMT+6",
	"CST": "Etc/GMT+6", "CDT": "Etc/GMT+5",
	"EST": "Etc/GMT+5", "EDT": "Etc/GMT+4",
	"CET": "Etc/GMT-1", "CEST": "Etc/GMT-2",
	"JST": "Etc/GMT-9",
}

// Forms of a date; the first match counts. A month is a name or a number. A date with slashes counts only if its day is
// above 12.
var dateForms = []*regexp.Regexp{
	regexp.MustCompile(`^(?P<y>\d{4})\s?[-/.年년]\s?(?P<m>\d{1,2})\s?[-/.月월]\s?(?P<d>\d{1,2})\s?[.日일tT]?`),
	regexp.MustCompile(`^(?:\pL{3,9}\.?,\s+)?(?P<m>\pL{3,10})\.?\s+(?P<d>\d{1,2})(?:st|nd|rd|th)?\b(?:,?\s+(?P<y>\d{4})\b)?`),
	regexp.MustCompile(`^(?:\pL{3,10}\.?,\s+)?(?P<d>\d{1,2})(?:st|nd|rd|th|\.|º)?[\s\-]+(?:de\s+|of\s+)?(?P<m>\pL{3,10})\.?(?:(?:,?\s+|-)(?:de\s+|del\s+)?(?P<y>\d{4})\b)?`),
	regexp.MustCompile(`^(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>\d{4})\b`),
	regexp.MustCompile(`^(?P<d>1[3-9]|[2-9]\d)/(?P<m>\d{1,2})/(?P<y>\d{4})\b`),
	regexp.MustCompile(`^(?P<m>\d{1,2})/(?P<d>1[3-9]|[2-9]\d)/(?P<y>\d{4})\b`),
}

var (
	dotClock = regexp.MustCompile(`^(\d{1,2})\.(\d{2})\b`)
	dateGlue = regexp.MustCompile(`(?i)^(?:\s|,|·|г\.|(?:at|à|um|às|a las|alle|om|kl\.?|klo|saat|в|o)\s)*`)
	dayName  = regexp.MustCompile(`(?i)^(today|tomorrow|mon|tue|wed|thu|fri|sat|sun)(?:day|s|sday|nes|nesday|rs|rsday|ur|urday)?\b,?\s+(?:at\s+)?`)
)

// clockGrace is how long a past clock time still means today: CLIs repeat a message after its reset. Our choice.
const clockGrace = time.Hour

// date is a calendar day; year is 0 if missing.
type date struct {
	year  int
	month time.Month
	day   int
}

// on returns the date at a clock time. Without a year it is the nearest date to now: "Jan 2" in December is next
// year's.
func (d date) on(c clock, now time.Time) (nearest time.Time) {
	year := now.In(c.zone).Year()
	years := []int{year, year - 1, year + 1}
	if d.year != 0 {
		years = []int{d.year}
	}
	for _, y := range years {
		t := time.Date(y, d.month, d.day, c.hour, c.minute, c.second, 0, c.zone)
		if nearest.IsZero() {
			nearest = t
			continue
		}
		nearer := t.Sub(now).Abs() < nearest.Sub(now).Abs()
		if nearer && t.Day() == d.day {
			nearest = t
		}
	}
	return nearest
}

// valid reports whether the day exists. Without a year, 29 February is valid.
func (d date) valid() bool {
	year := cmp.Or(d.year, 2024)
	if !between(year, 2000, 2199) {
		return false
	}
	if !between(d.month, 1, 12) {
		return false
	}
	t := time.Date(year, d.month, d.day, 0, 0, 0, 0, time.UTC)
	return t.Month() == d.month && t.Day() == d.day
}

// datedTime parses "Nov 24th, 2026 8:19 AM", "Nov 24 (UTC)", "Oct 31, 9am", "10 de jul. de 2026, 11:52", "24.11.2026,
// 08:19" and "2026-11-24T08:19:00Z".
func datedTime(s string, now time.Time, zone *time.Location) time.Time {
	d, rest, ok := readDate(s)
	if !ok {
		return time.Time{}
	}
	rest = dotClock.ReplaceAllString(rest[len(dateGlue.FindString(rest)):], "$1:$2")
	c, _, ok := readClock(rest, zone)
	if ok {
		return d.on(c, now)
	}
	if digit.MatchString(rest) {
		return time.Time{} // an invalid clock time
	}
	zone, ok = readZone(rest, zone)
	if !ok {
		return time.Time{}
	}
	return d.on(clock{zone: zone}, now) // midnight
}

func readDate(s string) (date, string, bool) {
	for _, form := range dateForms {
		m := form.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		named := func(name string) string { return m[form.SubexpIndex(name)] }
		d := date{atoi(named("y")), monthOf(named("m")), atoi(named("d"))}
		if d.valid() {
			return d, s[len(m[0]):], true
		}
	}
	return date{}, "", false
}

func dayTime(s string, now time.Time, zone *time.Location) time.Time {
	m := dayName.FindStringSubmatch(s)
	if m == nil {
		return time.Time{}
	}
	c, _, ok := readClock(s[len(m[0]):], zone)
	if !ok {
		return time.Time{}
	}
	day := strings.ToLower(m[1])
	switch day {
	case "today":
		return c.on(now, 0)
	case "tomorrow":
		return c.on(now, 1)
	}
	for ahead := range 8 {
		t := c.on(now, ahead)
		named := strings.ToLower(t.Weekday().String()[:3])
		if named == day && t.After(now.Add(-clockGrace)) {
			return t
		}
	}
	return time.Time{}
}

// monthNames holds the months' first letters in English, German, French (June and July need four), Italian, Portuguese,
// Spanish, Dutch, Swedish, Polish, Russian and Turkish.
var monthNames = [...]string{
	time.January:   "jan ene gen jän янв sty oca",
	time.February:  "feb fev fév фев lut şub",
	time.March:     "mar mär mrz mrt мар",
	time.April:     "apr abr avr апр kwi nis",
	time.May:       "may mai mag mei maj май мая",
	time.June:      "jun giu juin июн cze haz",
	time.July:      "jul lug juil июл lip tem",
	time.August:    "aug ago aoû aou авг sie ağu",
	time.September: "sep set сен wrz eyl",
	time.October:   "oct okt out ott окт paź eki",
	time.November:  "nov ноя lis kas",
	time.December:  "dec dez déc dic дек gru ara",
}

func monthOf(name string) time.Month {
	if n := atoi(name); n > 0 {
		return time.Month(n)
	}
	r := []rune(strings.ToLower(name))
	for _, n := range []int{4, 3} {
		for month, names := range monthNames {
			if len(r) >= n && slices.Contains(strings.Fields(names), string(r[:n])) {
				return time.Month(month)
			}
		}
	}
	return 0
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
