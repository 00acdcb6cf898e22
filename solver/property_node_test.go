package solver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// node is one server with its own solver. All its calls to the store, GitHub and git pass through the node. At any call
// it may die, lose the store for a while, or freeze. It implements thread.Store and http.RoundTripper.
type node struct {
	*world
	name   string
	solver *solver.Solver
	ctx    context.Context // ends with the node
	kill   context.CancelFunc

	mu     sync.Mutex
	chance *rand.Rand
	left   int // number of calls until it dies; negative for never
	dead   bool
	still  time.Time // frozen until then
	deaf   time.Time // cut off from the store until then
	cut    time.Time // cut off from the git server until then
}

var (
	errDead = errors.New("the node is dead")
	errDeaf = errors.New("the database does not answer")
)

// fate is the result of one call.
type fate int

const (
	works fate = iota
	notDone
	doneUnheard // the call is done, and its answer is lost
	diesBefore
	diesAfter
)

// next draws the fate of a call, and how long it takes.
func (n *node) next() (fate, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	takes := time.Duration(n.chance.Int64N(int64(3*time.Millisecond))) + 1
	if n.dead {
		return diesBefore, 0
	}
	if wait := time.Until(n.still); wait > 0 {
		takes += wait
	}
	if n.left > 0 {
		n.left--
	}
	switch {
	case n.left == 0 && n.chance.IntN(2) == 0:
		return diesBefore, takes
	case n.left == 0:
		return diesAfter, takes
	case n.calm():
		return works, takes
	case time.Until(n.deaf) > 0:
		return notDone, time.Second
	}
	switch n.chance.IntN(400) {
	case 0, 1:
		return notDone, takes
	case 2:
		return doneUnheard, takes
	case 3:
		n.note("%s does not reach the store for a while", n.name)
		n.deaf = time.Now().Add(time.Duration(n.chance.Int64N(int64(45 * time.Second))))
	case 4:
		n.note("%s stands still", n.name)
		n.still = time.Now().Add(35*time.Second + time.Duration(n.chance.Int64N(int64(20*time.Second))))
	}
	return works, takes
}

// call runs a function that may fail or be the node's last.
func (n *node) call(ctx context.Context, what string, do func() error) error {
	fate, takes := n.next()
	if what != readGrades {
		pause(ctx, takes)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case fate == diesBefore || n.isDead():
		n.die(what + " is not done")
		return errDead
	case fate == notDone:
		n.note("%s: %s fails", n.name, what)
		return fmt.Errorf("%s: %w", what, errDeaf)
	}
	err := do()
	switch fate {
	case diesAfter:
		n.die(what + " is done")
		return errDead
	case doneUnheard:
		n.note("%s: %s is done and not answered", n.name, what)
		return errors.Join(err, fmt.Errorf("%s: %w", what, errDeaf))
	}
	return err
}

// readGrades takes no time: the solver holds a mutex, and virtual time stops while others wait for it.
const readGrades = "read grades"

// pause lets virtual time pass.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (n *node) isDead() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dead
}

// die ends the node immediately: its later calls have no effect.
func (n *node) die(where string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead {
		return
	}
	n.dead = true
	n.note("%s dies: %s", n.name, where)
	n.kill()
	n.died(n)
}

// RoundTrip sends a request to GitHub.
func (n *node) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
	}
	what := req.Method + " " + req.URL.Path
	if resp := n.refusal(req); resp != nil {
		n.note("%s: %s is answered %d", n.name, what, resp.StatusCode)
		return resp, nil
	}
	if n.stands() {
		// A request in flight when the node froze is not sent. In production one may slip through; see
		// lease.Holder.Confirm.
		pause(req.Context(), time.Until(n.still))
		return nil, errors.New("connection reset")
	}
	var resp *http.Response
	err := n.call(req.Context(), what, func() error {
		status, answer := n.github.serve(req.Method, req.URL.EscapedPath(), req.URL.RawQuery, body)
		if req.Method != http.MethodGet {
			n.note("%s: %s -> %d", n.name, what, status)
		}
		resp = respond(req, status, nil, answer)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// reachable returns since when the node has been neither frozen nor cut off from the store; zero for always.
func (n *node) reachable() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.still.After(n.deaf) {
		return n.still
	}
	return n.deaf
}

func (n *node) stands() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Until(n.still) > 0
}

// refusal draws a failure of GitHub; nil for none.
func (n *node) refusal(req *http.Request) *http.Response {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calm() || n.dead {
		return nil
	}
	secondary := object{"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
	switch n.chance.IntN(60) {
	case 0:
		return respond(req, 502, nil, object{"message": "Server Error"})
	case 1:
		return respond(req, 403, http.Header{"Retry-After": {fmt.Sprint(1 + n.chance.IntN(300))}}, secondary)
	case 2:
		return respond(req, 429, http.Header{"Retry-After": {fmt.Sprint(1 + n.chance.IntN(90))}}, secondary)
	}
	return nil
}

// Git calls of an attempt. They fail if the node cannot reach its git server.

func (n *node) Tip(ctx context.Context, t thread.ID) (tip string, err error) {
	err = n.git(ctx, "git fetch", func() error { tip = n.repo.tip(branchOf(t)); return nil })
	return tip, err
}

func (n *node) Push(ctx context.Context, t thread.ID, branch, from, to string) error {
	return n.git(ctx, "git push", func() error { n.worked(t); return n.repo.push(branch, from, to) })
}

func (n *node) Pushed(ctx context.Context, _ thread.ID, commit string) (there bool, err error) {
	err = n.git(ctx, "git fetch", func() error { there = n.repo.has(commit); return nil })
	return there, err
}

func (n *node) git(ctx context.Context, what string, do func() error) error {
	if n.cutOff() {
		pause(ctx, time.Second)
		return fmt.Errorf("%w: %s", git.ErrUnavailable, what)
	}
	err := n.call(ctx, what, do)
	if errors.Is(err, errDeaf) {
		return fmt.Errorf("%w: %w", git.ErrUnavailable, err)
	}
	return err
}

// cutOff reports whether the node cannot reach the git server. Outages take minutes, and sometimes longer than a push
// waits.
func (n *node) cutOff() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calm() {
		return false
	}
	if time.Now().After(n.cut) && n.chance.IntN(40) == 0 {
		lasts := []time.Duration{time.Minute, 10 * time.Minute, 10 * time.Minute, 7 * time.Hour}[n.chance.IntN(4)]
		n.cut = time.Now().Add(time.Duration(n.chance.Int64N(int64(lasts))))
		n.note("%s does not reach the git server until %v", n.name, n.cut)
	}
	return time.Now().Before(n.cut)
}

func (n *node) Verify() []string { return n.verify }

// Play draws what the agent does.
func (n *node) Play(t thread.ID, a thread.Started) solver.Play {
	p := n.agents.play(n.world, t, a)
	n.books.mu.Lock()
	defer n.books.mu.Unlock()
	if c, runs := n.books.calls[t]; runs {
		c.worked, c.report = time.Now().Add(p.Takes), p.Report
		n.books.calls[t] = c
	}
	return p
}

// The methods below are the store's, with the node's fate.

func with[T any](n *node, ctx context.Context, what string, do func() (T, error)) (v T, err error) {
	err = n.call(ctx, what, func() (err error) { v, err = do(); return err })
	return v, err
}

func (n *node) Resolve(ctx context.Context, t thread.ID) (thread.ID, error) {
	return with(n, ctx, "resolve", func() (thread.ID, error) { return n.store.Resolve(ctx, t) })
}

func (n *node) Events(ctx context.Context, t thread.ID, after int64) ([]thread.Event, error) {
	return with(n, ctx, "read "+t.String(), func() ([]thread.Event, error) { return n.store.Events(ctx, t, after) })
}

func (n *node) Append(ctx context.Context, t thread.ID, wake bool, events ...thread.NewEvent) (int, error) {
	return with(n, ctx, "append", func() (int, error) { return n.store.Append(ctx, t, wake, events...) })
}

func (n *node) Acquire(ctx context.Context, t thread.ID, owner string) (thread.Lease, error) {
	return with(n, ctx, "acquire "+t.String(), func() (thread.Lease, error) { return n.store.Acquire(ctx, t, owner) })
}

func (n *node) Renew(ctx context.Context, l thread.Lease) (thread.Lease, error) {
	return with(n, ctx, "renew", func() (thread.Lease, error) { return n.store.Renew(ctx, l) })
}

func (n *node) Release(ctx context.Context, l thread.Lease, retry thread.Retry) error {
	what := "release"
	if retry != nil {
		what = "release to try again"
	}
	return n.call(ctx, what, func() error { return n.store.Release(ctx, l, retry) })
}

func (n *node) AppendLeased(ctx context.Context, l thread.Lease, b thread.Batch) error {
	what := "append"
	for _, e := range b.Events {
		what += " " + string(e.Kind)
	}
	return n.call(ctx, what, func() error {
		err := n.store.AppendLeased(ctx, l, b)
		if err == nil {
			n.appended(n, l.Thread, b)
		}
		return err
	})
}

func (n *node) Note(ctx context.Context, l thread.Lease, spent policy.Spent) error {
	return n.call(ctx, "note", func() error { return n.store.Note(ctx, l, spent) })
}

func (n *node) Usage(ctx context.Context, repo string, installation int64, since time.Time) (policy.Usage, error) {
	return with(n, ctx, "read usage", func() (policy.Usage, error) { return n.store.Usage(ctx, repo, installation, since) })
}

func (n *node) Reserve(ctx context.Context, l thread.Lease, e thread.Entry, allow func(policy.Usage) bool) (bool, error) {
	return with(n, ctx, "reserve", func() (bool, error) { return n.store.Reserve(ctx, l, e, allow) })
}

func (n *node) Noted(ctx context.Context, t thread.ID) ([]byte, error) {
	return with(n, ctx, "read note", func() ([]byte, error) { return n.store.Noted(ctx, t) })
}

func (n *node) Meters(ctx context.Context) (map[string][]policy.Meter, error) {
	return with(n, ctx, "read usage windows", func() (map[string][]policy.Meter, error) { return n.store.Meters(ctx) })
}

func (n *node) Running(ctx context.Context, except thread.ID) (map[string]int, error) {
	return with(n, ctx, "count running attempts", func() (map[string]int, error) { return n.store.Running(ctx, except) })
}

func (n *node) PutReading(ctx context.Context, r thread.Reading) error {
	return n.store.PutReading(ctx, r)
}

func (n *node) Breakers(ctx context.Context) (map[string]policy.Breaker, error) {
	return with(n, ctx, "read breakers", func() (map[string]policy.Breaker, error) { return n.store.Breakers(ctx) })
}

func (n *node) Cooldowns(ctx context.Context, repo string) (map[string][]thread.Cooldown, error) {
	return with(n, ctx, "read cooldowns", func() (map[string][]thread.Cooldown, error) { return n.store.Cooldowns(ctx, repo) })
}

func (n *node) PutGraded(ctx context.Context, r thread.GradeRow) error {
	return n.call(ctx, "put grade", func() error { return n.store.PutGraded(ctx, r) })
}

func (n *node) Graded(ctx context.Context, since time.Time, limit int) ([]thread.GradeRow, error) {
	return with(n, ctx, readGrades, func() ([]thread.GradeRow, error) { return n.store.Graded(ctx, since, limit) })
}

func (n *node) AcquireProbe(ctx context.Context, l thread.Lease, account string, most int) (bool, error) {
	return with(n, ctx, "enter "+account, func() (bool, error) { return n.store.AcquireProbe(ctx, l, account, most) })
}

func (n *node) ReleaseProbe(ctx context.Context, l thread.Lease, account string) error {
	return n.call(ctx, "leave "+account, func() error { return n.store.ReleaseProbe(ctx, l, account) })
}

func (n *node) Near(ctx context.Context, t thread.ID) ([]thread.ID, error) {
	return with(n, ctx, "list threads", func() ([]thread.ID, error) { return n.store.Near(ctx, t) })
}
