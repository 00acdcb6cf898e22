package forge

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Limits are what GitHub lets one installation do ("Rate limits for the REST
// API", secondary limits, and "Best practices for using the REST API"). Zero
// fields mean what GitHub documents. A server with other limits, or a test, may
// set them.
type Limits struct {
	// Concurrent requests of this process at any time. GitHub takes 100 of an
	// installation; zero means 25, so that four nodes keep that without asking each
	// other.
	Concurrent int
	// Points a minute: a request that reads costs 1, one that writes 5. Zero
	// means 900.
	Points int
	// PerMinute and PerHour bound what GitHub calls content-generating requests;
	// zero means 80 and 500. GitHub does not say whether edits and reactions count,
	// so here they do. Check runs are no content.
	PerMinute int
	PerHour   int
	// Spacing is the time between two writes; zero means 1 s, negative none.
	Spacing time.Duration
}

func (l Limits) filled() Limits {
	return Limits{
		Concurrent: cmp.Or(l.Concurrent, 25), Points: cmp.Or(l.Points, 900), PerMinute: cmp.Or(l.PerMinute, 80),
		PerHour: cmp.Or(l.PerHour, 500), Spacing: max(0, cmp.Or(l.Spacing, time.Second)),
	}
}

// half is the limits of one of two nodes that do not know of each other.
func (l Limits) half() Limits {
	return Limits{Concurrent: l.Concurrent, Points: l.Points / 2, PerMinute: l.PerMinute / 2, PerHour: l.PerHour / 2, Spacing: 2 * l.Spacing}
}

func (l Limits) points() bucket { return bucket{l.Points, time.Minute} }
func (l Limits) minute() bucket { return bucket{l.PerMinute, time.Minute} }
func (l Limits) hour() bucket   { return bucket{l.PerHour, time.Hour} }

// Points of a request (same page, "Calculating points").
const (
	readPoints  = 1
	writePoints = 5
)

const (
	// lateMost is how long after it was admitted a request may still be sent. It
	// takes another place after that.
	lateMost = 2 * time.Second
	// answerWait is how long the next write waits for the answer of the last one: a
	// request that leaves in time has reached GitHub by then, a second before the
	// next one at least.
	answerWait = 5 * time.Second
	// turnWait is how long a place is kept for the node whose turn it is.
	turnWait = 500 * time.Millisecond
)

// bucket is a limit of so many within any stretch of time of a length, kept as a
// leaky bucket (the "generic cell rate algorithm"). All that has to be remembered
// is the time at which it is empty, so nodes can share it; golang.org/x/time/rate
// is the same for one process, but its state cannot be stored.
//
// A third of the limit may come at once, and six tenths of it flow out within the
// length. So any such stretch holds 14/15 of the limit at most; the rest is for
// requests that reach GitHub later than they were admitted: by up to a ninth of
// the length, 6.6 s of a minute, while lateMost is 2 s.
type bucket struct {
	most int
	in   time.Duration
}

// each is how long it takes until one has flown out.
func (b bucket) each() time.Duration { return b.in * 10 / time.Duration(6*max(1, b.most)) }

// size is how long it takes until a full bucket is empty.
func (b bucket) size() time.Duration { return b.each() * time.Duration(max(1, b.most/3)) }

// wait is how long it takes until n fit into a bucket that is empty at a time.
// With spare a fifth of it stays free.
func (b bucket) wait(empty, now time.Time, n int, spare bool) time.Duration {
	size := b.size()
	if spare {
		size = size * 4 / 5
	}
	add := b.each() * time.Duration(n)
	return max(0, later(empty, now).Add(add).Sub(now)-max(size, add))
}

// add is when the bucket is empty after n more.
func (b bucket) add(empty, now time.Time, n int) time.Time {
	return later(empty, now).Add(b.each() * time.Duration(n))
}

// need is what one request takes of the limits.
type need struct {
	points int
	// content marks what counts for the limits of content.
	content bool
	// node is who sends it, and writer names this write among those of all nodes;
	// empty for a request that is not spaced from others.
	node, writer string
	// spare leaves a fifth of the limits to requests without it.
	spare bool
}

// usage is what one installation has used of its limits, as all nodes know it.
// Every time in it is by the one clock of what the nodes share. It is a value:
// its methods change nothing but return the next one. Its zero value has used
// nothing.
type usage struct {
	// Points, Minute and Hour are the times at which these buckets are empty.
	Points time.Time `json:"points,omitzero"`
	Minute time.Time `json:"minute,omitzero"`
	Hour   time.Time `json:"hour,omitzero"`
	// Writer is the write whose answer is awaited, and Write the time before which
	// no other one may follow.
	Writer string    `json:"writer,omitempty"`
	Write  time.Time `json:"write,omitzero"`
	// Next are the nodes that wait for it, the first to come first, so that nodes
	// take turns.
	Next []string `json:"next,omitempty"`
	// Hold is a time before which GitHub wants nothing. Secondary is false for the
	// hourly limit.
	Hold      time.Time `json:"hold,omitzero"`
	Secondary bool      `json:"secondary,omitempty"`
	// Strikes counts refusals that named no time since the last success.
	Strikes int `json:"strikes,omitempty"`
}

// parseUsage reads what a node stored. What cannot be read counts as nothing
// used; GitHub's own answers are obeyed in any case.
func parseUsage(text []byte) (u usage, err error) {
	if len(text) == 0 {
		return usage{}, nil
	}
	if err = json.Unmarshal(text, &u); err != nil {
		return usage{}, err
	}
	return u, nil
}

// admit takes what a request needs, or says how long it has to wait first; then
// nothing is taken.
func (u usage) admit(now time.Time, l Limits, n need) (next usage, wait time.Duration) {
	u = u.settle(now, l)
	wait = max(0, u.Hold.Sub(now), l.points().wait(u.Points, now, n.points, n.spare))
	if n.content {
		wait = max(wait, l.minute().wait(u.Minute, now, 1, n.spare), l.hour().wait(u.Hour, now, 1, n.spare))
	}
	if n.writer != "" {
		turn := u.Write
		if len(u.Next) > 0 && u.Next[0] != n.node {
			turn = turn.Add(turnWait)
		}
		if wait < turn.Sub(now) && !slices.Contains(u.Next, n.node) {
			u.Next = append(slices.Clip(u.Next), n.node)
		}
		wait = max(wait, turn.Sub(now))
	}
	if wait > 0 {
		return u, wait
	}
	u.Points = l.points().add(u.Points, now, n.points)
	if n.writer != "" {
		u.Writer, u.Write = n.writer, now.Add(answerWait)
		// Who was before it did not come.
		if i := slices.Index(u.Next, n.node); i >= 0 {
			u.Next = u.Next[i+1:]
		} else {
			u.Next = nil
		}
	}
	if n.content {
		u.Minute, u.Hour = l.minute().add(u.Minute, now, 1), l.hour().add(u.Hour, now, 1)
	}
	return u, 0
}

// answered notes what became of a request that was admitted. A write that was
// answered lets the next one follow after the spacing, one that was not sent lets
// it follow at once, and one whose answer is missing is given the time in which it
// may still arrive. Refusals that name no time hold back twice as long each, as
// GitHub asks, until one request succeeds.
func (u usage) answered(now time.Time, l Limits, n need, a answer) usage {
	if n.writer != "" && u.Writer == n.writer {
		switch {
		case !a.sent:
			u.Writer, u.Write = "", now
		case a.status != 0:
			u.Writer, u.Write = "", now.Add(l.Spacing)
		}
	}
	over := !u.Hold.After(now)
	switch {
	case a.wantsPause(now):
		until, secondary, named := limitEnds(a, now, u.Strikes)
		if !named && over {
			u.Strikes++ // once for all that were under way together
		}
		if until.After(u.Hold) {
			u.Hold, u.Secondary = until, secondary
		}
	case a.class() == done && over: // else it was sent before the refusal
		u.Strikes = 0
	}
	return u
}

// settle mends what a wrong clock left behind: no time can be further ahead than
// the limit that it belongs to is long. The mended value must be kept, or it would
// be mended anew for ever.
func (u usage) settle(now time.Time, l Limits) usage {
	for _, t := range []struct {
		at   *time.Time
		most time.Duration
	}{
		{&u.Points, l.points().size()}, {&u.Minute, l.minute().size()}, {&u.Hour, l.hour().size()},
		{&u.Write, max(answerWait, l.Spacing)}, {&u.Hold, longestWait},
	} {
		if latest := now.Add(t.most); t.at.After(latest) {
			*t.at = latest
		}
	}
	return u
}

// heldLike returns the usage with the hold of another one that lasts longer.
func (u usage) heldLike(other usage) usage {
	if other.Hold.After(u.Hold) {
		u.Hold, u.Secondary, u.Strikes = other.Hold, other.Secondary, max(u.Strikes, other.Strikes)
	}
	return u
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
