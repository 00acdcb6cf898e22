package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// prober is an agent that writes down who called it, waits while $CTRL/hold is
// there, and then meets its usage limit if $CTRL/limit says when that resets.
var prober = `cat > /dev/null
echo "$PAWL_THREAD $PAWL_ATTEMPT" >> "$CTRL/starts"
while [ -f "$CTRL/hold" ]; do sleep 0.05; done
if [ -f "$CTRL/limit" ]; then reset=$(cat "$CTRL/limit")
` + strings.ReplaceAll(fmt.Sprintf(strings.TrimPrefix(testrig.Limited, "cat > /dev/null\n"), "'$reset'"), "exit 1\n", "exit 1; fi\n") + `
echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Nothing to do."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
`

// probing is a cluster with threads that wait for the reset of one account.
type probing struct {
	*cluster
	repos   []string // each of an installation of its own, for GitHub's limits
	threads []thread.ID
	reset   time.Time // of the account's limit, as the breaker has it
}

// newProbing lets one thread meet the limit and the others hear of it.
func newProbing(t *testing.T, db *pgServer, nodes, threads int) *probing {
	t.Helper()
	p := &probing{cluster: newCluster(t, db)}
	p.Agent(prober, "stream: codex")
	p.Config += "workers: 4\npolicy: {usage_limit: {auto_continue_on_limit_reset: true}}\n"
	p.reach(time.Now())
	p.limit()
	for i := range installations(threads) {
		repo := fmt.Sprintf("team%d/widgets", i)
		p.Must(p.World.AddRepo(t.Context(), repo, map[string]string{"a.txt": "one\n"}))
		p.Must(p.World.SetRole(repo, testrig.Writer, "write"))
		p.Must(p.World.Install(repo))
		p.repos = append(p.repos, repo)
	}
	for range nodes {
		p.join()
	}
	// A thread of before claimed a limit, so the first that meets it limits the account.
	_, err := p.db.ExecContext(t.Context(), `INSERT INTO breakers (account, state)
		VALUES ('mine', '{"consecutive":0,"claim":{"thread":"acme/before#1","kind":"usage_limit","consecutive":0,"resets_at":"2099-01-01T00:00:00Z"}}')
		ON CONFLICT (account) DO NOTHING`)
	p.Must(err)
	p.ask(0)
	p.wait(1, "usage_limit")
	for i := 1; i < threads; i++ {
		p.ask(i)
	}
	p.wait(threads, "usage_limit")
	p.called(1)
	p.readReset()
	return p
}

// installations is how many installations the threads need: GitHub allows 80
// comments and the like a minute in each.
func installations(threads int) int { return (threads + 9) / 10 }

// ask opens an issue at the node whose turn it is.
func (p *probing) ask(i int) {
	p.T.Helper()
	p.to(p.nodes[i%len(p.nodes)])
	p.threads = append(p.threads, p.issue(p.repos[i%len(p.repos)], fmt.Sprintf("Issue %d", i)))
}

// limit makes the agent meet its limit from now on, for two more hours.
func (p *probing) limit() {
	p.T.Helper()
	p.Must(os.MkdirAll(p.Ctrl(), 0o700))
	p.Must(os.WriteFile(filepath.Join(p.Ctrl(), "limit"), []byte(testrig.ResetText(p.ahead.Now().Add(2*time.Hour))), 0o600))
}

func (p *probing) remove(name string) {
	p.T.Helper()
	p.Must(os.Remove(filepath.Join(p.Ctrl(), name)))
}

// wait returns when so many threads wait by the rule.
func (p *probing) wait(threads int, rule policy.Rule) {
	p.T.Helper()
	p.Await(fmt.Sprintf("%d threads wait by %s", threads, rule), func() bool { return p.count(p.threads, waitsBy(rule)) == threads })
}

// called checks how often the agent was started.
func (p *probing) called(want int) {
	p.T.Helper()
	if got := p.Calls(); got != want {
		p.T.Fatalf("the agent was started %d times, want %d:\n%s", got, want, p.Left("starts"))
	}
}

func (p *probing) readReset() {
	p.T.Helper()
	p.reset = p.breaker().ResetsAt
	if !p.reset.After(p.ahead.Now().Add(time.Hour)) {
		p.T.Fatalf("the breaker resets at %s, want in two hours", p.reset)
	}
}

func (p *probing) breaker() (b policy.Breaker) {
	p.T.Helper()
	p.Read(func(db *store.Store) {
		all, err := db.Breakers(p.T.Context())
		p.Must(err)
		for _, one := range all {
			b = one
		}
	})
	return b
}

func oneProbeGoesFirst(t *testing.T, db *pgServer) {
	const threads = 16 // more than the 12 places of three nodes
	p := newProbing(t, db, 3, threads)

	p.Touch("hold")
	p.reach(p.reset)
	p.Await("the probe", func() bool { return p.Calls() == 2 })
	p.wait(threads-1, "probe")
	p.called(2)
	// Nobody who waits holds what other threads need.
	asked := p.threads[threads/2]
	_, err := p.World.Comment(asked.Repo(), asked.Number, testrig.Writer, "/pawl why")
	p.Must(err)
	before := len(p.World.Comments(asked.Repo(), asked.Number))
	p.Await("an answer beside those that wait", func() bool { return len(p.World.Comments(asked.Repo(), asked.Number)) > before })
	p.called(2)

	// A new limit holds all until the new reset, also over restarts.
	p.limit()
	first := p.reset
	p.remove("hold")
	p.Await("the new limit", func() bool { return p.breaker().ResetsAt.After(first.Add(time.Hour)) })
	p.wait(threads, "usage_limit")
	p.called(2)
	p.readReset()
	p.leave(p.nodes[0], syscall.SIGKILL)
	p.join()
	p.Touch("hold")
	p.remove("limit")
	p.reach(p.reset)
	p.Await("the second probe", func() bool { return p.Calls() == 3 })
	p.wait(threads-1, "probe")
	p.called(3)

	// A success releases them all.
	released := time.Now()
	p.remove("hold")
	p.Await("every thread's attempt", func() bool { return p.Calls() == 2+threads })
	t.Logf("%d threads on 3 nodes: %s from the release to the last start", threads, time.Since(released).Round(time.Second))
	p.apart()
	p.Await("every thread's end", func() bool { return p.count(p.threads, overBy("no_change")) == threads })
	p.called(2 + threads)
	if b := p.breaker(); b != (policy.Breaker{}) {
		t.Errorf("the breaker is %+v, want it closed", b)
	}
	p.distinct()
}

// apart checks that the threads that a success released did not start together.
func (p *probing) apart() {
	p.T.Helper()
	var starts []time.Time
	for _, s := range p.states(p.threads) {
		starts = append(starts, s.Attempts[len(s.Attempts)-1].At)
	}
	slices.SortFunc(starts, time.Time.Compare)
	starts = starts[1:] // that of the probe
	most, span := 0, starts[len(starts)-1].Sub(starts[0])
	for i, from := range starts {
		within, _ := slices.BinarySearchFunc(starts, from.Add(time.Second), time.Time.Compare)
		most = max(most, within-i)
	}
	p.T.Logf("%d threads started over %s, %d of them in one second", len(starts), span.Round(time.Millisecond), most)
	if span < 5*time.Second || most > len(starts)/2 {
		p.T.Errorf("%d threads started over %s, %d of them in one second; want them apart", len(starts), span, most)
	}
}

// distinct checks that no attempt ran twice and every thread's last one ended
// well.
func (p *probing) distinct() {
	p.T.Helper()
	seen := map[string]bool{}
	for line := range strings.Lines(p.Left("starts")) {
		if seen[line] {
			p.T.Errorf("attempt %q ran twice", line)
		}
		seen[line] = true
	}
	for i, s := range p.states(p.threads) {
		if n := len(s.Attempts); n == 0 || s.Attempts[n-1].Receipt.Ending != policy.Completed {
			p.T.Errorf("%s: attempts %+v, want the last completed", p.threads[i], s.Attempts)
		}
	}
}

func aProbeThatDiesMakesRoomForAnother(t *testing.T, db *pgServer) {
	const threads = 12
	p := newProbing(t, db, 3, threads)
	p.Touch("hold")
	p.remove("limit")
	p.reach(p.reset)
	p.Await("the probe", func() bool { return p.Calls() == 2 })
	p.wait(threads-1, "probe")

	var holder *testrig.Member
	for _, m := range p.nodes {
		if m.Began(p.probe()) {
			holder = m
		}
	}
	if holder == nil {
		t.Fatalf("no node says that it started %s", p.probe())
	}
	p.leave(holder, syscall.SIGKILL)
	p.to(p.nodes[0])
	p.called(2)
	// When its lease has run out somebody else may try, again one only.
	p.reach(p.ahead.Now().Add(thread.LeaseTime))
	p.Await("another probe", func() bool { return p.Calls() == 3 })
	p.wait(threads-1, "probe")
	p.called(3)
	p.remove("hold")
	p.Await("every thread's end", func() bool { return p.count(p.threads, overBy("no_change")) == threads })
	p.distinct()
}

// probe is the thread of the last attempt, as the nodes log it.
func (p *probing) probe() string {
	lines := strings.Fields(p.Left("starts"))
	return lines[len(lines)-2]
}
