package agent

import (
	"time"

	"github.com/tidwall/gjson"
)

// clock reads a stream's times, for the pauses before calls. Streams without times have none.
type clock struct {
	now time.Time // of the last line, zero if it has none
	end time.Time // of the last answer to a call
}

func (c *clock) line(line []byte) { c.now = moment(gjson.GetBytes(line, "timestamp")) }

// moment is a time in RFC 3339, or in milliseconds since 1970; zero for anything else.
func moment(v gjson.Result) time.Time {
	if v.Type == gjson.String {
		at, _ := time.Parse(time.RFC3339, v.Str) // another form is no time
		return at
	}
	return Milliseconds(v)
}

// Milliseconds is a time from milliseconds since 1970, zero for none.
func Milliseconds(v gjson.Result) time.Time {
	n := Count(v)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

// before is the pause between the last answer and a call's begin; zero if one is unknown.
func (c *clock) before(began time.Time) time.Duration {
	if began.IsZero() || c.end.IsZero() {
		return 0
	}
	return max(began.Sub(c.end), 0)
}
