package agent

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// longestSleep is how long a CLI may wait on its own before it asks a provider
// again. A longer wait is Pawl's to make: stored, it costs nothing. quietSleep
// is when a wait of unknown length must have been longer, with time for a busy
// machine.
const (
	longestSleep = time.Minute
	quietSleep   = longestSleep + 15*time.Second
)

// nap is what a CLI says of a wait before it asks its provider again.
type nap struct {
	// session is which of the CLI's conversations waits, empty where it has one.
	session string
	// over says that the conversation asks again.
	over bool
	// wait is how long it will be; untold says that it is not known.
	wait   time.Duration
	untold bool
	text   string // what the provider said
}

// stop is how a run ends whose CLI went to sleep for long.
func (n nap) stop() stop {
	e := Event{Kind: Notice, Text: n.text}
	if e.Ending, _ = classifyFailure(n.text); !e.Ending.isLimit() {
		e.Ending = RateLimited
	}
	reason := fmt.Sprintf("killed because it slept for more than %s after the refusal, which is Pawl's to wait", longestSleep)
	if n.wait > 0 {
		reason = fmt.Sprintf("killed because it went to sleep for %s, which is Pawl's to wait", n.wait.Round(time.Second))
	}
	return stop{Killed, reason, e}
}

// maxNapLine is how much of a line of standard error is looked at.
const maxNapLine = 16 << 10

// napWatch looks for a wait in what is written to it. CLIs may tell of it in two
// lines, so each is looked at together with the one before.
type napWatch struct {
	asleep     func(lines string) (nap, bool)
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
		if n, ok := w.asleep(string(w.last) + "\n" + string(w.line)); ok {
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
	return nap{wait: time.Duration(ms) * time.Millisecond, text: m[1]}, err == nil
}

var (
	// opencodeRefused matches the line of opencode's log about a refused request
	// of the agent itself, after which it waits for as long as the provider asks.
	opencodeRefused = regexp.MustCompile(`\ntimestamp=\S+ level=ERROR .*message="stream error" .*session\.id=(\S+) small=false .*error\.error="(?:\w+: )?(.*)"$`)
	opencodeAsks    = regexp.MustCompile(`\ntimestamp=\S+ level=INFO .*message=stream .*session\.id=(\S+) small=false`)
)

// opencodeAsleep reads opencode's log. It does not name the wait, for which a
// header counts first. A long one in the provider's text is believed; after a
// short one the header may still have told a long one. After an error that is no
// limit it does not wait.
func opencodeAsleep(lines string) (nap, bool) {
	if m := opencodeAsks.FindStringSubmatch(lines); m != nil {
		return nap{session: m[1], over: true}, true
	}
	m := opencodeRefused.FindStringSubmatch(lines)
	if m == nil {
		return nap{}, false
	}
	n, epoch := nap{session: m[1], untold: true, text: m[2]}, time.Unix(0, 0)
	if at, ok := relativeReset(n.text, epoch); ok && at.Sub(epoch) > longestSleep {
		n.wait, n.untold = at.Sub(epoch), false
	}
	ending, _ := classifyFailure(n.text)
	return n, ending.isLimit()
}

// relativeReset is a reset that a text tells as a time to wait.
func relativeReset(text string, now time.Time) (time.Time, bool) {
	at, ok := ResetTime(text, now, nil)
	later, again := ResetTime(text, now.Add(12*time.Hour), nil)
	return at, ok && again && later.Sub(at) == 12*time.Hour
}
