package forge

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/needs"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// spend returns limits that have admitted n requests. The test fails if one of them has to wait.
func spend(t *testing.T, what need, n int) *limits {
	t.Helper()
	l := newLimits()
	for i := range n {
		if wait := l.admit(noon, what); wait != 0 {
			t.Fatalf("request %d has to wait %v", i+1, wait)
		}
	}
	return l
}

func TestAdmitReturnsTheWaitOfEachLimit(t *testing.T) {
	read, check := need{points: readPoints}, need{points: writePoints}
	content := need{points: writePoints, content: true}
	spare := read
	spare.spare = true
	anHoursContent := newLimits()
	anHoursContent.hour.ReserveN(noon, hourLimit.most/3)
	held := func(until time.Time) *limits {
		l := newLimits()
		l.hold = until
		return l
	}
	const s = time.Second
	for _, tt := range []struct {
		name string
		l    *limits
		at   time.Duration
		need need
		want time.Duration
	}{
		{"nothing used", newLimits(), 0, content, 0},
		{"a write after a write", spend(t, content, 1), 0, content, 0},
		{"a read after a write", spend(t, content, 1), 0, read, 0},
		{"a third of the points at once", spend(t, read, 299), 0, read, 0},
		{"points flow out at nine a second", spend(t, read, 300), 0, read, s / 9},
		{"a write needs five of them", spend(t, read, 300), 0, content, 5 * s / 9},
		{"points come back", spend(t, read, 300), s/9 + 1, read, 0},
		{"cosmetics leave a fifth of the points", spend(t, read, 240), 0, spare, s / 9},
		{"content of the minute", spend(t, content, 26), 0, content, 1250 * time.Millisecond},
		{"a check run is not content", spend(t, content, 26), 0, check, 0},
		{"content of the hour", anHoursContent, 0, content, 12 * s},
		{"a hold", held(noon.Add(7 * s)), 0, read, 7 * s},
		{"an expired hold", held(noon), 0, read, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // a waiting request takes nothing
				wait := tt.l.admit(noon.Add(tt.at), tt.need)
				if (wait - tt.want).Abs() > time.Microsecond {
					t.Errorf("waits %v, want %v", wait, tt.want)
				}
				if wait == 0 {
					return
				}
			}
			if wait := tt.l.admit(noon.Add(tt.at+tt.want+time.Microsecond), tt.need); wait != 0 {
				t.Errorf("waits %v more at the time that was named", wait)
			}
		})
	}
}

func TestNoWindowExceedsALimit(t *testing.T) {
	for _, b := range []limit{pointsLimit, minuteLimit, hourLimit} {
		var at []time.Time
		pacer := b.pacer()
		for now := noon; now.Before(noon.Add(3 * b.in)); {
			if wait := (need{}).wait(pacer, now, 1); wait > 0 {
				now = now.Add(wait)
				continue
			}
			pacer.ReserveN(now, 1)
			at = append(at, now)
		}
		// Lateness and network delay may lengthen a window.
		most, first := 0, 0
		for i := range at {
			for at[i].Sub(at[first]) >= b.in+6*time.Second {
				first++
			}
			most = max(most, i-first+1)
		}
		if most > b.most || most < b.most*9/10 {
			t.Errorf("%d in a stretch of %v, of %d allowed", most, b.in, b.most)
		}
	}
}

// lateMost is the maximum time between a request's admission and its sending.
const lateMost = 2 * time.Second

func TestClockSetBackDelaysAtMostOneWindow(t *testing.T) {
	write := need{points: writePoints, content: true}
	for _, back := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
		l := spend(t, write, 1)
		l.hold = noon.Add(time.Minute)
		if wait := l.admit(noon.Add(-back), write); wait > longestWait {
			t.Errorf("set back by %v: waits %v", back, wait)
		}
	}
}

var seeds = flag.Int("seeds", 0, "random sequences per property; 0 means 300, and 12,000 in make test-all")
var firstSeed = flag.Uint64("seed", 0, "the first of them")

// TestNoSequenceOfAdmissionsBreaksALimit sends what admit allows with random delays, holds and idle times. The strict
// fake's rules check each arrival. A failure names the seed: go test -run … -seed N -seeds 1.
func TestNoSequenceOfAdmissionsBreaksALimit(t *testing.T) {
	if *seeds == 0 {
		*seeds = 300
		if needs.AreAll() {
			*seeds = 12_000
		}
	}
	admitted := 0
	for i := range uint64(*seeds) {
		n, broken := sequence(*firstSeed + i)
		if broken != "" {
			t.Fatalf("seed %d: %s", *firstSeed+i, broken)
		}
		admitted += n
	}
	t.Logf("%d sequences, %d requests", *seeds, admitted)
	if admitted < *seeds*20 {
		t.Errorf("only %d requests were let through in %d sequences", admitted, *seeds)
	}
}

// arrival is an admitted request.
type arrival struct {
	need
	at, gone time.Time
}

// onTheWay is the longest network delay that the limits allow for.
const onTheWay = 2 * time.Second

func sequence(seed uint64) (admitted int, broken string) {
	r := rand.New(rand.NewPCG(seed, 6))
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	now := noon
	sky := sky{limits: newLimits()}
	pace := []time.Duration{time.Millisecond, 100 * time.Millisecond, 3 * time.Second, time.Minute}[r.IntN(4)]
	rounds, reply := 40+r.IntN(80), 8*time.Second
	switch r.IntN(80) { // rare, so that a sequence reaches a limit
	case 0: // the points per minute
		rounds, pace, reply = 2500, 40*time.Millisecond, time.Second
	case 1: // the content per hour
		rounds, pace = 2000, 4*time.Second
	case 2: // the concurrent requests
		rounds, pace, reply = 400, 20*time.Millisecond, TryTimeout
	}
	for range rounds {
		now = now.Add(upTo(pace))
		if sky.pass(now); sky.broken != "" {
			return admitted, sky.broken
		}
		if r.IntN(max(80, rounds)) == 0 {
			sky.refuse(now, r.IntN(120))
		}
		n := need{points: readPoints, spare: r.IntN(3) == 0}
		if r.IntN(2) == 0 {
			n.points, n.content = writePoints, r.IntN(2) == 0
		}
		if len(sky.flights)+len(sky.landed) >= atOnce {
			continue
		}
		if sky.limits.admit(now, n) > 0 {
			continue
		}
		admitted++
		at := now.Add(upTo(lateMost) + upTo(onTheWay))
		sky.flights = append(sky.flights, arrival{need: n, at: at, gone: at.Add(upTo(reply))})
	}
	sky.pass(now.Add(time.Hour))
	return admitted, sky.broken
}

// sky holds the requests on their way to GitHub, and the limits.
type sky struct {
	limits  *limits
	flights []arrival // admitted, not yet arrived
	landed  []arrival // arrived, not yet answered
	checker fakegithub.LimitChecker
	broken  string
}

// refuse answers a request with Retry-After. Requests already on their way may still arrive.
func (s *sky) refuse(now time.Time, seconds int) {
	s.flights = nil
	header := http.Header{"Retry-After": {strconv.Itoa(seconds)}}
	s.checker.Leave(now, http.StatusTooManyRequests, header, "")
	s.checker.Arrive(now, http.MethodGet, "") // the refused request itself, out of order
	s.limits.answered(now, answer{sent: true, status: http.StatusTooManyRequests, header: header})
}

// pass lets time pass.
func (s *sky) pass(now time.Time) {
	slices.SortFunc(s.flights, func(a, b arrival) int { return a.at.Compare(b.at) })
	for len(s.flights) > 0 && !s.flights[0].at.After(now) && s.broken == "" {
		a := s.flights[0]
		s.flights = s.flights[1:]
		s.answer(a.at)
		method, path := http.MethodGet, ""
		if a.points == writePoints {
			method, path = http.MethodPost, "/check-runs"
		}
		if a.content {
			path = "/comments"
		}
		s.broken = s.checker.Arrive(a.at, method, path)
		s.landed = append(s.landed, a)
	}
	s.answer(now)
}

func (s *sky) answer(now time.Time) {
	s.landed = slices.DeleteFunc(s.landed, func(a arrival) bool {
		if a.gone.After(now) {
			return false
		}
		s.checker.Leave(a.gone, http.StatusOK, nil, "")
		s.limits.answered(a.gone, answer{sent: true, status: http.StatusOK})
		return true
	})
}
