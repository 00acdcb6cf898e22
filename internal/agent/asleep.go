package agent

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// longestSleep is how long a CLI may wait on its own before it asks a provider
// again. A longer wait is Pawl's to make: stored, it costs nothing.
const longestSleep = time.Minute

// nap is what a CLI says of a wait before it asks its provider again.
type nap struct {
	wait time.Duration
	text string
}

// stop is how a run ends whose CLI went to sleep for long.
func (n nap) stop() stop {
	e := Event{Kind: Notice, Text: n.text}
	if e.Ending, _ = classifyFailure(n.text); !e.Ending.isLimit() {
		e.Ending = RateLimited
	}
	return stop{Killed, fmt.Sprintf("killed because it went to sleep for %s, which is Pawl's to wait", n.wait.Round(time.Second)), e}
}

// maxNapLine is how much of a line of standard error is looked at.
const maxNapLine = 16 << 10

// napWatch looks for a long sleep in what is written to it. CLIs may tell of it
// in two lines, so each is looked at together with the one before.
type napWatch struct {
	asleep func(lines string) (nap, bool)
	// told is called for each wait that is longer than longestSleep.
	told       func(nap)
	line, last []byte
}

// Write never fails.
func (w *napWatch) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		w.line = append(w.line, part[:min(len(part), maxNapLine-len(w.line))]...)
		if rest = after; !ended {
			break
		}
		if n, ok := w.asleep(string(w.last) + "\n" + string(w.line)); ok && n.wait > longestSleep {
			w.told(n)
		}
		w.last, w.line = w.line, w.last[:0]
	}
	return len(p), nil
}

// geminiSleeps matches what gemini says of a failed try and of the wait before
// the next, jitter included, in milliseconds.
var geminiSleeps = regexp.MustCompile(`(?:^|\n)(Attempt \d+ failed\b.*(?:\nSuggested retry after .*)?) Retrying after (\d{1,12})ms\.{3}$`)

func geminiAsleep(lines string) (nap, bool) {
	m := geminiSleeps.FindStringSubmatch(lines)
	if m == nil {
		return nap{}, false
	}
	ms, err := strconv.ParseInt(m[2], 10, 64)
	return nap{time.Duration(ms) * time.Millisecond, m[1]}, err == nil
}

func opencodeAsleep(string) (nap, bool) { return nap{}, false }
