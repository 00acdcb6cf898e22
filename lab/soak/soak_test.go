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

// The size of the soak in `make test-all`. `make soak` sets larger values. SOAK_KILLS is the number of kills, SOAK_TIME
// the maximum time for them, and SOAK_SEED the seed (by default it is random, and printed). SOAK_DATABASE=postgres runs
// three nodes on one database. SOAK_SIGNAL=TERM stops servers with SIGTERM instead of killing them.
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
	kills, within, seed := soakSize(t)
	t.Logf("seed %d, %d kills within %s", seed, kills, within)
	s := newSoak(t, seed)
	began, kept := time.Now(), 0
	for kept < kills && time.Since(began) < within && !t.Failed() {
		stage := time.Now()
		n := s.load(min(stageKills, kills-kept), began.Add(within))
		kept += n
		loaded := time.Since(stage)
		states := s.awaitEnd()
		s.nodes[0].InvariantsAfter(s.died(), states, s.repos...)
		s.judge()
		t.Logf("%d kills in %s, then idle after %s: %d threads, %s", n, loaded.Round(time.Second),
			(time.Since(stage) - loaded).Round(time.Second), len(states), endings(states))
	}
	if kept < kills {
		t.Errorf("%d kills in %s, want %d", kept, time.Since(began).Round(time.Second), kills)
	}
	t.Logf("%d kills in %s, including the checks, at %v; %d late copies of deliveries were accepted", kept, time.Since(began).Round(time.Second),
		tally(s.died()), s.spray.copies.Load())
}

// awaitEnd stops the random kills, restarts all servers, waits until all work is finished, and returns the threads. If threads
// only wait for GitHub's hourly limits, which the load used up, it moves the clock by an hour and restarts the servers
// again. It cannot move PostgreSQL's clock, which decides which threads of a shared database are due.
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
	s.t.Fatalf("the runs do not end; missed deliveries: %q\n%s", first.Missed(), first.Standing())
	return nil
}

// Numbers of consecutive polls, two a second, without a running step. After waitsOnly polls, the remaining threads only wait
// for a time. After standsStill polls, which take several sweeps, a thread that does not wait was forgotten.
const (
	waitsOnly   = 10
	standsStill = 40
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
		case quiet >= standsStill && !waits && ok:
			return states // the check of the invariants reports unfinished threads
		case quiet >= standsStill && !waits:
			s.t.Fatalf("no thread waits, and no thread continues\n%s", first.Standing())
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

func soakSize(t *testing.T) (kills int, within time.Duration, seed uint64) {
	t.Helper()
	kills, within, seed = fewKills, soakTime, soakSeed
	text := os.Getenv("SOAK_KILLS")
	if text == "" {
		return kills, within, seed
	}
	var err error
	if kills, err = strconv.Atoi(text); err != nil {
		t.Fatalf("SOAK_KILLS: %v", err)
	}
	if text := os.Getenv("SOAK_TIME"); text != "" {
		if within, err = time.ParseDuration(text); err != nil {
			t.Fatalf("SOAK_TIME: %v", err)
		}
	}
	seed = rand.Uint64()
	if text := os.Getenv("SOAK_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SOAK_SEED: %v", err)
		}
	}
	return kills, within, seed
}
