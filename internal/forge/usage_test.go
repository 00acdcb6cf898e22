package forge

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// spend admits n requests without a wait and fails the test on one.
func spend(t *testing.T, u usage, now time.Time, what need, n int) usage {
	t.Helper()
	for i := range n {
		next, wait := u.admit(now, what)
		if wait != 0 {
			t.Fatalf("request %d has to wait %v", i+1, wait)
		}
		u = next
	}
	return u
}

func TestAdmitTellsWhenEachLimitAllowsARequest(t *testing.T) {
	read, check := need{points: readPoints}, need{points: writePoints}
	content := need{points: writePoints, content: true}
	spare := read
	spare.spare = true
	const s = time.Second
	for _, tt := range []struct {
		name string
		u    usage
		at   time.Duration
		need need
		want time.Duration
	}{
		{"nothing used", usage{}, 0, content, 0},
		{"a write after a write", spend(t, usage{}, noon, content, 1), 0, content, 0},
		{"a read beside a write", spend(t, usage{}, noon, content, 1), 0, read, 0},
		{"a third of the points at once", spend(t, usage{}, noon, read, 299), 0, read, 0},
		{"points flow out at nine a second", spend(t, usage{}, noon, read, 300), 0, read, s / 9},
		{"a write needs five of them", spend(t, usage{}, noon, read, 300), 0, content, 5 * s / 9},
		{"points come back", spend(t, usage{}, noon, read, 300), s / 9, read, 0},
		{"cosmetics leave a fifth of the points", spend(t, usage{}, noon, read, 240), 0, spare, s / 9},
		{"content of the minute", spend(t, usage{}, noon, content, 26), 0, content, 1250 * time.Millisecond},
		{"a check run is no content", spend(t, usage{}, noon, content, 26), 0, check, 0},
		{"content of the hour", usage{Hour: noon.Add(166 * 12 * s)}, 0, content, 12 * s},
		{"a hold", usage{Hold: noon.Add(7 * s)}, 0, read, 7 * s},
		{"a hold that is over", usage{Hold: noon}, 0, read, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := cmp.Diff(usage{}, tt.u)
			if _, wait := tt.u.admit(noon.Add(tt.at), tt.need); (wait - tt.want).Abs() > time.Microsecond {
				t.Errorf("waits %v, want %v", wait, tt.want)
			}
			if cmp.Diff(usage{}, tt.u) != before {
				t.Error("the usage that was asked has changed")
			}
		})
	}
}

func TestNoStretchHoldsMoreThanALimit(t *testing.T) {
	for _, b := range []bucket{pointsLimit, minuteLimit, hourLimit} {
		var at []time.Time
		var empty time.Time
		for now := noon; now.Before(noon.Add(3 * b.in)); {
			if wait := b.wait(empty, now, 1, false); wait > 0 {
				now = now.Add(wait)
				continue
			}
			empty = b.add(empty, now, 1)
			at = append(at, now)
		}
		// Whatever comes late, by up to lateMost and the way to GitHub, is in the next.
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

// lateMost is how long after it was admitted a request is sent.
const lateMost = 2 * time.Second

func TestAClockSetBackHoldsNobodyUpForLongerThanALimit(t *testing.T) {
	write := need{points: writePoints, content: true}
	for _, back := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
		u := spend(t, usage{}, noon, write, 1)
		u.Hold = noon.Add(time.Minute)
		if _, wait := u.settle(noon.Add(-back)).admit(noon.Add(-back), write); wait > longestWait {
			t.Errorf("set back by %v: waits %v", back, wait)
		}
	}
}

func TestAUsageSurvivesItsStoredFormAndStaysSmall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, now := usage{}, noon
		for range rapid.IntRange(0, 40).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			write := rapid.Bool().Draw(t, "write")
			n := need{points: readPoints, content: write}
			u, _ = u.admit(now, n)
		}
		text, err := json.Marshal(u)
		if err != nil || len(text) > 1<<10 {
			t.Fatal(len(text), err)
		}
		got, err := parseUsage(text)
		if diff := cmp.Diff(u, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}

func TestWhatCannotBeReadCountsAsNothingUsed(t *testing.T) {
	for _, text := range []string{"", "x", `{"points":7}`, `{"strikes":-5}`} {
		u, err := parseUsage([]byte(text))
		if _, wait := u.admit(noon, need{points: 1}); wait != 0 || (err == nil) != (text == "" || strings.Contains(text, "strikes")) {
			t.Errorf("%q: waits %v, %v", text, wait, err)
		}
	}
}

var seeds = flag.Int("seeds", 12_000, "random sequences per property")
var firstSeed = flag.Uint64("seed", 0, "the first of them")

// TestNoSequenceOfAdmissionsBreaksALimit lets up to four nodes send what admit
// allows, as late as they may and over ways of different length, under holds, deaths
// of nodes and stretches of idleness, and has each arrival checked by the strict
// fake's rules. A failure names the seed: go test -run … -seed N -seeds 1.
func TestNoSequenceOfAdmissionsBreaksALimit(t *testing.T) {
	if testing.Short() {
		*seeds = min(*seeds, 300)
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

// arrival is a request that was admitted.
type arrival struct {
	need
	node     string
	at, gone time.Time
}

// onTheWay is the longest way to GitHub that the limits have room for.
const onTheWay = 2 * time.Second

func sequence(seed uint64) (admitted int, broken string) {
	r := rand.New(rand.NewPCG(seed, 6))
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	now := noon
	var sky sky
	names := make([]string, 1+r.IntN(4))
	for i := range names {
		names[i] = string(rune('a' + i))
	}
	pace := []time.Duration{time.Millisecond, 100 * time.Millisecond, 3 * time.Second, time.Minute}[r.IntN(4)]
	rounds, reply := 40+r.IntN(80), 8*time.Second
	switch r.IntN(80) { // enough for one of the limits
	case 0: // the points of a minute
		rounds, pace, reply = 2500, 40*time.Millisecond, time.Second
	case 1: // the content of an hour
		rounds, pace, names = 2000, 4*time.Second, names[:1]
	case 2: // the requests at once, on several nodes
		rounds, pace, reply = 400, 20*time.Millisecond, tryTimeout
	}
	for range rounds {
		now = now.Add(upTo(pace))
		if sky.pass(now); sky.broken != "" {
			return admitted, sky.broken
		}
		i := r.IntN(len(names))
		if r.IntN(max(100, rounds)) == 0 {
			sky.die(names[i], now)
			names[i] += "'" // the process that follows it
		}
		if r.IntN(max(80, rounds)) == 0 {
			sky.refuse(now, r.IntN(120))
		}
		n := need{points: readPoints, spare: r.IntN(3) == 0}
		if r.IntN(2) == 0 {
			n.points, n.content = writePoints, r.IntN(2) == 0
		}
		if sky.of(names[i]) >= atOnceShared {
			continue
		}
		next, wait := sky.usage.settle(now).admit(now, n)
		if sky.usage = next; wait > 0 {
			continue
		}
		admitted++
		at := now.Add(upTo(lateMost) + upTo(onTheWay))
		sky.flights = append(sky.flights, arrival{need: n, node: names[i], at: at, gone: at.Add(upTo(reply))})
	}
	sky.pass(now.Add(time.Hour))
	return admitted, sky.broken
}

// sky is what is on its way to GitHub, its limits, and what the nodes share.
type sky struct {
	usage   usage
	flights []arrival // admitted, not yet there
	landed  []arrival // there, not yet answered
	checker fakegithub.LimitChecker
	broken  string
}

func (s *sky) of(node string) (n int) {
	for _, a := range slices.Concat(s.flights, s.landed) {
		if a.node == node {
			n++
		}
	}
	return n
}

// refuse answers somebody that nothing is wanted for some seconds. What is on its
// way then may arrive.
func (s *sky) refuse(now time.Time, seconds int) {
	s.flights = nil
	header := http.Header{"Retry-After": {strconv.Itoa(seconds)}}
	s.checker.Leave(now, http.StatusTooManyRequests, header, "")
	s.checker.Arrive(now, http.MethodGet, "") // the one that was answered, out of order
	s.usage = s.usage.answered(now, answer{sent: true, status: http.StatusTooManyRequests, header: header})
}

// die ends a node: what it was admitted and has not sent is never sent, and nobody
// hears of its answers. What has arrived from it is still being answered.
func (s *sky) die(node string, now time.Time) {
	s.flights = slices.DeleteFunc(s.flights, func(a arrival) bool { return a.node == node && a.at.After(now) })
}

// pass lets the time go on.
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
		s.usage = s.usage.answered(a.gone, answer{sent: true, status: http.StatusOK})
		return true
	})
}
