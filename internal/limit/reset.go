package limit

import (
	"cmp"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // messages name zones; the image has no zone files
)

// maxResetText limits the part of a message searched for a time.
const maxResetText = 4 << 10

var (
	// epochField matches a unix time named as a reset, or after the bar of Claude Code's "usage limit
	// reached|1760004000".
	epochField = regexp.MustCompile(`(?i)(?:resets?_?at|reset_?time(?:stamp)?|reset_?after_?time|\|)["']?\s*[:=]?\s*["']?(\d{10}|\d{13})(?:\D|$)`)
	// secondsField matches seconds to wait, as in headers and error bodies.
	secondsField = regexp.MustCompile(`(?i)(?:resets?_?(?:in|after)_?seconds|retry[-_ ]?after(?:[-_]?seconds)?|retry_?delay)["']?\s*[:=]?\s*["']?(\d{1,8}(?:\.\d+)?)\s*(?:s\b|seconds?\b|["',;.})\]]|\s|$)`)
	// lead precedes a reset time. Other times may be anything, such as a log line's.
	lead = regexp.MustCompile(`(?i)\b(?:resets?(?:_?at)?|resetting|regain access|again|retry(?:ing)?|until|wait|available|renews?|refills?|restored|resumes?)\b`)
	// filler may separate the lead and the time.
	filler = regexp.MustCompile(`(?i)^[\s:=~"']*(?:(?:at|on|by|in|after|until|for|about|around|less than|your|um|am|el|le|às|as|em|para|in)\s+|:\s*)*`)
)

// ResetTime parses a reset time from a message. Clock times without a zone are in zone (nil: UTC); relative ones count
// from now; a past clock time means its next occurrence. A time beyond the window that the text names counts as passed,
// so ResetTime returns now. It returns false if the text names no time.
func ResetTime(text string, now time.Time, zone *time.Location) (time.Time, bool) {
	text = text[:min(len(text), maxResetText)]
	if zone == nil {
		zone = time.UTC
	}
	for _, p := range plainForms {
		text = p.form.ReplaceAllString(text, p.plain)
	}
	at := resetTime(text, now, zone)
	if window := windowOf(text); window > 0 && at.Sub(now) > window {
		at = now
	}
	return at, !at.IsZero()
}

// windows are named windows with their longest lengths. Claude's sessions last five hours.
var windows = []struct {
	words *regexp.Regexp
	lasts time.Duration
}{
	{regexp.MustCompile(`(?i)\b(?:monthly|per month|this month|billing (?:cycle|period))\b`), 31 * 24 * time.Hour},
	{regexp.MustCompile(`(?i)\b(?:weekly|per week|this week|7[- ]days?)\b`), 7*24*time.Hour + time.Hour},
	{regexp.MustCompile(`(?i)\b(?:daily|per day|today)\b`), 25 * time.Hour},
	{regexp.MustCompile(`(?i)\bsession (?:usage |rate )?(?:limits?|quota)\b`), 5*time.Hour + windowGrace},
	{regexp.MustCompile(`(?i)\bhourly\b`), time.Hour + windowGrace},
}

var hourWindow = regexp.MustCompile(`(?i)\b(\d{1,2})[- ]?h(?:(?:ou)?rs?)? (?:\w+ )?(?:limits?|windows?|usage|quotas?|caps?|sessions?)\b`)

// windowGrace allows for resets rounded up to whole minutes.
const windowGrace = 10 * time.Minute

func windowOf(text string) (longest time.Duration) {
	for _, w := range windows {
		if w.words.MatchString(text) {
			longest = max(longest, w.lasts)
		}
	}
	for _, m := range hourWindow.FindAllStringSubmatch(text, 8) {
		longest = max(longest, time.Duration(atoi(m[1]))*time.Hour+windowGrace)
	}
	return longest
}

func resetTime(text string, now time.Time, zone *time.Location) time.Time {
	if m := epochField.FindStringSubmatch(text); m != nil {
		if at := unix(m[1]); !at.IsZero() {
			return at
		}
	}
	for _, led := range lead.FindAllStringIndex(text, 32) {
		rest := text[led[1]:]
		between := filler.FindString(rest)
		rest = rest[len(between):]
		at := cmp.Or(
			countdown(between, rest, now),
			lasting(now, rest),
			datedTime(rest, now, zone),
			dayTime(rest, now, zone),
			clockTime(rest, now, zone),
		)
		if !at.IsZero() {
			return at
		}
	}
	if m := secondsField.FindStringSubmatch(text); m != nil {
		return ahead(now, number(m[1]))
	}
	return time.Time{}
}

// hoursLeft matches a duration written like a clock time.
var hoursLeft = regexp.MustCompile(`(?i)^(\d{1,3}):(\d{2})(?::(\d{2}))?(\s*[ap]\.?m)?\b`)

var in = regexp.MustCompile(`(?i)(?:^|\s)in\s*$`)

// countdown parses "in 2:30:00".
func countdown(between, rest string, now time.Time) time.Time {
	if !in.MatchString(between) {
		return time.Time{}
	}
	m := hoursLeft.FindStringSubmatch(rest)
	if m == nil || m[4] != "" {
		return time.Time{}
	}
	return ahead(now, float64(atoi(m[1])*3600+atoi(m[2])*60+atoi(m[3])))
}

// ahead returns now plus seconds; zero if negative or beyond farthest.
func ahead(now time.Time, seconds float64) time.Time {
	if !between(seconds, 0, farthest.Seconds()) {
		return time.Time{}
	}
	return now.Add(time.Duration(seconds * float64(time.Second)))
}

// amount matches one part of a duration: "2 days", "8h", "28ms".
var amount = regexp.MustCompile(`^(\d{1,9}(?:\.\d{1,9})?)\s*([a-zA-Zµ]+)[\s,]*(?:and\s+)?`)

// lasting parses a duration: "2 days 17 hours 14 minutes", "8h44m7s", "58 hours", "3600s".
func lasting(now time.Time, s string) time.Time {
	seconds := -1.0 // none yet
	for {
		m := amount.FindStringSubmatch(s)
		if m == nil {
			break
		}
		unit := units[strings.ToLower(m[2])]
		if unit == 0 {
			break
		}
		seconds = max(0, seconds) + number(m[1])*unit
		s = s[len(m[0]):]
		glued := strings.HasSuffix(m[0], m[2]) && digit.MatchString(s)
		if glued && !amount.MatchString(s) {
			return time.Time{} // "15h30" is a clock time
		}
	}
	return ahead(now, seconds)
}

var digit = regexp.MustCompile(`^\d`)

var units = map[string]float64{
	"ms": 0.001, "msec": 0.001,
	"millisecond": 0.001, "milliseconds": 0.001,
	"s": 1, "sec": 1, "secs": 1,
	"second": 1, "seconds": 1,
	"m": 60, "min": 60, "mins": 60,
	"minute": 60, "minutes": 60,
	"h": 3600, "hr": 3600, "hrs": 3600,
	"hour": 3600, "hours": 3600,
	"d": 86400, "day": 86400, "days": 86400,
	"w": 7 * 86400, "week": 7 * 86400, "weeks": 7 * 86400,
}

// plainForms rewrite times to digits with AM or PM: locale-aware spaces, words for an amount or a time of day, East
// Asian clock times.
var plainForms = []struct {
	form  *regexp.Regexp
	plain string
}{
	{regexp.MustCompile(`[\x{a0}\x{202f}\x{2009}]`), " "},
	{regexp.MustCompile(`(?i)\ban? (minute|hour|day|week)\b`), "1 $1"},
	{regexp.MustCompile(`(?i)\bmidnight\b`), "12:00 AM"},
	{regexp.MustCompile(`(?i)\bnoon\b`), "12:00 PM"},
	{regexp.MustCompile(`(\d{1,2})\s?[時时시]\s?(\d{1,2})\s?[分분]?`), "$1:$2"},
	{regexp.MustCompile(`(?:오전|午前|上午)\s?(\d{1,2}:\d{2}(?::\d{2})?)`), "$1 AM"},
	{regexp.MustCompile(`(?:오후|午後|下午)\s?(\d{1,2}:\d{2}(?::\d{2})?)`), "$1 PM"},
}
