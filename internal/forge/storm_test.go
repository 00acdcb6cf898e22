package forge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/wait"
)

// storm holds a fake GitHub and the nodes of one Pawl in virtual time.
type storm struct {
	gh     *fakegithub.Server
	repo   Repo
	sha    string
	mu     sync.Mutex
	rand   *rand.Rand
	nodes  []*node
	deaths int
	broken []string // requests that broke a limit or an answered wait
}

// node is one life of a process; its calls end with it.
type node struct {
	*Client
	ctx  context.Context
	kill context.CancelFunc
}

// checked checks the requests of one node's life against the limits and against the waits in that node's answers. It
// does not see other nodes.
type checked struct {
	storm   *storm
	checker *fakegithub.LimitChecker
}

func (c checked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/api/v3/repos/") {
		c.storm.gh.ServeHTTP(w, r)
		return
	}
	c.storm.mu.Lock()
	if broken := c.checker.Arrive(time.Now(), r.Method, r.URL.Path); broken != "" {
		c.storm.broken = append(c.storm.broken, fmt.Sprintf("%v %s %s: %s", time.Now(), r.Method, r.URL.Path, broken))
	}
	c.storm.mu.Unlock()
	answer := httptest.NewRecorder()
	defer func() {
		lost := recover()
		c.storm.mu.Lock()
		defer c.storm.mu.Unlock()
		if lost != nil {
			c.checker.Leave(time.Now(), 0, nil, "")
			panic(lost)
		}
		c.checker.Leave(time.Now(), answer.Code, answer.Header(), answer.Body.String())
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}()
	c.storm.gh.ServeHTTP(answer, r)
}

func (s *storm) upTo(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.rand.Int64N(int64(d)))
}

// newStorm starts the server outside virtual time, because it listens. check closes it inside, where its requests were
// made.
func newStorm(t *testing.T, issues int, seed uint64) *storm {
	t.Helper()
	h := newHub(t, nil)
	for range issues - 1 { // the hub already has one
		_, err := h.OpenIssue(fullName, "ann", "An issue", "It is broken.")
		h.must(err)
	}
	return &storm{gh: h.Server, repo: h.repo, sha: h.push("main", "a\n"), rand: rand.New(rand.NewPCG(seed, 1))}
}

// clocks are the errors of the nodes' clocks.
var clocks = []time.Duration{-20 * time.Second, 0, 20 * time.Second}

// live begins a life of node i. It must be called in the bubble.
func (s *storm) live(t *testing.T, i int) *node {
	t.Helper()
	n := &node{}
	n.ctx, n.kill = context.WithCancel(t.Context())
	var err error
	n.Client, err = New(Config{
		WebURL: s.gh.WebURL(), APIURL: s.gh.APIURL(), AppID: testApp, PrivateKey: s.gh.PrivateKeyPEM(),
		Transport: inside{checked{s, new(fakegithub.LimitChecker)}, func() time.Duration { return 5*time.Millisecond + s.upTo(200*time.Millisecond) }},
		Now:       func() time.Time { return time.Now().Add(clocks[i]) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// alive returns a living node, the i-th if possible, or nil.
func (s *storm) alive(i int) *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	for j := range s.nodes {
		if n := s.nodes[(i+j)%len(s.nodes)]; n.ctx.Err() == nil {
			return n
		}
	}
	return nil
}

// die kills node i in the middle of its work and restarts it later, as a supervisor does. The node forgets the limits,
// so die first lets the longest refusal expire.
func (s *storm) die(ctx context.Context, t *testing.T, i int) {
	s.gh.ClearFaults()
	_ = wait.For(ctx, 5*time.Minute+2*time.Second)
	s.nodes[i].kill()
	_ = wait.For(ctx, time.Minute)
	fresh := s.live(t, i)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[i] = fresh
	s.deaths++
}

// leaseTime is how long a dead node's work waits.
const leaseTime = 30 * time.Second

// persist does one action as the App does. It waits out limits, retries failures, and moves a dead node's action to
// another node.
func (s *storm) persist(ctx context.Context, i int, do func(ctx context.Context, c *Client, again bool) error) error {
	for again := false; ; {
		n := s.alive(i)
		if n == nil {
			if err := wait.For(ctx, leaseTime); err != nil {
				return err
			}
			continue
		}
		err := do(n.ctx, n.Client, again)
		if n.ctx.Err() != nil && ctx.Err() == nil {
			again = true
			if err := wait.For(ctx, leaseTime); err != nil {
				return err
			}
			continue
		}
		var limit *RateLimited
		again = again || errors.Is(err, ErrUnavailable)
		switch {
		case err == nil:
			return nil
		case errors.As(err, &limit):
			err = wait.For(ctx, max(time.Second, time.Until(limit.Until)-clocks[i]))
		case errors.Is(err, ErrUnavailable):
			err = wait.For(ctx, time.Minute)
		}
		if err != nil {
			return err
		}
	}
}

// thread does what the App does for one issue, with the same number of progress updates.
func (s *storm) thread(ctx context.Context, node, number int) error {
	mark, body := fmt.Sprintf("<!-- pawl:%d -->", number), "working"
	var comment Comment
	var checks []CheckRunRef
	steps := []func(context.Context, *Client, bool) error{
		func(ctx context.Context, c *Client, _ bool) error {
			_, err := c.Repositories.Permission(ctx, s.repo, "ann")
			return err
		},
		func(ctx context.Context, c *Client, _ bool) error {
			_, err := c.Issues.Get(ctx, s.repo, number)
			return err
		},
		func(ctx context.Context, c *Client, _ bool) error {
			return c.Issues.React(ctx, s.repo, "issue", int64(number), Eyes)
		},
		func(ctx context.Context, c *Client, again bool) (err error) {
			if again {
				var found bool
				if comment, found, err = c.Issues.FindComment(ctx, s.repo, number, mark); found || err != nil {
					return err
				}
			}
			comment, err = c.Issues.CreateComment(ctx, s.repo, number, body, mark)
			return err
		},
	}
	names := []string{"pawl", "pawl/severity", "pawl/stagnation"}
	for _, name := range names {
		run := CheckRun{Name: name, HeadSHA: s.sha, ExternalID: fmt.Sprint("octo/hello#", number), Status: "in_progress", Output: Output{Title: "T", Summary: "S"}}
		steps = append(steps, func(ctx context.Context, c *Client, again bool) error {
			if again {
				ref, found, err := c.Checks.Find(ctx, s.repo, s.sha, name, run.ExternalID)
				if found {
					checks = append(checks, ref)
				}
				if found || err != nil {
					return err
				}
			}
			ref, err := c.Checks.Create(ctx, s.repo, run)
			if err == nil {
				checks = append(checks, ref)
			}
			return err
		})
	}
	steps = append(steps, func(context.Context, *Client, bool) error { return wait.For(ctx, 10*time.Minute) }) // the agent works
	for i, name := range names {
		run := CheckRun{Name: name, HeadSHA: s.sha, Status: "completed", Conclusion: "success", Output: Output{Title: "T", Summary: "S"}}
		steps = append(steps, func(ctx context.Context, c *Client, _ bool) error {
			_, err := c.Checks.Update(ctx, s.repo, checks[i].ID, run)
			return err
		})
	}
	steps = append(steps, func(ctx context.Context, c *Client, _ bool) error {
		_, err := c.Issues.EditComment(ctx, s.repo, comment.ID, "done", mark)
		return err
	})
	for _, do := range steps {
		if err := s.persist(ctx, node, do); err != nil {
			return err
		}
	}
	return nil
}

// weather makes GitHub fail in many ways and nodes die, until the context ends.
func (s *storm) weather(ctx context.Context, t *testing.T) {
	kinds := []fakegithub.Fault{
		{Status: 502}, {Status: 503, Times: 3}, {AbortBefore: true}, {AbortAfter: true, Times: 2}, {Latency: 31 * time.Second},
		{Status: 403, Message: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."},
		{Status: 429, Header: http.Header{"Retry-After": {"20"}}},
		{Status: 403, Message: "You have exceeded a secondary rate limit.", Header: http.Header{"Retry-After": {"300"}}},
	}
	for wait.For(ctx, s.upTo(6*time.Minute)+time.Second) == nil {
		switch s.upTo(10) {
		case 0:
			s.gh.RevokeTokens()
		case 1:
			s.die(ctx, t, int(s.upTo(time.Duration(len(s.nodes)))))
		}
		f := kinds[s.upTo(time.Duration(len(kinds)))]
		f.Route = []string{"POST /repos/*/*/**", "* **", "GET /repos/*/*/issues/*", "POST /repos/*/*/check-runs"}[s.upTo(4)]
		s.gh.Inject(f)
	}
}

// Nodes die in the middle of their calls and restart. Each node obeys the limits and the waits in its answers. A single
// node keeps the whole installation within the limits.
func TestStormyDayBreaksNoLimit(t *testing.T) {
	needs.All(t, "a day of storm")
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint("nodes: ", nodes), func(t *testing.T) { aDayOfStorm(t, nodes) })
	}
}

func aDayOfStorm(t *testing.T, nodes int) {
	const threads, bursts = 200, 8 * time.Hour
	s := newStorm(t, threads, 20_261_121)
	if nodes == 1 {
		s.gh.Strict()
	}
	synctest.Test(t, func(t *testing.T) {
		for i := range nodes {
			s.nodes = append(s.nodes, s.live(t, i))
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		var wg, sky sync.WaitGroup
		clear, stop := context.WithCancel(ctx)
		sky.Go(func() { s.weather(clear, t) })
		var last time.Duration
		for i := range threads {
			// Half of the threads come in bursts of 50, the others over the day.
			at := s.upTo(20 * time.Hour)
			if i%2 == 0 {
				at = time.Duration(i/100) * bursts
			}
			wg.Go(func() {
				_ = wait.For(ctx, at)
				if err := s.thread(ctx, i%nodes, i+1); err != nil {
					t.Errorf("thread %d after %v: %v", i+1, time.Since(start), err)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				last = max(last, time.Since(start))
			})
		}
		wg.Wait()
		stop()
		sky.Wait()
		// Each burst needs 450 writes. The faults also decide how many are done in its hour.
		first, second := s.writes(start, time.Hour), s.writes(start.Add(bursts), time.Hour)
		t.Logf("%d and %d writes in the hours of the bursts, %d in all; %d deaths", first, second, s.writes(start, 24*time.Hour), s.deaths)
		if max(first, second) < 250 || s.deaths < 5 {
			t.Errorf("%d and %d writes in the hours of the bursts, of which GitHub allows 500 each, and %d deaths", first, second, s.deaths)
		}
		s.check(t, threads)
		t.Logf("%d threads done after %v of virtual time", threads, last)
		for _, n := range s.nodes {
			n.kill()
		}
	})
}

// writes counts the installation's writes in a period.
func (s *storm) writes(from time.Time, span time.Duration) (n int) {
	for _, r := range s.gh.Requests() {
		if r.Method != http.MethodGet && strings.HasPrefix(r.Caller, "installation:") && !r.At.Before(from) && r.At.Before(from.Add(span)) {
			n++
		}
	}
	return n
}

// check verifies in GitHub's state that each action was done once.
func (s *storm) check(t *testing.T, threads int) {
	t.Helper()
	defer func() {
		if err := s.gh.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, broken := range s.broken {
		t.Error(broken)
	}
	for _, v := range s.gh.Violations() {
		t.Errorf("%v %s: %s %s: %s", v.At, v.Caller, v.Method, v.Path, v.Rule)
	}
	runs := make(map[string]int)
	for _, run := range s.gh.CheckRuns(fullName) {
		if run.Status == "completed" {
			runs[run.ExternalID]++
		}
	}
	for n := 1; n <= threads; n++ {
		comments := s.gh.Comments(fullName, n)
		if len(comments) != 1 || !strings.HasPrefix(comments[0].Body, "done") || runs[fmt.Sprint("octo/hello#", n)] != 3 {
			t.Errorf("issue %d: %d comments, %d completed check runs", n, len(comments), runs[fmt.Sprint("octo/hello#", n)])
		}
	}
	if got := len(s.gh.CheckRuns(fullName)); got != 3*threads {
		t.Errorf("%d check runs, want %d", got, 3*threads)
	}
}
