package forge

import (
	"cmp"
	"encoding/json"
	"maps"
	"time"
)

// Limits are what GitHub lets one installation do ("Rate limits for the REST
// API", secondary limits, and "Best practices for using the REST API"). Zero
// fields mean what GitHub documents. A server with other limits, or a test, may
// set them.
type Limits struct {
	// Concurrent requests at any time; zero means 100.
	Concurrent int
	// Points a minute: a request that reads costs 1, one that writes 5. Zero
	// means 880 of GitHub's 900; the rest is for redirects, which are not
	// counted before they are followed.
	Points int
	// PerMinute and PerHour bound what GitHub calls content-generating requests;
	// zero means 80 and 500. GitHub does not say whether edits count, so each
	// write of an installation does.
	PerMinute int
	PerHour   int
	// Spacing is the time between two writes; zero means 1 s, negative none.
	Spacing time.Duration
}

func (l Limits) filled() Limits {
	return Limits{
		Concurrent: cmp.Or(l.Concurrent, 100), Points: cmp.Or(l.Points, 880), PerMinute: cmp.Or(l.PerMinute, 80),
		PerHour: cmp.Or(l.PerHour, 500), Spacing: max(0, cmp.Or(l.Spacing, time.Second)),
	}
}

// part is the limits of one of n that do not know of each other.
func (l Limits) part(n int) Limits {
	return Limits{
		Concurrent: max(1, l.Concurrent/n), Points: max(writePoints, l.Points/n), PerMinute: max(1, l.PerMinute/n),
		PerHour: max(1, l.PerHour/n), Spacing: l.Spacing * time.Duration(n),
	}
}

// Points of a request (same page, "Calculating points").
const (
	readPoints  = 1
	writePoints = 5
)

// clockSkew is how far apart the clocks of two nodes may be, together with how
// much longer one node's request may take to reach GitHub than another's.
const clockSkew = 5 * time.Second

// farAhead is beyond every booking; a later time stems from a wrong clock.
const farAhead = 2 * time.Minute

// slotLife is how long a node that was not heard of since can still have
// requests under way: its last one was booked before, and ends with its try.
const slotLife = tryTimeout + clockSkew

// slotPoll is when to ask again for one of the concurrent requests: when
// another node ends one is not known beforehand.
const slotPoll = time.Second

// Cost is one request as the limits see it.
type Cost struct {
	// Node is who sends it.
	Node string
	// InFlight is how many requests of this node are under way already.
	InFlight int
	// Points are 1 or 5.
	Points int
	// Write marks what is spaced and counted as content.
	Write bool
	// Spare leaves a fifth of every limit for requests without it.
	Spare bool
}

// Quota is what one installation has used of its limits, as all nodes know it.
// It is a value: Admit and the others change nothing but return the next one.
// Its zero value has used nothing. Its JSON form is at most a few kilobytes.
type Quota struct {
	// Limits are set by who decides, and not stored.
	Limits Limits `json:"-"`
	// Points and Minute count by the second, Hour by half a minute.
	Points []Tally `json:"points,omitempty"`
	Minute []Tally `json:"minute,omitempty"`
	Hour   []Tally `json:"hour,omitempty"`
	// Write is the last write, which may be booked for a time to come.
	Write Stamp `json:"write"`
	// Hold is a time before which GitHub wants nothing.
	Hold Hold `json:"hold"`
	// Slots are the requests that each node may have under way, until when.
	Slots map[string]Slot `json:"slots,omitempty"`
}

// Stamp is when a node did something, by its own clock.
type Stamp struct {
	Node string    `json:"node,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// Hold is an answer that asked for a wait.
type Hold struct {
	Node  string    `json:"node,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Secondary is false for the hourly limit.
	Secondary bool `json:"secondary,omitempty"`
	// Strikes counts refusals that named no time since the last success.
	Strikes int `json:"strikes,omitempty"`
}

// settle cuts a time that is further ahead than GitHub asks for, as one is after the
// clock was set back. The cut time must be kept, or it would be cut anew for ever.
func (h Hold) settle(now time.Time) Hold {
	if most := now.Add(longestWait + clockSkew); h.Until.After(most) {
		h.Until = most
	}
	return h
}

// Slot is a number of requests under way.
type Slot struct {
	N     int       `json:"n"`
	Until time.Time `json:"until,omitzero"`
}

// parseQuota reads what another node stored. What cannot be read counts as
// nothing used; GitHub's own answers are obeyed in any case.
func parseQuota(text []byte, limits Limits) (Quota, error) {
	q := Quota{}
	if len(text) == 0 {
		q.Limits = limits
		return q, nil
	}
	err := json.Unmarshal(text, &q)
	if err != nil {
		q = Quota{}
	}
	q.Limits = limits
	return q, err
}

func (q Quota) windows(share int) (points, minute, hour window) {
	const s = time.Second
	return window{s, time.Minute, q.Limits.Points * share / 5}, window{s, time.Minute, q.Limits.PerMinute * share / 5},
		window{30 * s, time.Hour, q.Limits.PerHour * share / 5}
}

// Admit books a request at the earliest time that every limit allows, which is
// after wait, and returns the quota with it. Who does not want to wait that long
// drops next and keeps q. Only where too many requests are under way is wait a
// guess and next the same as q: ask again then.
func (q Quota) Admit(now time.Time, cost Cost) (next Quota, wait time.Duration) {
	share := 5
	if cost.Spare {
		share = 4
	}
	q = q.settle(now)
	points, minute, hour := q.windows(share)
	at := points.free(q.Points, later(now, q.heldUntil(cost.Node)), cost.Points)
	if cost.Write {
		at = later(at, q.spaced(cost.Node))
		at = hour.free(q.Hour, minute.free(q.Minute, at, 1), 1)
	}
	if q.others(cost.Node)+cost.InFlight+1 > max(1, q.Limits.Concurrent*share/5) {
		return q, max(slotPoll, at.Sub(now))
	}
	next = q
	next.Points = points.add(q.Points, at, cost.Points)
	if cost.Write {
		next.Minute, next.Hour = minute.add(q.Minute, at, 1), hour.add(q.Hour, at, 1)
		next.Write = Stamp{Node: cost.Node, At: at}
	}
	next.Slots = maps.Clone(q.Slots)
	if next.Slots == nil {
		next.Slots = make(map[string]Slot)
	}
	next.Slots[cost.Node] = Slot{N: cost.InFlight + 1, Until: at.Add(slotLife)}
	return next, at.Sub(now)
}

// spaced is when the next write may come. After another node's write it is
// later by what the clocks may differ.
func (q Quota) spaced(node string) time.Time {
	if q.Write.At.IsZero() || q.Limits.Spacing == 0 {
		return time.Time{}
	}
	at := q.Write.At.Add(q.Limits.Spacing)
	if q.Write.Node != node {
		at = at.Add(clockSkew)
	}
	return at
}

// foreign says that another node writes, too, so that a place must be booked
// ahead to come by turns.
func (q Quota) foreign(node string) bool {
	return q.Write.Node != "" && q.Write.Node != node
}

// heldUntil is when GitHub may be asked again; the zero time when nothing is
// known. Another node's clock may be behind.
func (q Quota) heldUntil(node string) time.Time {
	if q.Hold.Node != node && !q.Hold.Until.IsZero() {
		return q.Hold.Until.Add(clockSkew)
	}
	return q.Hold.Until
}

func (q Quota) others(node string) (n int) {
	for name, slot := range q.Slots {
		if name != node {
			n += slot.N
		}
	}
	return n
}

// held returns the quota with what an answer asked for; a later time already
// known stays. Where two nodes were told of times so near that their clocks may
// have them in the wrong order, it is nobody's own: all add the skew.
func (q Quota) held(h Hold) Quota {
	old := q.Hold
	near := h.Until.Sub(old.Until).Abs() < clockSkew && h.Node != old.Node
	if h.Until.After(old.Until) {
		q.Hold = h
	}
	if near {
		q.Hold.Node = ""
	}
	return q
}

// settle drops what is over and mends what a wrong clock left behind: times
// far ahead count as now, so that they hold nobody up for longer than the
// limit's own length.
func (q Quota) settle(now time.Time) Quota {
	latest := now.Add(farAhead)
	points, minute, hour := q.windows(5)
	q.Points, q.Minute, q.Hour = points.settle(q.Points, now, latest), minute.settle(q.Minute, now, latest), hour.settle(q.Hour, now, latest)
	if q.Write.At.After(latest) {
		q.Write.At = now
	}
	q.Hold = q.Hold.settle(now)
	over := func(_ string, s Slot) bool { return !s.Until.After(now) || s.Until.After(now.Add(slotLife+farAhead)) }
	for name, slot := range q.Slots {
		if over(name, slot) {
			q.Slots = maps.Clone(q.Slots)
			maps.DeleteFunc(q.Slots, over)
			break
		}
	}
	return q
}
