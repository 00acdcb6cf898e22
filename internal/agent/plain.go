package agent

import (
	"fmt"
	"strings"
	"time"
)

// Bounds of what is kept of a plain stream. It is the evidence of the run, so
// it is kept whole unless it is very long.
const (
	plainHead = 2 << 20
	plainTail = 2 << 20
)

// lastLines is how many of the last lines of each stream are looked at for a limit message.
const lastLines = 5

// maxRefusal is how many lines the output of a run has that was refused at once.
const maxRefusal = 3

// concludePlain judges a stream without structure: by the exit code, and where
// that says failure by last lines that are a limit message and nothing else.
func (t *tally) concludePlain(output string, why stop, now time.Time, zone *time.Location) Report {
	r := &t.rep
	r.output, r.Killed = output, why.ending != ""
	message := ""
	switch {
	case why.ending != "":
		r.Ending = why.ending
		r.because(why.reason)
	case t.onlyRefused(output):
		message = t.plainFailure(output)
	case r.ExitKnown && r.Exit.Code == 0 && r.Exit.Signal == "":
		r.Ending = Completed
		r.because("exit code 0")
	case r.ExitKnown && r.Exit.Code == exitTimeout:
		r.Ending = TimedOut
		r.because("exit code 124: the time ran out")
	case r.ExitKnown && fromSignal(r.Exit):
		r.Ending = Killed
		r.because("the process was ended by " + signalName(r.Exit))
	default:
		message = t.plainFailure(output)
	}
	r.FinalMessage = lastOf(output)
	resets, source := t.reset(message, now, zone)
	t.weigh(message, resets, now)
	r.setLimit(message, resets, source, now)
	return *r
}

// onlyRefused reports whether a run that claims success printed a limit message
// and next to nothing else: some CLIs exit with 0 after a refusal.
func (t *tally) onlyRefused(output string) bool {
	if !t.rep.ExitKnown || t.rep.Exit.Code != 0 || t.rep.Exit.Signal != "" {
		return false
	}
	lines := tailLines(output, maxRefusal+1)
	if len(lines) == 0 || len(lines) > maxRefusal {
		return false
	}
	_, refused := isLimitMessage(lines[len(lines)-1])
	return refused
}

func (t *tally) plainFailure(output string) string {
	r := &t.rep
	for _, stream := range []string{r.Stderr, output} {
		for _, line := range tailLines(stream, lastLines) {
			if ending, ok := isLimitMessage(line); ok {
				r.Ending = ending
				r.because("one of the last lines is a limit message: " + shorten(line, 300))
				r.Failure = shorten(line, maxText)
				return r.Failure
			}
		}
	}
	if !r.ExitKnown {
		r.Ending = Completed
		r.because("the exit code is unknown and no limit message stands at the end")
		return ""
	}
	r.Ending = Crashed
	said := lastOf(r.Stderr)
	if said == "" {
		said = lastOf(output)
	}
	r.Failure = said
	r.because(fmt.Sprintf("exit code %d: %s", r.Exit.Code, shorten(said, 300)))
	return ""
}

// tailLines returns the last n lines that are not blank, the last one first.
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
		return shorten(lines[0], maxText)
	}
	return ""
}
