package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/cluster"
	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// The simulated installation. All rates are our choice, for busy repositories in working hours.
const (
	simNodes       = 50
	simRepos       = scaleOwners * scaleRepos
	simThreads     = simRepos * scaleThreads
	simWebhooks    = 40               // per repository and day
	simAttempts    = 2                // per repository and day
	simDay         = 8 * time.Hour    // the day's webhooks and attempts come within this time
	simMean        = 10 * time.Minute // mean duration of an attempt; durations are exponential
	simNote        = 10 * time.Second // mean duration of a model's call, after which an attempt stores its use; exponential
	simPayload     = 14 << 10         // bytes of a webhook, as in the section webhooks
	simAccounts    = 20
	simConnections = simNodes*17 + 30 // 16 for each store, one for its notifications, and the measurement's own
	simSettle      = 10 * time.Second
	simWindow      = 30 * time.Second
	simLate        = time.Second // with a longer wait for a node (99th percentile), a load is above the limit
)

// simLoads are multiples of the rates above.
var simLoads = []float64{1, 5, 10, 20, 40, 80}

// measureNodes counts what one PostgreSQL does for 50 nodes with 5,000 repositories. The nodes run in this process.
// They have the program's own store, queue and watch of other nodes. Webhooks and attempts only call the store. The
// rows compare the number of their statements with the program's.
func measureNodes(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	pg, why, err := startPostgres(ctx, fmt.Sprint("max_connections=", simConnections), "shared_preload_libraries=pg_stat_statements")
	if err != nil {
		return nil, nil, err
	}
	if why != "" {
		return nil, []string{"Many nodes were not measured: " + why + "."}, nil
	}
	defer func() { err = errors.Join(err, pg.stop()) }()
	f := &fleet{pg: pg, add: func(what, measured string) { rows = append(rows, row{what: what, measured: measured}) }}
	if err := f.real(ctx, bin, dir); err != nil {
		return nil, nil, err
	}
	ctx, f.end = context.WithCancel(ctx)
	if err := f.open(ctx); err != nil {
		return nil, nil, errors.Join(err, f.close())
	}
	err = errors.Join(f.measure(ctx), f.close())
	notes = append(notes, fmt.Sprintf("×1 is %.1f webhooks/s, %.2f attempts/s and %.0f running attempts.", f.webhooks(1), f.attempts(1), f.running(1)))
	return rows, notes, err
}

// fleet holds the simulated nodes and their counters.
type fleet struct {
	pg    *postgres
	dsn   string
	meter *sql.DB // reads the database's counters
	log   []thread.Event
	nodes []*simNode
	add   func(what, measured string)
	end   context.CancelFunc
	work  sync.WaitGroup

	mean  time.Duration // mean duration of an attempt
	next  atomic.Int64  // the next thread for an attempt
	guid  atomic.Int64
	runs  atomic.Int64 // running attempts
	done  atomic.Int64 // webhooks and attempts that were handled
	errs  atomic.Int64
	first atomic.Pointer[error]
	woken sync.Map // thread.ID to the time of its wake-up

	mu                   sync.Mutex
	claim, appended, lag []time.Duration
}

func (f *fleet) webhooks(load float64) float64 {
	return load * simRepos * simWebhooks / simDay.Seconds()
}
func (f *fleet) attempts(load float64) float64 {
	return load * simRepos * simAttempts / simDay.Seconds()
}
func (f *fleet) running(load float64) float64 { return f.attempts(load) * simMean.Seconds() }

// real measures the program: an idle server, then a solved issue. The simulated threads get that log.
func (f *fleet) real(ctx context.Context, bin, dir string) (err error) {
	r, err := newBench(ctx, bin, dir, "cat > /dev/null\necho two >> a.txt\n", "plain", "none", "log: {level: warn}\n")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.onPostgres(ctx, f.pg, "nodes"); err != nil {
		return err
	}
	f.dsn = r.DSN
	if f.meter, err = sql.Open("pgx", f.dsn); err != nil {
		return err
	}
	if _, err := f.meter.ExecContext(ctx, "CREATE SCHEMA meter; CREATE EXTENSION pg_stat_statements SCHEMA meter"); err != nil {
		return err
	}
	if _, err := r.Start(ctx); err != nil {
		return err
	}
	idle, err := f.over(ctx, simSettle, 2*simSettle)
	if err != nil {
		return err
	}
	f.add("one idle server (the program): statements/s", fmt.Sprintf("%.0f", idle.statements))
	before, err := f.count(ctx)
	if err != nil {
		return err
	}
	err = r.withReader(ctx, func(db *store.Store) error {
		_, f.log, err = r.Solve(ctx, db)
		return err
	})
	if err != nil {
		return err
	}
	after, err := f.count(ctx)
	if err != nil {
		return err
	}
	used := after.minus(before)
	f.add("an issue from webhook to pull request (the program): statements", fmt.Sprintf("%.0f", used.statements-idle.statements*used.seconds))
	f.add("its webhooks", strconv.Itoa(len(r.World.Deliveries())))
	return nil
}

func (r *bench) withReader(ctx context.Context, do func(*store.Store) error) (err error) {
	db, err := store.Open(ctx, r.Database(), store.Options{Access: store.Reading})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db)
}

// fill creates the threads, each with the solved issue's log, and a day's ledger of attempts.
func (f *fleet) fill(ctx context.Context) error {
	return inTx(ctx, f.meter, func(tx *sql.Tx) error {
		for _, query := range []string{
			fmt.Sprintf(`INSERT INTO threads (owner, name, number, last_seq, updated_at, active)
				SELECT 'team' || i / %d, 'app' || i / %d %% %d, i %% %d + 1, %d, $1::bigint, 1 FROM generate_series(0, %d) i`,
				scaleRepos*scaleThreads, scaleThreads, scaleRepos, scaleThreads, len(f.log), simThreads-1),
			`INSERT INTO events (thread_id, seq, key, kind, at, data) SELECT t.id, e.seq, e.key, e.kind, $1::bigint, e.data
				FROM threads t, events e WHERE t.owner LIKE 'team%' AND e.thread_id =
				(SELECT thread_id FROM events GROUP BY thread_id ORDER BY count(*) DESC LIMIT 1)`,
			fmt.Sprintf(`INSERT INTO attempts (thread_id, n, repo, installation, account, at, tokens, micro_usd)
				SELECT id, 0, owner || '/' || name, id / %d, 'account' || id %% %d, $1::bigint, 100000, 500000
				FROM threads WHERE owner LIKE 'team%%' AND number <= %d`, scaleRepos*scaleThreads, simAccounts, simAttempts),
		} {
			if _, err := tx.ExecContext(ctx, query, time.Now().UnixMicro()); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *fleet) open(ctx context.Context) error {
	if err := f.fill(ctx); err != nil {
		return err
	}
	if _, err := f.meter.ExecContext(ctx, "VACUUM ANALYZE"); err != nil {
		return err
	}
	for i := range simNodes {
		n := &simNode{fleet: f, name: fmt.Sprint("node-", i), self: policy.Node{Agents: true, Folder: fmt.Sprint("folder-", i)}}
		var err error
		if n.db, err = store.Open(ctx, f.dsn, store.Options{Node: n.name, Self: &n.self, Prefer: 3 * time.Second}); err != nil {
			return err
		}
		f.nodes = append(f.nodes, n)
		n.queue = queue.New(queue.Options{
			Store: n, Node: n.name, Workers: 1000, HandleDelivery: n.deliver, Step: n.step,
			Sweep:  func(ctx context.Context) error { _, err := n.db.Sweep(ctx); return err },
			Logger: slog.New(slog.DiscardHandler),
		})
		n.db.UseQueue(n.queue)
		n.queue.Start(ctx)
		f.work.Go(func() { cluster.Watch(ctx, n.db.Nodes(), n.name, zerolog.New(io.Discard)) })
		f.work.Go(func() { n.duties(ctx) })
	}
	return nil
}

func (f *fleet) close() (err error) {
	f.end()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var stops sync.WaitGroup
	for _, n := range f.nodes {
		if n.queue != nil {
			stops.Go(func() { f.failed(n.queue.Stop(ctx)) })
		}
	}
	stops.Wait()
	f.work.Wait()
	for _, n := range f.nodes {
		err = errors.Join(err, n.db.Close())
	}
	if first := f.first.Load(); first != nil {
		f.add("failed calls of the store", fmt.Sprintf("%d, the first: %v", f.errs.Load(), *first))
	}
	return errors.Join(err, f.meter.Close())
}

// failed counts an error of a simulated node and keeps the first one.
func (f *fleet) failed(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	f.errs.Add(1)
	f.first.CompareAndSwap(nil, &err)
}

// measure raises the load until nodes are late.
func (f *fleet) measure(ctx context.Context) error {
	idle, err := f.over(ctx, simSettle, 2*simSettle)
	if err != nil {
		return err
	}
	f.add(fmt.Sprintf("%d idle nodes", simNodes), idle.String())
	if err := f.compare(ctx, idle); err != nil {
		return err
	}
	f.mean = simMean
	for _, load := range simLoads {
		late, err := f.under(ctx, load)
		if err != nil {
			return err
		}
		if late {
			return nil
		}
	}
	return nil
}

// compare counts the statements of simulated attempts that take no time, each with its share of the webhooks.
func (f *fleet) compare(ctx context.Context, idle counts) error {
	const attempts, webhooks = 20, 20 * simWebhooks / simAttempts
	before, err := f.count(ctx)
	if err != nil {
		return err
	}
	for i := range attempts + webhooks {
		if i < attempts {
			f.nodes[i].webhook(ctx, "issue_comment", strconv.FormatInt(f.next.Add(1), 10))
			continue
		}
		f.nodes[i%simNodes].webhook(ctx, "check_run", "")
	}
	for f.done.Load() < 2*attempts+webhooks || f.runs.Load() > 0 {
		if err := wait.For(ctx, time.Second/10); err != nil {
			return err
		}
	}
	after, err := f.count(ctx)
	if err != nil {
		return err
	}
	used := after.minus(before)
	f.add(fmt.Sprintf("a simulated attempt with %d webhooks: statements", webhooks/attempts+1),
		fmt.Sprintf("%.0f, without renewals and use", (used.statements-idle.statements*used.seconds)/attempts))
	return nil
}

// under measures one load and reports whether it exceeds the limit.
func (f *fleet) under(ctx context.Context, load float64) (late bool, err error) {
	loading, cancel := context.WithCancel(ctx)
	defer cancel()
	var sources sync.WaitGroup
	defer sources.Wait()
	defer cancel()
	for missing := int64(f.running(load)) - f.runs.Load(); missing > 0; missing-- {
		f.nodes[int(missing)%simNodes].continues(ctx)
	}
	sources.Go(func() { f.poisson(loading, f.webhooks(load), func(n *simNode) { n.webhook(ctx, "check_run", "") }) })
	sources.Go(func() {
		f.poisson(loading, f.attempts(load), func(n *simNode) { n.webhook(ctx, "issue_comment", strconv.FormatInt(f.next.Add(1), 10)) })
	})
	if err := wait.For(ctx, simSettle); err != nil {
		return false, err
	}
	f.mu.Lock()
	f.claim, f.appended, f.lag = nil, nil, nil
	f.mu.Unlock()
	done := f.done.Load()
	used, err := f.over(ctx, 0, simWindow)
	if err != nil {
		return false, err
	}
	handled := float64(f.done.Load()-done) / used.seconds / (f.webhooks(load) + f.attempts(load))
	f.mu.Lock()
	defer f.mu.Unlock()
	name := fmt.Sprintf("%d nodes, ×%.0f", simNodes, load)
	f.add(name, used.String())
	f.add(name+": claim, append, wait for a node", fmt.Sprintf("%s; %s; %s", far(f.claim), far(f.appended), far(f.lag)))
	f.add(name+": handled share of webhooks and attempts", fmt.Sprintf("%.2f, with %d running attempts", handled, f.runs.Load()))
	return quantile(f.lag, 0.99) > simLate || handled < 0.9, nil
}

// far formats the median and the 99th percentile.
func far(all []time.Duration) string {
	return fmt.Sprintf("median %s, p99 %s", ms(quantile(all, 0.5)), ms(quantile(all, 0.99)))
}

// poisson calls do on random nodes, at random times with a mean rate per second.
func (f *fleet) poisson(ctx context.Context, rate float64, do func(*simNode)) {
	var calls sync.WaitGroup
	defer calls.Wait()
	for at := time.Now(); ; {
		at = at.Add(time.Duration(rand.ExpFloat64() / rate * float64(time.Second)))
		if wait.For(ctx, time.Until(at)) != nil {
			return
		}
		calls.Go(func() { do(f.nodes[rand.IntN(simNodes)]) })
	}
}

// counts holds the database's counters.
type counts struct {
	seconds, statements, commits float64
	postgres, nodes              time.Duration // CPU time of PostgreSQL, and of this process
	connections                  int
}

func (f *fleet) count(ctx context.Context) (c counts, err error) {
	err = f.meter.QueryRowContext(ctx, `SELECT extract(epoch FROM clock_timestamp()),
		(SELECT sum(calls) FROM meter.pg_stat_statements),
		(SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()),
		(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`).
		Scan(&c.seconds, &c.statements, &c.commits, &c.connections)
	c.postgres, c.nodes = familyTime(f.pg.Server.Process.Pid), cpuTime(os.Getpid())
	return c, err
}

func (c counts) minus(before counts) counts {
	c.seconds -= before.seconds
	c.statements -= before.statements
	c.commits -= before.commits
	c.postgres -= before.postgres
	c.nodes -= before.nodes
	return c
}

// over waits for settle, then counts for window. It returns statements and transactions per second.
func (f *fleet) over(ctx context.Context, settle, window time.Duration) (c counts, err error) {
	if err := wait.For(ctx, settle); err != nil {
		return c, err
	}
	before, err := f.count(ctx)
	if err != nil {
		return c, err
	}
	if err := wait.For(ctx, window); err != nil {
		return c, err
	}
	if c, err = f.count(ctx); err != nil {
		return c, err
	}
	c = c.minus(before)
	c.statements /= c.seconds
	c.commits /= c.seconds
	return c, nil
}

func (c counts) String() string {
	return fmt.Sprintf("%.0f statements/s, %.0f transactions/s, PostgreSQL %.2f cores, nodes %.2f cores, %d connections",
		c.statements, c.commits, c.postgres.Seconds()/c.seconds, c.nodes.Seconds()/c.seconds, c.connections)
}

// familyTime returns the CPU time of a process and its children, including ended children.
func familyTime(pid int) (sum time.Duration) {
	sum = cpuTime(pid) + waitedTime(pid)
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range all {
		text, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(child); err == nil {
				sum += cpuTime(pid)
			}
		}
	}
	return sum
}
