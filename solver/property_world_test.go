package solver_test

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// world is a Pawl of one or two nodes on one database, with its GitHub and its agents, in virtual time.
type world struct {
	t    *testing.T
	seed uint64
	base
	store  *store.Store
	github *github
	repo   *repository
	agents *agents
	config config.Server
	verify []string
	began  time.Time
	calmAt atomic.Pointer[time.Time] // since when only agents fail; nil if not yet known
	swept  time.Time                 // the time of the last sweep
	rings  chan struct{}
	steps  sync.WaitGroup

	mu      sync.Mutex
	started int // nodes
	nodes   []*node
	revive  []time.Time
	running int // claims and their steps
	asking  int // claims
	threads []*issue
	books   books
	trail   []string
	failure string
}

// issue is a thread and its script.
type issue struct {
	thread.ID
	body   string
	events int // number of its events
}

func branchOf(t thread.ID) string { return fmt.Sprintf("%s%d", thread.BranchPrefix, t.Number) }

func newWorld(t *testing.T, seed uint64, base base) *world {
	w := &world{t: t, seed: seed, base: base, github: &github{}, repo: &repository{tips: map[string]string{}, commits: map[string]bool{}},
		agents: &agents{until: map[string]time.Time{}, sources: map[string]string{}},
		began:  time.Now(), rings: make(chan struct{}, 1), books: newBooks()}
	path := filepath.Join(t.TempDir(), "pawl.db")
	err := os.WriteFile(path, base.image, 0o600)
	if err == nil {
		w.store, err = store.Open(t.Context(), "sqlite:"+path, store.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	w.store.UseQueue(w)
	w.configure(w.chanceOf("config"))
	return w
}

// chanceOf returns a separate random source for each purpose, so that concurrent draws do not affect each other.
func (w *world) chanceOf(what string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, what)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

func (w *world) configure(r *rand.Rand) {
	w.config = config.Default()
	w.config.DataDir = w.dir
	w.config.Policy.Restarts.Max = 1 + r.IntN(6)
	w.config.Policy.Restarts.BackoffAfter = r.IntN(4)
	w.config.Policy.Restarts.MaxPerThreadPerDay = 3 + r.IntN(10)
	w.config.Policy.Unattended.MaxAttempts = r.IntN(6)
	if r.IntN(3) == 0 {
		w.config.Policy.Caps.PerRepositoryPerDay = 2 + r.IntN(4)
	}
	w.config.Policy.UsageLimit.AutoContinue = r.IntN(2) == 0
	for i := range 1 + r.IntN(3) {
		b := config.NewBackend(fmt.Sprint("b", i), config.Codex)
		b.Account, b.EscalatedEffort = fmt.Sprint("account", r.IntN(2)), "high"
		w.config.Backends = append(w.config.Backends, b)
	}
	if r.IntN(2) == 0 {
		w.verify = []string{"make test"}
	}
	for i := range 1 + r.IntN(3) {
		w.threads = append(w.threads, &issue{ID: thread.ID{Owner: "o", Name: "r", Number: i + 1}, body: "It is broken."})
	}
}

// calm reports whether the faults have ended.
func (w *world) calm() bool {
	at := w.calmAt.Load()
	return at != nil && !time.Now().Before(*at)
}

// note writes the trail that is printed when the seed fails.
func (w *world) note(format string, args ...any) {
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	w.trail = append(w.trail, fmt.Sprintf("%12.3fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// failed returns the first violation, or "".
func (w *world) failed() string {
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	return w.failure
}

// fail records a violation.
func (w *world) fail(format string, args ...any) {
	w.note("FAILS: "+format, args...)
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
	}
}

// start adds a node, which may die at one of its calls. The caller holds mu.
func (w *world) start() {
	w.started++
	n := &node{world: w, name: fmt.Sprintf("host-%d", w.started), left: -1}
	n.chance = w.chanceOf(n.name)
	if n.chance.IntN(3) > 0 && !w.calm() {
		n.left = 1 + n.chance.IntN(120)
	}
	n.ctx, n.kill = context.WithCancel(context.Background())
	gh, err := forge.New(forge.Config{WebURL: "http://github.test", APIURL: "http://github.test", AppID: appID, PrivateKey: w.key, Transport: n})
	if err != nil {
		w.t.Fatal(err)
	}
	n.solver = &solver.Solver{Env: attempt.Env{Store: n, Config: w.config, Node: n.name, Now: time.Now, Log: zerolog.Nop(),
		Lookup: func(string) (string, bool) { return "", false }}}
	if n.chance.IntN(3) == 0 {
		n.solver.Slots = make(chan struct{}, 1+n.chance.IntN(2))
	}
	n.solver.Host = solver.OnStage(gh, n)
	w.nodes = append(w.nodes, n)
	w.note("%s starts", n.name)
}

// died replaces a dead node, immediately or later.
func (w *world) died(n *node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaves(n, time.Duration(n.chance.Int64N(int64(time.Minute))))
}

// shutDown stops a node like a SIGTERM.
func (w *world) shutDown(r *rand.Rand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.nodes) == 0 {
		return
	}
	n := w.nodes[r.IntN(len(w.nodes))]
	w.note("%s is stopped", n.name)
	w.leaves(n, time.Duration(r.Int64N(int64(time.Minute))))
	n.kill()
}

// leaves replaces a node after a time. The caller holds mu.
func (w *world) leaves(n *node, after time.Duration) {
	if !slices.Contains(w.nodes, n) {
		return
	}
	w.nodes = slices.DeleteFunc(w.nodes, func(o *node) bool { return o == n })
	w.revive = append(w.revive, time.Now().Add(after))
	slices.SortFunc(w.revive, time.Time.Compare)
	w.ring()
}

func (w *world) ring() {
	select {
	case w.rings <- struct{}{}:
	default:
	}
}

// Committed makes the world the queue of its store.
func (w *world) Committed(bool, []thread.Delivery) { w.ring() }

// due returns the number of due threads, the next wake-up, and the end of the first lease; zero for never.
func (w *world) due() (threads int, next, lapse time.Time) {
	var at, until sql.NullInt64
	err := w.store.DB().QueryRow(`SELECT coalesce(sum(lease_until = 0 AND (queued_at > 0 OR wake_at > 0 AND wake_at <= ?1)), 0),
		min(CASE WHEN lease_until = 0 AND wake_at > ?1 THEN wake_at END), min(CASE WHEN lease_until > 0 THEN lease_until END) FROM threads`,
		time.Now().UnixMicro()).Scan(&threads, &at, &until)
	if err != nil {
		w.t.Fatal(err)
	}
	if at.Valid {
		next = time.UnixMicro(at.Int64)
	}
	if until.Valid {
		lapse = time.UnixMicro(until.Int64)
	}
	return threads, next, lapse
}

// work lets nodes claim the due threads.
func (w *world) work(r *rand.Rand, due int) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.revive) > 0 && !w.revive[0].After(now) {
		w.revive = w.revive[1:]
		w.start()
	}
	if len(w.nodes) == 0 {
		return
	}
	for w.asking < due {
		n := w.nodes[r.IntN(len(w.nodes))]
		w.asking++
		w.running++
		w.steps.Go(func() { w.step(n) })
	}
}

// step claims a thread and works on it, as the queue does. The thread's row then has the next wake-up.
func (w *world) step(n *node) {
	asked := time.Now()
	leases, err := with(n, n.ctx, "claim", func() ([]thread.Lease, error) { return w.store.Claim(n.ctx, n.name, 1) })
	if err != nil && n.ctx.Err() == nil {
		time.Sleep(queuePoll)
	}
	w.mu.Lock()
	w.asking--
	w.mu.Unlock()
	if err == nil {
		for _, l := range leases {
			hungUp := w.stepping(n, l.Thread)
			err := n.solver.Work(n.ctx, l, asked)
			hungUp()
			w.note("%s: step of %s ends: %v", n.name, l.Thread, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	w.ring()
}

// nextSweep returns when the sweep finds the first expired lease; zero for never.
func (w *world) nextSweep(lapse time.Time) time.Time {
	if least := w.swept.Add(queueSweep); !lapse.IsZero() && lapse.Before(least) {
		return least
	}
	return lapse
}

// queuePoll is the queue's pause after a failed claim.
const queuePoll = time.Second

// queueSweep is how often the queue sweeps.
const queueSweep = 5 * time.Second

func (w *world) sweep() {
	w.swept = time.Now()
	if _, err := w.store.Sweep(w.t.Context()); err != nil {
		w.fail("sweep: %v", err)
	}
}
