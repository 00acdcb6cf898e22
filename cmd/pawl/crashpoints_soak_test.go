package main

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/pawlbot/pawl/solver"
)

// The size of the soak. `make soak` asks for more than `make test` does: SOAK_KILLS
// kills, at most SOAK_TIME for them, with SOAK_SEED (random and printed without),
// and SOAK_DATABASE=postgres for three nodes on one database.
const (
	fewKills = 30
	soakTime = 10 * time.Minute
	soakSeed = 20261121
	// soakRepos have an installation each, since a governor keeps each within
	// GitHub's 500 writes an hour.
	soakRepos = 8
	// soakThreads is how many threads are begun for each kill: enough that
	// something is always going on.
	soakThreads = 0.4
)

// moody is an agent that mostly works and sometimes fails, does nothing, hangs
// until its time is over, ends itself or leaves processes behind.
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

func TestRandomKillsUnderLoadLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	kills, within, seed := soakSize(t)
	t.Logf("seed %d, %d kills within %s", seed, kills, within)
	s := newSoak(t, seed)
	began := time.Now()
	s.load(kills, began.Add(within))
	s.calm.Store(true)
	kept := len(s.died())
	if kept < kills {
		t.Errorf("%d kills in %s, want %d", kept, time.Since(began).Round(time.Second), kills)
	}
	states := s.rest()
	t.Logf("%d kills in %s, at %v; %d threads, %d deliveries", kept, time.Since(began).Round(time.Second), tally(s.died()), len(states), len(s.nodes[0].world.Deliveries()))
	endings, attempts := map[string]int{}, 0
	for _, state := range states {
		endings[state.Decision.Rule]++
		attempts += len(state.Attempts)
	}
	t.Logf("%d attempts, the runs ended %v", attempts, endings)
	s.nodes[0].invariants(states, s.repos...)
}

// rest waits until nothing is left to be done. Whoever lives still has its random
// deaths, so all begin once more; and again an hour later by the clock as long as
// threads wait for GitHub's limits, of which the load used up what an hour has.
func (s *soak) rest() map[string]solver.State {
	s.t.Helper()
	for range 20 {
		for _, n := range s.nodes {
			n.ahead.Add(int64(time.Hour))
			n.kill()
		}
		for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
			s.nodes[0].serving()
			before := len(s.nodes[0].world.Deliveries())
			s.nodes[0].must(s.nodes[0].world.WaitDelivered(s.t.Context()))
			if states, ok := s.nodes[0].states(); ok && len(s.nodes[0].world.Deliveries()) == before {
				return states
			}
		}
	}
	s.t.Fatalf("the runs do not end\n%s", s.nodes[0].standing())
	return nil
}

func tally(names []string) map[string]int {
	count := map[string]int{}
	for _, name := range names {
		count[name]++
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
