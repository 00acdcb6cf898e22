package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/cluster"
	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// simNode is a node with the program's store and queue, and simulated work.
type simNode struct {
	*fleet
	name  string
	self  policy.Node
	db    *store.Store
	queue *queue.Queue
}

// duties tries every 15 s to take over the cleaning and the search for missed webhooks, like a server.
func (n *simNode) duties(ctx context.Context) {
	all := []*cluster.Duty{
		cluster.NewDuty(n.db, "clean", n.name, time.Hour),
		cluster.NewDuty(n.db, "catch-up", n.name, 5*time.Minute),
	}
	for wait.For(ctx, 15*time.Second) == nil {
		for _, d := range all {
			mine, err := d.Begin(ctx)
			if mine {
				err = d.End(ctx)
			}
			n.failed(err)
		}
	}
}

// Claim claims threads, and measures the time if it finds any.
func (n *simNode) Claim(ctx context.Context, owner string, most int) ([]thread.Lease, error) {
	began := time.Now()
	leases, err := n.db.Claim(ctx, owner, most)
	n.failed(err)
	if len(leases) > 0 {
		n.took(&n.claim, began)
	}
	return leases, err
}

func (n *simNode) ClaimDeliveries(ctx context.Context, most int) ([]thread.Delivery, error) {
	return n.db.ClaimDeliveries(ctx, most)
}

func (n *simNode) Listen(ctx context.Context, node string, wake func()) {
	n.db.Nodes().Listen(ctx, node, wake)
}

func (f *fleet) took(all *[]time.Duration, began time.Time) {
	took := time.Since(began)
	f.mu.Lock()
	defer f.mu.Unlock()
	*all = append(*all, took)
}

// simThread returns a thread by its number. Consecutive numbers belong to different repositories.
func simThread(i int) thread.ID {
	i = i * 7919 % simThreads // a prime, so every thread is reached
	per := scaleRepos * scaleThreads
	return thread.ID{Owner: fmt.Sprint("team", i/per), Name: fmt.Sprint("app", i/scaleThreads%scaleRepos), Number: i%scaleThreads + 1}
}

// webhook stores a delivery. Its payload begins with wanted: the number of the thread to attempt, or empty for none.
func (n *simNode) webhook(ctx context.Context, event, wanted string) {
	payload := make([]byte, simPayload)
	copy(payload, wanted+" ")
	_, err := n.db.Receive(ctx, thread.Delivery{
		GUID: fmt.Sprint("simulated-", n.guid.Add(1)), Event: event, Payload: payload, ReceivedAt: n.db.Now(),
	})
	n.failed(err)
}

// deliver handles a webhook: it looks up the thread and logs a command, which wakes the thread.
func (n *simNode) deliver(ctx context.Context, d thread.Delivery) error {
	wanted, _, _ := strings.Cut(string(d.Payload), " ")
	i, err := strconv.Atoi(wanted)
	if err != nil {
		i = rand.IntN(simThreads)
	}
	t, err := n.db.Resolve(ctx, simThread(i))
	if err == nil && wanted != "" {
		err = n.command(ctx, t, d.GUID)
	}
	err = errors.Join(err, n.db.FinishDelivery(ctx, d.GUID, thread.Handled, ""))
	n.failed(err)
	n.done.Add(1)
	return err
}

func (n *simNode) command(ctx context.Context, t thread.ID, guid string) error {
	if _, err := n.db.Events(ctx, t, 0); err != nil {
		return err
	}
	n.woken.Store(t, time.Now())
	began := time.Now()
	_, err := n.db.Append(ctx, t, true, n.event("feedback:"+guid, thread.KindFeedback))
	n.took(&n.appended, began)
	return err
}

// event returns an event with the data, and thus the size, of a random event of the solved issue.
func (n *simNode) event(key string, kind thread.Kind) thread.NewEvent {
	return thread.NewEvent{Key: key, Kind: kind, At: n.db.Now(), Data: rawJSON(n.log[rand.IntN(len(n.log))].Data)}
}

// step runs a simulated attempt on a claimed thread.
func (n *simNode) step(ctx context.Context, l thread.Lease, asked time.Time) error {
	if at, ok := n.woken.LoadAndDelete(l.Thread); ok {
		n.took(&n.lag, at.(time.Time))
	}
	n.runs.Add(1)
	defer n.runs.Add(-1)
	ctx, h := lease.Hold(ctx, n.db, l, asked, n.db.Now)
	defer h.Release(nil)
	err := n.begin(ctx, h)
	n.done.Add(1)
	if err == nil {
		err = n.run(ctx, h)
	}
	n.failed(err)
	return err
}

// continues runs an attempt that began before the measurement.
func (n *simNode) continues(ctx context.Context) {
	n.runs.Add(1)
	n.work.Go(func() {
		defer n.runs.Add(-1)
		asked := time.Now()
		l, err := n.db.Acquire(ctx, simThread(int(n.next.Add(1))), n.name)
		if err != nil {
			n.failed(err)
			return
		}
		ctx, h := lease.Hold(ctx, n.db, l, asked, n.db.Now)
		defer h.Release(nil)
		n.failed(n.run(ctx, h))
	})
}

// begin decides and prepares, as the solver does: it reads the log and all shared state, and enters the attempt in the
// ledger. Reporting the attempt on GitHub takes two events for each change.
func (n *simNode) begin(ctx context.Context, h *lease.Holder) error {
	l := h.Current()
	account := n.account(l)
	_, nodes := n.db.Nodes().Nodes(ctx, n.name)
	_, warm := n.db.Nodes().WarmFolder(ctx, l.Thread)
	err := errors.Join(nodes, warm, n.facts(ctx, l), n.facts(ctx, l), n.facts(ctx, l))
	if err != nil {
		return err
	}
	if _, err := n.db.AcquireProbe(ctx, l, account, 0); err != nil {
		return err
	}
	now := n.db.Now()
	entry := thread.Entry{N: int(l.Epoch), Installation: installationOf(l.Thread), Account: account, At: now, Since: now.Add(-policy.Day)}
	if _, err := n.db.Reserve(ctx, l, entry, func(policy.Usage) bool { return true }); err != nil {
		return err
	}
	if err := n.db.Nodes().SetWarmFolder(ctx, l.Thread, n.self.Folder); err != nil {
		return err
	}
	_, err = n.db.Events(ctx, l.Thread, 0)
	return errors.Join(err, n.appends(ctx, h, simBegins))
}

// The number of events that the program's step appends to a solved issue before and after the agent's run.
const simBegins, simEnds = 7, 12

func (n *simNode) facts(ctx context.Context, l thread.Lease) error {
	_, log := n.db.Events(ctx, thread.RepoLog(l.Thread.Owner, l.Thread.Name), 0)
	_, breakers := n.db.Breakers(ctx)
	_, meters := n.db.Meters(ctx)
	_, cooldowns := n.db.Cooldowns(ctx, l.Thread.Repo())
	_, usage := n.db.Usage(ctx, l.Thread.Repo(), installationOf(l.Thread), n.db.Now().Add(-policy.Day))
	_, running := n.db.Running(ctx, l.Thread)
	return errors.Join(log, breakers, meters, cooldowns, usage, running)
}

func (n *simNode) account(l thread.Lease) string {
	return fmt.Sprint("account", l.Thread.Number%simAccounts)
}

func installationOf(t thread.ID) int64 {
	n, _ := strconv.ParseInt(strings.TrimPrefix(t.Owner, "team"), 10, 64)
	return n
}

// appends stores events one by one.
func (n *simNode) appends(ctx context.Context, h *lease.Holder, events int) error {
	for range events {
		began := time.Now()
		if err := h.Append(ctx, thread.Batch{Events: []thread.NewEvent{n.event("", thread.KindActDone)}}); err != nil {
			return err
		}
		n.took(&n.appended, began)
	}
	return nil
}

// run waits for the simulated agent and stores its usage. Then it reports the result.
func (n *simNode) run(ctx context.Context, h *lease.Holder) error {
	spent := policy.Spent{N: int(h.Current().Epoch)}
	end := time.Now().Add(time.Duration(rand.ExpFloat64() * float64(n.mean)))
	for time.Now().Before(end) {
		call := time.Duration(rand.ExpFloat64() * float64(simNote))
		if err := wait.For(ctx, min(call, time.Until(end))); err != nil {
			return err
		}
		spent.Tokens.Output += 1000
		if err := n.db.Note(ctx, h.Current(), spent); err != nil {
			return err
		}
	}
	if err := n.appends(ctx, h, simEnds); err != nil {
		return err
	}
	if err := n.db.PutGraded(ctx, thread.GradeRow{ID: h.Current().Thread.String(), At: n.db.Now(), Backend: "mine", Repo: h.Current().Thread.Repo(), Data: []byte("{}")}); err != nil {
		return err
	}
	return n.facts(ctx, h.Current())
}
