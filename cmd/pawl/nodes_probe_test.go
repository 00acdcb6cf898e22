package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// prober is an agent that writes down who called it, waits while $CTRL/hold is
// there, and then meets its usage limit if $CTRL/limit says when that resets.
var prober = `cat > /dev/null
echo "$PAWL_THREAD $PAWL_ATTEMPT" >> "$CTRL/starts"
while [ -f "$CTRL/hold" ]; do sleep 0.05; done
if [ -f "$CTRL/limit" ]; then reset=$(cat "$CTRL/limit")
` + strings.ReplaceAll(fmt.Sprintf(strings.TrimPrefix(limited, "cat > /dev/null\n"), "'$reset'"), "exit 1\n", "exit 1; fi\n") + `
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
	p.agent(prober, "stream: codex")
	p.config += "workers: 4\npolicy: {usage_limit: {auto_continue_on_limit_reset: true}}\n"
	p.reach(time.Now())
	p.limit()
	for i := range installations(threads) {
		repo := fmt.Sprintf("team%d/widgets", i)
		p.must(p.world.AddRepo(t.Context(), repo, map[string]string{"a.txt": "one\n"}))
		p.must(p.world.SetRole(repo, writer, "write"))
		p.must(p.world.Install(repo))
		p.repos = append(p.repos, repo)
	}
	for range nodes {
		p.join()
	}
	// A thread of before claimed a limit, so the first that meets it limits the account.
	_, err := p.db.ExecContext(t.Context(), `INSERT INTO breakers (account, state)
		VALUES ('mine', '{"consecutive":0,"claim":{"thread":"acme/before#1","kind":"usage_limit","consecutive":0,"resets_at":"2099-01-01T00:00:00Z"}}')
		ON CONFLICT (account) DO NOTHING`)
	p.must(err)
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
	p.t.Helper()
	p.to(p.nodes[i%len(p.nodes)])
	p.threads = append(p.threads, p.issue(p.repos[i%len(p.repos)], fmt.Sprintf("Issue %d", i)))
}

// limit makes the agent meet its limit from now on, for two more hours.
func (p *probing) limit() {
	p.t.Helper()
	p.must(os.MkdirAll(p.ctrl(), 0o700))
	p.must(os.WriteFile(filepath.Join(p.ctrl(), "limit"), []byte(resetText(p.ahead.now().Add(2*time.Hour))), 0o600))
}

func (p *probing) remove(name string) {
	p.t.Helper()
	p.must(os.Remove(filepath.Join(p.ctrl(), name)))
}

// wait returns when so many threads wait by the rule.
func (p *probing) wait(threads int, rule policy.Rule) {
	p.t.Helper()
	p.await(fmt.Sprintf("%d threads wait by %s", threads, rule), func() bool { return p.count(p.threads, waitsBy(rule)) == threads })
}

// called checks how often the agent was started.
func (p *probing) called(want int) {
	p.t.Helper()
	if got := p.calls(); got != want {
		p.t.Fatalf("the agent was started %d times, want %d:\n%s", got, want, p.left("starts"))
	}
}

func (p *probing) readReset() {
	p.t.Helper()
	p.reset = p.breaker().ResetsAt
	if !p.reset.After(p.ahead.now().Add(time.Hour)) {
		p.t.Fatalf("the breaker resets at %s, want in two hours", p.reset)
	}
}

func (p *probing) breaker() (b policy.Breaker) {
	p.t.Helper()
	p.read(func(db *store.Store) {
		all, err := db.Breakers(p.t.Context())
		p.must(err)
		for _, one := range all {
			b = one
		}
	})
	return b
}

func oneProbeGoesFirst(t *testing.T, db *pgServer) {
	const threads = 16 // more than the 12 places of three nodes
	p := newProbing(t, db, 3, threads)

	p.touch("hold")
	p.reach(p.reset)
	p.await("the probe", func() bool { return p.calls() == 2 })
	p.wait(threads-1, "probe")
	p.called(2)
	// Nobody who waits holds what other threads need.
	asked := p.threads[threads/2]
	_, err := p.world.Comment(asked.Repo(), asked.Number, writer, "/pawl why")
	p.must(err)
	before := len(p.world.Comments(asked.Repo(), asked.Number))
	p.await("an answer beside those that wait", func() bool { return len(p.world.Comments(asked.Repo(), asked.Number)) > before })
	p.called(2)

	// A new limit holds all until the new reset, also over restarts.
	p.limit()
	first := p.reset
	p.remove("hold")
	p.await("the new limit", func() bool { return p.breaker().ResetsAt.After(first.Add(time.Hour)) })
	p.wait(threads, "usage_limit")
	p.called(2)
	p.readReset()
	p.leave(p.nodes[0], syscall.SIGKILL)
	p.join()
	p.touch("hold")
	p.remove("limit")
	p.reach(p.reset)
	p.await("the second probe", func() bool { return p.calls() == 3 })
	p.wait(threads-1, "probe")
	p.called(3)

	// A success releases them all.
	released := time.Now()
	p.remove("hold")
	p.await("every thread's attempt", func() bool { return p.calls() == 2+threads })
	t.Logf("%d threads on 3 nodes: %s from the release to the last start", threads, time.Since(released).Round(time.Second))
	p.apart()
	p.await("every thread's end", func() bool { return p.count(p.threads, overBy("no_change")) == threads })
	p.called(2 + threads)
	if b := p.breaker(); b != (policy.Breaker{}) {
		t.Errorf("the breaker is %+v, want it closed", b)
	}
	p.distinct()
}

// apart checks that the threads that a success released did not start together.
func (p *probing) apart() {
	p.t.Helper()
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
	p.t.Logf("%d threads started over %s, %d of them in one second", len(starts), span.Round(time.Millisecond), most)
	if span < 5*time.Second || most > len(starts)/2 {
		p.t.Errorf("%d threads started over %s, %d of them in one second; want them apart", len(starts), span, most)
	}
}

// distinct checks that no attempt ran twice and every thread's last one ended
// well.
func (p *probing) distinct() {
	p.t.Helper()
	seen := map[string]bool{}
	for line := range strings.Lines(p.left("starts")) {
		if seen[line] {
			p.t.Errorf("attempt %q ran twice", line)
		}
		seen[line] = true
	}
	for i, s := range p.states(p.threads) {
		if n := len(s.Attempts); n == 0 || s.Attempts[n-1].Receipt.Ending != policy.Completed {
			p.t.Errorf("%s: attempts %+v, want the last completed", p.threads[i], s.Attempts)
		}
	}
}

func aProbeThatDiesMakesRoomForAnother(t *testing.T, db *pgServer) {
	const threads = 12
	p := newProbing(t, db, 3, threads)
	p.touch("hold")
	p.remove("limit")
	p.reach(p.reset)
	p.await("the probe", func() bool { return p.calls() == 2 })
	p.wait(threads-1, "probe")

	var holder *member
	for _, m := range p.nodes {
		if m.began(p.probe()) {
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
	p.reach(p.ahead.now().Add(thread.LeaseTime))
	p.await("another probe", func() bool { return p.calls() == 3 })
	p.wait(threads-1, "probe")
	p.called(3)
	p.remove("hold")
	p.await("every thread's end", func() bool { return p.count(p.threads, overBy("no_change")) == threads })
	p.distinct()
}

// probe is the thread of the last attempt, as the nodes log it.
func (p *probing) probe() string {
	lines := strings.Fields(p.left("starts"))
	return lines[len(lines)-2]
}

// overtaken is a store in which the probe of another thread meets a new limit, and
// leaves the account, right before this thread enters it. Before that it frees the
// place that the thread waits for, once its turn was asked about.
type overtaken struct {
	thread.Store
	slots  chan struct{}
	looks  int
	before func()
}

func (o *overtaken) Breakers(ctx context.Context) (map[string]policy.Breaker, error) {
	if o.looks++; o.looks == 2 {
		<-o.slots
	}
	return o.Store.Breakers(ctx)
}

func (o *overtaken) AcquireProbe(ctx context.Context, l thread.Lease, account string, most int) (bool, error) {
	if o.before != nil {
		o.before()
		o.before = nil
	}
	return o.Store.AcquireProbe(ctx, l, account, most)
}

func TestALimitThatTheProbeMetAMomentAgoHoldsTheNextThread(t *testing.T) {
	t.Parallel()
	c := newCrashRig(t)
	ctx, now := t.Context(), c.clock.now()
	c.cfg.Policy.UsageLimit.AutoContinue = true
	account := c.cfg.Backends[0].Account
	probe, err := c.store.Acquire(ctx, thread.ID{Owner: "acme", Name: "widgets", Number: 99}, "other")
	c.must(err)
	limit := func(resets, at time.Time) {
		c.must(c.store.AppendLeased(ctx, probe, thread.Batch{Account: account, Breaker: func(b policy.Breaker) policy.Breaker {
			return b.After(policy.UsageLimit, resets, at.Add(-time.Second), at)
		}}))
	}
	limit(now.Add(-time.Hour), now.Add(-2*time.Hour)) // whose reset has come
	entered, err := c.store.AcquireProbe(ctx, probe, account, 1)
	c.must(err)
	if !entered {
		t.Fatal("the probe did not enter its account")
	}
	o := &overtaken{Store: c.store, slots: make(chan struct{}, 1), before: func() {
		limit(now.Add(time.Hour), now)
		c.must(c.store.ReleaseProbe(ctx, probe, account))
	}}
	o.slots <- struct{}{}
	box, err := sandbox.New(ctx, sandbox.None)
	c.must(err)
	s := &solver.Solver{Host: solver.GitHub{Forge: c.forge}, Slots: o.slots, Env: attempt.Env{Store: o, Config: c.cfg, Sandbox: box, Node: "node", Now: c.clock.now,
		Log: zerolog.New(c.log), Lookup: os.LookupEnv}}
	s.Env.UseLayers(attempt.LayersIn(c.cfg.DataDir))
	c.must(s.Step(ctx, c.thread))
	if v := c.view(); c.calls() != 0 || v.Rule != "usage_limit" || o.before != nil {
		t.Errorf("the agent was called %d times, then %s (%q); want none, and a wait for the new reset\n%s", c.calls(), v.Rule, v.Reasons, c.log)
	}
	if entered, err = c.store.AcquireProbe(ctx, probe, account, 1); err != nil || !entered || len(o.slots) != 0 {
		t.Errorf("the account or the place is still taken: %t, %v, %d places", entered, err, len(o.slots))
	}
}
