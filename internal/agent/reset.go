package agent

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // messages name zones, and the image has no zone files
)

// maxResetText bounds how much of a message is searched for a time.
const maxResetText = 4 << 10

// maxAhead is the longest time to wait that is believed; a longer one is a misreading.
const maxAhead = 400 * 24 * time.Hour

var (
	// epochField is a unix time that is named as a reset, or stands behind the
	// bar of Claude Code's "usage limit reached|1760004000".
	epochField = regexp.MustCompile(`(?i)(?:resets?_?at|reset_?time(?:stamp)?|reset_?after_?time|\|)["']?\s*[:=]?\s*["']?(\d{10}|\d{13})(?:\D|$)`)
	// secondsField is a number of seconds to wait, as in headers and error bodies.
	secondsField = regexp.MustCompile(`(?i)(?:resets?_?(?:in|after)_?seconds|retry[-_ ]?after(?:[-_]?seconds)?|retry_?delay)["']?\s*[:=]?\s*["']?(\d{1,8}(?:\.\d+)?)\s*(?:s\b|seconds?\b|["',;.})\]]|\s|$)`)
	// lead is what stands before a time that is a reset. A time without one
	// may be anything, such as the time stamp of a log line.
	lead = regexp.MustCompile(`(?i)\b(?:resets?(?:_?at)?|resetting|again|retry(?:ing)?|until|wait|available|renews?|refills?|restored|resumes?)\b`)
	// filler may stand between the lead and the time.
	filler = regexp.MustCompile(`(?i)^[\s:=~"']*(?:(?:at|on|by|in|after|until|for|about|around|less than|your|um|am|el|le|às|as|em|para|in)\s+|:\s*)*`)
)

// ResetTime reads the time of a reset from a message. Clock times without a
// zone are in zone (nil means UTC), times relative to the message count from
// now, and a clock time that is past means its next occurrence. It answers
// false where the text names no time; it never guesses one.
func ResetTime(text string, now time.Time, zone *time.Location) (time.Time, bool) {
	if len(text) > maxResetText {
		text = text[:maxResetText]
	}
	if zone == nil {
		zone = time.UTC
	}
	text = plainForm(text)
	if at, ok := epochTime(text); ok {
		return at, true
	}
	for _, at := range lead.FindAllStringIndex(text, 32) {
		rest := text[at[1]:]
		between := filler.FindString(rest)
		rest = rest[len(between):]
		if at, ok := countdown(between, rest, now); ok {
			return at, true
		}
		for _, read := range []func(string, time.Time, *time.Location) (time.Time, bool){
			relativeTime, isoTime, datedTime, dayTime, clockTime,
		} {
			if at, ok := read(rest, now, zone); ok {
				return at, true
			}
		}
	}
	if m := secondsField.FindStringSubmatch(text); m != nil {
		if s, err := strconv.ParseFloat(m[1], 64); err == nil {
			return ahead(now, s)
		}
	}
	return time.Time{}, false
}

// hoursLeft is a duration that is written like a clock time.
var hoursLeft = regexp.MustCompile(`(?i)^(\d{1,3}):(\d{2})(?::(\d{2}))?(\s*[ap]\.?m)?\b`)

// countdown reads "in 2:30:00".
func countdown(between, rest string, now time.Time) (time.Time, bool) {
	words := strings.Fields(strings.ToLower(between))
	m := hoursLeft.FindStringSubmatch(rest)
	if len(words) == 0 || words[len(words)-1] != "in" || m == nil || m[4] != "" {
		return time.Time{}, false
	}
	return ahead(now, float64(atoi(m[1])*3600+atoi(m[2])*60+atoi(m[3])))
}

// plainSpaces replaces the spaces that locale-aware formatters put before AM and PM.
var plainSpaces = strings.NewReplacer("\u00a0", " ", "\u202f", " ", "\u2009", " ")

func epochTime(text string) (time.Time, bool) {
	m := epochField.FindStringSubmatch(text)
	if m == nil {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	if len(m[1]) == 13 {
		return time.UnixMilli(n).UTC(), true
	}
	return time.Unix(n, 0).UTC(), true
}

func ahead(now time.Time, seconds float64) (time.Time, bool) {
	if !(seconds >= 0 && seconds <= maxAhead.Seconds()) {
		return time.Time{}, false
	}
	return now.Add(time.Duration(seconds * float64(time.Second))), true
}

// amount is one part of a duration: "2 days", "8h", "28ms".
var amount = regexp.MustCompile(`^(\d{1,9}(?:\.\d{1,6})?)\s*([a-zA-Zµ]+)[\s,]*(?:and\s+)?`)

// relativeTime reads "2 days 17 hours 14 minutes", "8h44m7s", "58 hours".
func relativeTime(s string, now time.Time, _ *time.Location) (time.Time, bool) {
	var seconds float64
	found := false
	for {
		m := amount.FindStringSubmatch(s)
		if m == nil {
			break
		}
		unit := unitSeconds(strings.ToLower(m[2]))
		n, err := strconv.ParseFloat(m[1], 64)
		if unit == 0 || err != nil {
			break
		}
		seconds += n * unit
		found = true
		s = s[len(m[0]):]
		if strings.HasSuffix(m[0], m[2]) && s != "" && s[0] >= '0' && s[0] <= '9' && !amount.MatchString(s) {
			return time.Time{}, false // "15h30" is a clock time
		}
	}
	if !found {
		return time.Time{}, false
	}
	return ahead(now, seconds)
}

func unitSeconds(unit string) float64 {
	switch unit {
	case "ms", "msec", "millisecond", "milliseconds":
		return 0.001
	case "s", "sec", "secs", "second", "seconds":
		return 1
	case "m", "min", "mins", "minute", "minutes":
		return 60
	case "h", "hr", "hrs", "hour", "hours":
		return 3600
	case "d", "day", "days":
		return 86400
	case "w", "week", "weeks":
		return 7 * 86400
	}
	return 0
}
