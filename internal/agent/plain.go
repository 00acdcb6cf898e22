package agent

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

// Limits for a plain stream's kept output, in bytes.
const (
	plainHead = 2 << 20
	plainTail = 2 << 20
)

// lastLines is the number of last lines in each stream that are checked for limit messages.
const lastLines = 5

// maxRefusal limits the output lines of a run that was refused at once.
const maxRefusal = 3

// decidePlain judges a stream without structure by the exit code. Unless the code is 0, limit messages in the last
// lines take precedence.
func (t *tally) decidePlain() Event {
	r := &t.rep
	if r.ExitKnown && r.Exit.Code == 0 {
		if e, ok := onlyRefused(r.output); ok {
			return t.judge(e, "exit code 0, but the whole output is the error")
		}
		r.end(policy.Completed, "exit code 0")
		return Event{}
	}
	for _, stream := range []string{r.Stderr, r.output} {
		for _, line := range tailLines(stream, lastLines) {
			found := limit.Read(limit.Evidence{Seen: limit.Plain, Message: line})
			if found.Kind.IsLimit() {
				r.end(found.Kind, "one of the last lines is a limit message: "+Shorten(line, 300))
				r.Failure = Shorten(line, MaxText)
				return Event{Kind: Notice, Text: line}
			}
		}
	}
	if !r.ExitKnown {
		r.end(policy.Completed, "the exit code is unknown and the output does not end with a limit message")
		return Event{}
	}
	r.Failure = cmp.Or(lastOf(r.Stderr), r.FinalMessage)
	r.end(policy.Crashed, fmt.Sprintf("exit code %d: %s", r.Exit.Code, Shorten(r.Failure, 300)))
	return Event{}
}

// onlyRefused finds the error of a run that exits with 0 and printed little else, as some CLIs do after a refusal.
func onlyRefused(output string) (Event, bool) {
	lines := tailLines(output, maxRefusal+1)
	if len(lines) == 0 || len(lines) > maxRefusal {
		return Event{}, false
	}
	first := lines[len(lines)-1]
	_, refused := limit.Instead(limit.Evidence{Message: first})
	return Event{Kind: Notice, Text: first}, refused
}

func tailLines(s string, n int) []string {
	var lines []string
	for len(s) > 0 && len(lines) < n {
		i := strings.LastIndexByte(s, '\n')
		if line := strings.TrimSpace(s[i+1:]); line != "" {
			lines = append(lines, line)
		}
		s = s[:max(i, 0)]
	}
	return lines
}

func lastOf(s string) string {
	if lines := tailLines(s, 1); len(lines) == 1 {
		return Shorten(lines[0], MaxText)
	}
	return ""
}
