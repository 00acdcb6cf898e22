package agent

import (
	"regexp"
	"strings"
	"time"
)

var (
	clockForm = regexp.MustCompile(`(?i)^(\d{1,2})(?:[:h](\d{2})(?::(\d{2})(?:\.\d+)?)?)?(?:\s*([ap])\.?m\b\.?)?`)
	zoneName  = regexp.MustCompile(`^\s*\(([A-Za-z][A-Za-z0-9_+\-/]{1,40})\)`)
	zoneShort = regexp.MustCompile(`^\s*\(?([A-Z]{2,4}T|[PMCE]T|UTC|GMT)\b`)
	zoneShift = regexp.MustCompile(`^\s*\(?(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?\b`)
)

// clock is a time of day in a zone.
type clock struct {
	hour, minute, second int
	zone                 *time.Location
}

// on returns the clock time on the day so many days after now, in the clock's zone.
func (c clock) on(now time.Time, days int) time.Time {
	y, m, d := now.In(c.zone).Date()
	return time.Date(y, m, d+days, c.hour, c.minute, c.second, 0, c.zone)
}

// clockTime reads "9:06 AM", "3pm (America/Bogota)", "2:55 PM PST", "18:00":
// today, or tomorrow where that is past.
func clockTime(s string, now time.Time, zone *time.Location) (time.Time, bool) {
	c, rest, ok := readClock(s, zone)
	if !ok {
		return time.Time{}, false
	}
	if t, ok := dayAfterClock(c, rest, now); ok {
		return t, true
	}
	t := c.on(now, 0)
	if !t.After(now.Add(-clockGrace)) {
		t = c.on(now, 1)
	}
	return t, true
}

// The day may follow its clock time, with a zone between them.
var (
	thenTomorrow = regexp.MustCompile(`(?i)^[^.;\n]{0,30}?\btomorrow\b`)
	thenDate     = regexp.MustCompile(`(?i)^[^.;\n]{0,30}?\bon\s+`)
)

// dayAfterClock reads what follows in "3pm tomorrow" and "9 AM (UTC) on Nov 24".
func dayAfterClock(c clock, rest string, now time.Time) (time.Time, bool) {
	if thenTomorrow.MatchString(rest) {
		return c.on(now, 1), true
	}
	d, _, ok := readDate(rest[len(thenDate.FindString(rest)):])
	if !ok || !d.valid() || !thenDate.MatchString(rest) {
		return time.Time{}, false
	}
	if d.year != 0 {
		return d.at(c, d.year), true
	}
	return nearest(d, c, now), true
}

// readClock reads a time of day with its zone and returns what follows. A
// single number without minutes, AM or PM is not a time.
func readClock(s string, zone *time.Location) (clock, string, bool) {
	m := clockForm.FindStringSubmatch(s)
	if m == nil || m[2] == "" && m[4] == "" {
		return clock{}, "", false
	}
	c := clock{hour: atoi(m[1]), minute: atoi(m[2]), second: atoi(m[3]), zone: zone}
	if m[4] != "" {
		if c.hour < 1 || c.hour > 12 {
			return clock{}, "", false
		}
		c.hour %= 12
		if strings.EqualFold(m[4], "p") {
			c.hour += 12
		}
	}
	if c.hour > 23 || c.minute > 59 || c.second > 59 {
		return clock{}, "", false
	}
	rest := s[len(m[0]):]
	named, ok := readZone(rest)
	if !ok {
		return clock{}, "", false
	}
	if named != nil {
		c.zone = named
	}
	return c, rest, true
}

// readZone reads the zone after a clock time: nil where there is none, false
// where there is one that nobody can know for certain.
func readZone(s string) (*time.Location, bool) {
	if m := zoneShift.FindStringSubmatch(s); m != nil {
		shift := atoi(m[2])*3600 + atoi(m[3])*60
		if m[1] == "-" {
			shift = -shift
		}
		if shift < -14*3600 || shift > 14*3600 {
			return nil, false
		}
		return time.FixedZone("", shift), true
	}
	if m := zoneShort.FindStringSubmatch(s); m != nil {
		return abbreviated(m[1])
	}
	if m := zoneName.FindStringSubmatch(s); m != nil {
		if m[1] == "Local" {
			return nil, false
		}
		zone, err := time.LoadLocation(m[1])
		return zone, err == nil
	}
	return nil, true
}

// abbreviated knows the abbreviations that stand for one offset in these
// tools' messages. IST, BST and the like mean several, so they are unknown.
func abbreviated(name string) (*time.Location, bool) {
	if place := map[string]string{"PT": "America/Los_Angeles", "MT": "America/Denver", "CT": "America/Chicago", "ET": "America/New_York"}[name]; place != "" {
		zone, err := time.LoadLocation(place)
		return zone, err == nil
	}
	hours, ok := map[string]int{
		"UTC": 0, "GMT": 0,
		"PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5, "EST": -5, "EDT": -4,
		"CET": 1, "CEST": 2, "JST": 9,
	}[name]
	if !ok {
		return nil, false
	}
	return time.FixedZone(name, hours*3600), true
}
