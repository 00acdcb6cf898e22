package agent

import (
	"time"

	"github.com/tidwall/gjson"
)

// clock computes the pauses before calls from a stream's timestamps, if it has any.
type clock struct {
	now time.Time // the last line's time; zero if none
	end time.Time // the last answer's time
}

func (c *clock) line(line []byte) { c.now = moment(gjson.GetBytes(line, "timestamp")) }

// moment parses RFC 3339 or milliseconds since 1970; otherwise it returns zero.
func moment(v gjson.Result) time.Time {
	if v.Type == gjson.String {
		at, _ := time.Parse(time.RFC3339, v.Str) // other formats give no time
		return at
	}
	return Milliseconds(v)
}

// Milliseconds converts milliseconds since 1970 to a time; zero for none.
func Milliseconds(v gjson.Result) time.Time {
	n := Count(v)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

// before returns the pause between the last answer and a call's start; zero if unknown.
func (c *clock) before(began time.Time) time.Duration {
	if began.IsZero() || c.end.IsZero() {
		return 0
	}
	return max(began.Sub(c.end), 0)
}
