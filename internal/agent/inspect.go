package agent

import (
	"fmt"
	"io"
	"time"
)

// InspectOptions says what is known of a recorded run beside its transcript.
type InspectOptions struct {
	// Dir is the checkout that the agent worked in; file names are given
	// relative to it. Empty leaves them as they are.
	Dir string
	// Exit is how the process ended; nil where that is unknown.
	Exit *Exit
	// Stderr is what the process wrote to standard error.
	Stderr string
	// OnDeed is told of each call that ended; nil where nobody asks.
	OnDeed func(Deed)
	// Now is when the run ended, for times that are told relative to it.
	Now time.Time
	// Zone is that of clock times without a zone; nil means UTC.
	Zone *time.Location
}

// Inspect reads a recorded transcript with the parser that reads running
// agents. The error is one of reading r, never of the agent.
func Inspect(r io.Reader, a Adapter, o InspectOptions) (Report, error) {
	read := newReading(a, o.Dir, nil)
	read.tally.onDeed = o.OnDeed
	err := read.stdout(r)
	if err != nil {
		err = fmt.Errorf("read the transcript: %w", err)
	}
	read.stderr.Write([]byte(o.Stderr))
	return read.conclude(o.Exit, stop{}, o.Now, o.Zone), err
}

// reading collects what one process printed.
type reading struct {
	adapter Adapter
	tally   *tally
	onEvent func(Event)
	alive   func()    // told of each sign of life; nil where nobody asks
	napping func(nap) // told of each wait for the provider; nil where nobody asks
	plain   headTail
	stderr  headTail
	bytes   int64
}

// stderrHalf bounds the head and the tail of standard error.
const stderrHalf = 32 << 10

func newReading(a Adapter, dir string, onEvent func(Event)) *reading {
	r := &reading{adapter: a, tally: newTally(a, dir), onEvent: onEvent}
	r.stderr = headTail{headMax: stderrHalf, tailMax: stderrHalf}
	if a.Parse == nil {
		r.plain = headTail{headMax: plainHead, tailMax: plainTail}
	}
	return r
}

// Write counts standard output on its way to the parser.
func (r *reading) Write(p []byte) (int, error) {
	r.bytes += int64(len(p))
	if r.adapter.Parse == nil {
		r.plain.Write(p)
		r.live()
	}
	return len(p), nil
}

func (r *reading) live() {
	if r.alive != nil {
		r.alive()
	}
}

// stdout reads standard output to its end.
func (r *reading) stdout(in io.Reader) error {
	in = io.TeeReader(in, r)
	if r.adapter.Parse == nil {
		_, err := io.Copy(io.Discard, in)
		return err
	}
	var last Kind
	emit := func(e Event) {
		last = e.Kind
		r.tally.add(e)
		if r.onEvent != nil {
			r.onEvent(e)
		}
	}
	return readLines(in, func(line []byte) {
		last = 0
		r.adapter.Parse(line, emit)
		if last != Notice {
			r.live()
		}
	})
}

// errors reads standard error to its end. Only for plain agents is it a sign
// of life: the others log their retries there.
func (r *reading) errors(in io.Reader) error {
	var to io.Writer = &r.stderr
	if r.adapter.Parse == nil {
		to = io.MultiWriter(to, lively{r})
	}
	if r.napping != nil && r.adapter.asleep != nil {
		to = io.MultiWriter(to, &napWatch{asleep: r.adapter.asleep, told: r.napping})
	}
	_, err := io.Copy(to, in)
	return err
}

// lively takes everything for a sign of life.
type lively struct{ r *reading }

func (l lively) Write(p []byte) (int, error) {
	l.r.live()
	return len(p), nil
}

func (r *reading) conclude(exit *Exit, why stop, now time.Time, zone *time.Location) Report {
	rep := &r.tally.rep
	if exit != nil {
		rep.Exit, rep.ExitKnown = *exit, true
	}
	rep.Stderr, rep.OutputBytes = r.stderr.String(), r.bytes
	if r.adapter.Parse == nil {
		return r.tally.concludePlain(r.plain.String(), why, now, zone)
	}
	return r.tally.conclude(why, now, zone)
}
