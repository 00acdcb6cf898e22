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
	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func fresh() Quota { return Quota{Limits: Limits{}.filled()} }

// spend admits n requests without a wait and fails the test on one.
func spend(t *testing.T, q Quota, now time.Time, cost Cost, n int) Quota {
	t.Helper()
	for i := range n {
		next, wait := q.Admit(now, cost)
		if wait != 0 {
			t.Fatalf("request %d has to wait %v", i+1, wait)
		}
		q = next
	}
	return q
}

func TestAdmitTellsWhenEachLimitAllowsARequest(t *testing.T) {
	read := Cost{Node: "a", Points: readPoints}
	write := Cost{Node: "a", Points: writePoints, Write: true}
	spare := read
	spare.Spare = true
	other := func(c Cost) Cost { c.Node = "b"; return c }
	const s, after = time.Second, 61*time.Second + clockSkew
	noSpacing := fresh()
	noSpacing.Limits.Spacing = 0
	busy := read
	busy.InFlight = 99
	for _, tt := range []struct {
		name string
		q    Quota
		at   time.Duration
		cost Cost
		want time.Duration
	}{
		{"nothing used", fresh(), 0, write, 0},
		{"the second write a second after the first", spend(t, fresh(), noon, write, 1), 0, write, s},
		{"a part of the second has passed", spend(t, fresh(), noon, write, 1), 300 * time.Millisecond, write, 700 * time.Millisecond},
		{"another node's write, by clocks that differ", spend(t, fresh(), noon, write, 1), 0, other(write), s + clockSkew},
		{"a read beside a write", spend(t, fresh(), noon, write, 1), 0, read, 0},
		{"the last points of the minute", spend(t, fresh(), noon, read, 879), 0, read, 0},
		{"points used up by reads", spend(t, fresh(), noon, read, 880), 0, read, after},
		{"a write needs five of them", spend(t, fresh(), noon, read, 876), 0, write, after},
		{"points come back", spend(t, fresh(), noon, read, 880), after, read, 0},
		{"cosmetics leave a fifth of the points", spend(t, fresh(), noon, read, 704), 0, spare, after},
		{"content of the minute", spend(t, noSpacing, noon, write, 80), 0, write, after},
		{"a hold", fresh().held(Hold{Node: "a", Until: noon.Add(7 * s)}), 0, read, 7 * s},
		{"a hold that another node was told of", fresh().held(Hold{Node: "a", Until: noon.Add(7 * s)}), 0, other(read), 7*s + clockSkew},
		{"a hold that is over", fresh().held(Hold{Node: "a", Until: noon}), 0, read, 0},
		{"too many at once", fresh(), 0, Cost{Node: "a", InFlight: 100, Points: 1}, slotPoll},
		{"too many at once on two nodes", spend(t, fresh(), noon, busy, 1), 0, other(read), slotPoll},
		{"a node that died with many at once", spend(t, fresh(), noon, busy, 1), slotLife, other(read), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before, _ := json.Marshal(tt.q)
			if _, wait := tt.q.Admit(noon.Add(tt.at), tt.cost); wait != tt.want {
				t.Errorf("waits %v, want %v", wait, tt.want)
			}
			if after, _ := json.Marshal(tt.q); string(after) != string(before) {
				t.Error("the quota that was asked has changed")
			}
		})
	}
}

func TestTheHourTakesFiveHundredWrites(t *testing.T) {
	q, now := fresh(), noon
	for range 500 {
		next, wait := q.Admit(now, Cost{Node: "a", Points: writePoints, Write: true})
		q, now = next, now.Add(wait)
	}
	if took := now.Sub(noon); took != 499*time.Second {
		t.Errorf("500 writes took %v", took)
	}
	_, wait := q.Admit(now, Cost{Node: "a", Points: writePoints, Write: true})
	if want := time.Hour + 30*time.Second + clockSkew - 499*time.Second; wait != want {
		t.Errorf("the next waits %v, want %v", wait, want)
	}
}

func TestAClockSetBackHoldsNobodyUpForLongerThanALimit(t *testing.T) {
	for _, back := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
		q := spend(t, fresh(), noon, Cost{Node: "a", Points: writePoints, Write: true}, 1)
		q = q.held(Hold{Node: "a", Until: noon.Add(time.Minute)})
		now := noon.Add(-back)
		if _, wait := q.Admit(now, Cost{Node: "a", Points: writePoints, Write: true}); wait > longestWait+clockSkew {
			t.Errorf("set back by %v: waits %v", back, wait)
		}
	}
}

func TestAQuotaSurvivesItsStoredForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, now := fresh(), noon
		for range rapid.IntRange(0, 40).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			write := rapid.Bool().Draw(t, "write")
			cost := Cost{Node: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node"), Points: readPoints, Write: write}
			q, _ = q.Admit(now, cost)
		}
		text, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseQuota(text, q.Limits)
		if diff := cmp.Diff(q.settle(now), got.settle(now)); err != nil || diff != "" {
			t.Fatal(err, diff)
		}
	})
}

func TestWhatCannotBeReadCountsAsNothingUsed(t *testing.T) {
	for _, text := range []string{"", "x", `{"points":7}`, `{"slots":{"a":{"n":-5}},"hour":[[1]]}`} {
		q, err := parseQuota([]byte(text), fresh().Limits)
		if _, wait := q.Admit(noon, Cost{Node: "a", Points: 1}); wait != 0 || (err == nil) != (text == "" || strings.Contains(text, "slots")) {
			t.Errorf("%q: waits %v, %v", text, wait, err)
		}
	}
}

func TestAStoredQuotaStaysSmall(t *testing.T) {
	q, now := fresh(), noon
	for range 20_000 {
		next, wait := q.Admit(now, Cost{Node: "a", Points: writePoints, Write: true})
		q, now = next, now.Add(wait)
	}
	if text, _ := json.Marshal(q); len(text) > 8<<10 {
		t.Errorf("%d bytes", len(text))
	}
}

var seeds = flag.Int("seeds", 12_000, "random sequences per property")
var firstSeed = flag.Uint64("seed", 0, "the first of them")

// TestNoSequenceOfAdmissionsBreaksALimit lets up to four nodes with different
// clocks send what Admit allows, under holds, deaths of nodes and stretches of
// idleness, and has each arrival checked by the strict fake's rules. A failure
// names the seed: go test -run … -seed N -seeds 1.
func TestNoSequenceOfAdmissionsBreaksALimit(t *testing.T) {
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
	node     string
	at, gone time.Time
	write    bool
}

func sequence(seed uint64) (admitted int, broken string) {
	r := rand.New(rand.NewPCG(seed, 6))
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	q, now := fresh(), noon
	var sky sky
	errors := make([]time.Duration, 1+r.IntN(4)) // of the nodes' clocks
	names := make([]string, len(errors))
	for i := range errors {
		errors[i], names[i] = upTo(clockSkew)-clockSkew/2, string(rune('a'+i))
	}
	pace := []time.Duration{time.Millisecond, 100 * time.Millisecond, 3 * time.Second, time.Minute}[r.IntN(4)]
	rounds, answer := 40+r.IntN(80), 8*time.Second
	switch r.IntN(80) { // enough for one of the limits
	case 0: // the points of a minute
		rounds, pace, answer = 2500, 40*time.Millisecond, time.Second
	case 1: // the writes of an hour
		rounds, pace, errors = 2000, 4*time.Second, errors[:1]
	case 2: // the requests at once, on several nodes
		rounds, pace, answer = 400, 20*time.Millisecond, tryTimeout
	}
	for range rounds {
		now = now.Add(upTo(pace))
		if sky.pass(now); sky.broken != "" {
			return admitted, sky.broken
		}
		i := r.IntN(len(errors))
		if r.IntN(max(100, rounds)) == 0 {
			sky.die(names[i], now)
			names[i] += "'" // the process that follows it
		}
		name, clock := names[i], now.Add(errors[i])
		if r.IntN(max(80, rounds)) == 0 {
			after := r.IntN(120)
			sky.refuse(now, after)
			q = q.held(Hold{Node: name, Until: clock.Add(time.Duration(after) * time.Second)})
		}
		cost := Cost{Node: name, Points: readPoints, InFlight: sky.of(name), Write: r.IntN(2) == 0, Spare: r.IntN(3) == 0}
		if cost.Write {
			cost.Points = writePoints
		}
		next, wait := q.Admit(clock, cost)
		if wait > bookAhead || next.Write == q.Write && wait > 0 {
			continue
		}
		q = next
		admitted++
		at := now.Add(wait)
		sky.flights = append(sky.flights, arrival{node: name, at: at, gone: at.Add(upTo(answer)), write: cost.Write})
	}
	sky.pass(now.Add(time.Hour))
	return admitted, sky.broken
}

// sky is what is on its way to GitHub, and its warden.
type sky struct {
	flights []arrival // admitted, not yet there
	landed  []arrival // there, not yet answered
	warden  fakegithub.Warden
	broken  string
}

func (s *sky) of(node string) (n int) {
	for _, list := range [][]arrival{s.flights, s.landed} {
		for _, a := range list {
			if a.node == node {
				n++
			}
		}
	}
	return n
}

// refuse answers somebody that nothing is wanted for some seconds. What was
// booked ahead looks again before it is sent, and stays away.
func (s *sky) refuse(now time.Time, seconds int) {
	s.flights = slices.DeleteFunc(s.flights, func(a arrival) bool { return a.at.After(now) })
	header := http.Header{"Retry-After": {strconv.Itoa(seconds)}}
	s.warden.Leave(now, http.StatusTooManyRequests, header, "")
	s.warden.Arrive(now, http.MethodGet) // the one that was answered, out of order
}

// die ends a node: what it has booked ahead is never sent, and nobody takes the
// booking back. What has arrived from it is still being answered.
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
		method := http.MethodGet
		if a.write {
			method = http.MethodPost
		}
		s.broken = s.warden.Arrive(a.at, method)
		s.landed = append(s.landed, a)
	}
	s.answer(now)
}

func (s *sky) answer(now time.Time) {
	s.landed = slices.DeleteFunc(s.landed, func(a arrival) bool {
		if a.gone.After(now) {
			return false
		}
		s.warden.Leave(a.gone, http.StatusOK, nil, "")
		return true
	})
}
