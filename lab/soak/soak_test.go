package soak

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/crash/crashtest"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// The size of the soak in `make test-all`. `make soak` sets larger values. SOAK_KILLS is the number of kills, and
// SOAK_STOPS is the number of orderly stops in addition. SOAK_TIME is the maximum time for both. SOAK_SEED is the seed,
// which by default is random and printed. SOAK_DATABASE=postgres runs three nodes with different labels on one
// database. SOAK_SIGNAL=TERM replaces every kill with a stop.
const (
	fewKills = 30
	soakTime = 10 * time.Minute
	soakSeed = 20261121
	// Each repository has its own installation, because Pawl keeps each installation within GitHub's 500 writes an hour.
	// soakReposInTime repositories are enough for a whole soak without moving the clock.
	soakRepos, soakReposInTime = 8, 40
	// soakThreads is the number of new threads per kill. It is enough to keep the servers busy.
	soakThreads = 0.4
)

// soakLabels are the labels of the nodes that share a database. A third of the repositories needs each label.
var soakLabels = []string{"gpu", "arm64", ""}

// moody is an agent that mostly works. Sometimes it fails, does nothing, hangs until its
// timeout, or kills itself. It always leaves a process behind.
const moody = `cat > /dev/null
(setsid sleep 600 > /dev/null 2>&1 &)
case $(( $(od -An -N1 -tu1 /dev/urandom) % 10 )) in
0) echo failed >&2; exit 1;;
1) exit 0;;
2) sleep 30;;
3) kill -9 $$;;
*) sleep 0.2; echo "line $(wc -l < a.txt)" >> a.txt;;
esac
`

// stageKills is the number of kills between two checks. The checks cannot wait until the end, because the fake GitHub keeps
// only some thousand deliveries.
const stageKills = 200

func TestRandomKillsUnderLoadLoseAndDuplicateNothing(t *testing.T) {
	t.Parallel()
	size := soakSize(t)
	t.Logf("seed %d, %d kills and %d stops within %s", size.seed, size.kills, size.stops, size.within)
	s := newSoak(t, size.seed)
	if s.orderly {
		size.kills, size.stops = 0, size.kills+size.stops
	}
	began := time.Now()
	until := began.Add(size.within)
	kills, stops := 0, 0
	missing := func() bool { return kills < size.kills || stops < size.stops }
	for missing() && time.Now().Before(until) && !t.Failed() {
		stage := time.Now()
		s.load(stageEnd(kills, size.kills), stageEnd(stops, size.stops), until)
		loaded := time.Since(stage)
		states := s.awaitEnd()
		s.invariants(states)
		kills, stops = s.counts()
		t.Logf("loaded for %s, idle after %s: %d threads, %s", loaded.Round(time.Second),
			(time.Since(stage) - loaded).Round(time.Second), len(states), endings(states))
	}
	if missing() {
		t.Errorf("%d kills and %d stops in %s, want %d and %d", kills, stops, time.Since(began).Round(time.Second), size.kills, size.stops)
	}
	t.Logf("%d kills and %d stops in %s, including the checks, at %v; %d late copies of deliveries were accepted", kills, stops,
		time.Since(began).Round(time.Second), tally(s.died()), s.spray.copies.Load())
}

// stageEnd returns the number of kills or stops at the end of the next stage.
func stageEnd(now, all int) int { return max(now, min(now+stageKills, all)) }

// awaitEnd stops the random kills, restarts all servers, waits until all work is finished, and returns the threads. The
// load uses up GitHub's hourly limits. If threads only wait for these, awaitEnd moves the clock by an hour and restarts
// the servers again. It cannot move PostgreSQL's clock, which decides which threads of a shared database are due.
func (s *soak) awaitEnd() map[string]thread.State {
	s.t.Helper()
	s.calm.Store(true)
	defer s.calm.Store(false)
	for range 40 {
		for _, n := range s.nodes {
			if n.Pause > 0 {
				n.Ahead.Add(int64(time.Hour))
			}
			n.Kill()
		}
		if states := s.allIdle(); states != nil {
			return states
		}
	}
	first := s.nodes[0]
	s.t.Fatalf("the runs do not end; missed deliveries: %q\n%s", first.Missed(), first.StatusOutput())
	return nil
}

// Numbers of consecutive polls, two a second, without a running step. After waitsOnly polls, the remaining threads only wait
// for a time. After stalled polls, which take several sweeps, a thread that does not wait was forgotten.
const (
	waitsOnly = 10
	stalled   = 40
)

// allIdle waits until all threads are idle and returns them. It returns nil if some threads wait for a time.
func (s *soak) allIdle() map[string]thread.State {
	s.t.Helper()
	first, quiet := s.nodes[0], 0
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(500 * time.Millisecond) {
		first.Serving()
		before := len(s.World.Deliveries())
		s.must(s.World.WaitDelivered(s.t.Context()))
		if len(s.World.Deliveries()) != before || s.spray.late.Load() > 0 {
			continue
		}
		missed := len(first.Missed()) // read before the states: a missed delivery can still change them
		states, ok := first.States()
		var stats store.Stats
		first.Read(func(db *store.Store) {
			var err error
			stats, err = db.Stats(s.t.Context())
			s.must(err)
		})
		// The last results of a finished run may still wait for GitHub's limits.
		if ok && missed+stats.Queued+stats.Running+stats.Waiting == 0 && !unfinished(states) {
			return states
		}
		quiet++
		if stats.Queued+stats.Running+stats.Deliveries[thread.Received] > 0 {
			quiet = 0
		}
		waits := stats.Waiting+stats.Deliveries[thread.Failed]+missed > 0
		switch {
		case quiet >= waitsOnly && waits && first.Pause > 0:
			return nil
		case quiet >= stalled && !waits && ok:
			return states // the check of the invariants reports unfinished threads
		case quiet >= stalled && !waits:
			s.t.Fatalf("no thread waits, and no thread continues\n%s", first.StatusOutput())
		}
	}
	return nil
}

func unfinished(states map[string]thread.State) bool {
	for _, state := range states {
		if len(crashtest.LeftOver(state)) > 0 {
			return true
		}
	}
	return false
}

// endings counts the attempts of all threads and how their runs ended.
func endings(states map[string]thread.State) string {
	rules, attempts, cut := map[policy.Rule]int{}, 0, 0
	for _, state := range states {
		rules[state.Decision.Rule]++
		attempts += len(state.Attempts)
		for _, a := range state.Attempts {
			if a.Receipt.Outcome == policy.Interrupted {
				cut++
			}
		}
	}
	return fmt.Sprintf("%d attempts (%d cut off), the runs ended with %v", attempts, cut, rules)
}

// tally counts deaths by crash point.
func tally(deaths []crashtest.Death) map[string]int {
	count := map[string]int{}
	for _, d := range deaths {
		count[d.Point]++
	}
	return count
}

type size struct {
	kills, stops int
	within       time.Duration
	seed         uint64
}

// soakSize reads the size from the environment. Without SOAK_KILLS it returns the size for make test-all.
func soakSize(t *testing.T) size {
	t.Helper()
	s := size{kills: fewKills, within: soakTime, seed: soakSeed}
	if os.Getenv("SOAK_KILLS") == "" {
		return s
	}
	s.seed = rand.Uint64()
	setting(t, "SOAK_KILLS", &s.kills, strconv.Atoi)
	setting(t, "SOAK_STOPS", &s.stops, strconv.Atoi)
	setting(t, "SOAK_TIME", &s.within, time.ParseDuration)
	setting(t, "SOAK_SEED", &s.seed, func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) })
	return s
}

// setting reads a variable of the environment, if it is set.
func setting[T any](t *testing.T, name string, to *T, parse func(string) (T, error)) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return
	}
	v, err := parse(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	*to = v
}
