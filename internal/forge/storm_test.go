package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// inside carries requests to a server in the same process, so that they take
// place in a bubble of virtual time. Each way takes some milliseconds.
type inside struct {
	server http.Handler
	delay  func() time.Duration
}

func (t inside) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	ctx := req.Context()
	if err := sleep(ctx, t.delay()); err != nil {
		return nil, err
	}
	in := req.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	defer func() {
		if e := recover(); e == http.ErrAbortHandler {
			resp, err = nil, io.ErrUnexpectedEOF
		} else if e != nil {
			panic(e)
		}
		if ctx.Err() != nil {
			resp, err = nil, ctx.Err()
		}
	}()
	t.server.ServeHTTP(rec, in)
	if err := sleep(ctx, t.delay()); err != nil {
		return nil, err
	}
	return rec.Result(), nil
}

// storm is a strict GitHub and the nodes of one Pawl in virtual time.
type storm struct {
	gh    *fakegithub.Server
	nodes []*Client
	repo  Repo
	sha   string
	rand  *rand.Rand
	mu    sync.Mutex
}

func (s *storm) upTo(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.rand.Int64N(int64(d)))
}

// newStorm starts the server outside of virtual time, because it listens. It is
// closed within, by check, where its requests were made.
func newStorm(t *testing.T, issues int, seed uint64) *storm {
	t.Helper()
	gh, err := fakegithub.New(fakegithub.Options{AppID: testApp})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(gh.AddUser("ann", 31, nil))
	must(gh.AddRepo(t.Context(), "octo/hello", map[string]string{"a.txt": "a\n"}))
	for i := range issues {
		_, err := gh.OpenIssue("octo/hello", "ann", fmt.Sprint("Issue ", i+1), "It is broken.")
		must(err)
	}
	s := &storm{gh: gh, sha: gh.Branches("octo/hello")["main"], rand: rand.New(rand.NewPCG(seed, 1))}
	id, err := gh.InstallationID("octo/hello")
	must(err)
	s.repo = Repo{Owner: "octo", Name: "hello", Installation: id}
	gh.Strict()
	return s
}

// join adds a node whose clock is wrong by so much. It must be called in the
// bubble.
func (s *storm) join(t *testing.T, shared Shared, wrong time.Duration) *Client {
	t.Helper()
	c, err := New(Config{
		WebURL: s.gh.WebURL(), APIURL: s.gh.APIURL(), AppID: testApp, PrivateKey: s.gh.PrivateKeyPEM(), Shared: shared,
		Transport: inside{s.gh, func() time.Duration { return 5*time.Millisecond + s.upTo(200*time.Millisecond) }},
		Now:       func() time.Time { return time.Now().Add(wrong) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.nodes = append(s.nodes, c)
	return c
}

// insist does one thing as the App does: what GitHub puts off is done at the
// time that is named, what fails is tried again later, after a look whether it
// was done.
func insist(ctx context.Context, c *Client, do func(again bool) error) error {
	again := false
	for {
		err := do(again)
		var limit *RateLimited
		again = again || errors.Is(err, ErrUnavailable)
		switch {
		case err == nil:
			return nil
		case errors.As(err, &limit):
			err = sleep(ctx, max(time.Second, limit.Until.Sub(c.now())))
		case errors.Is(err, ErrUnavailable):
			err = sleep(ctx, time.Minute)
		}
		if err != nil {
			return err
		}
	}
}

// thread does what the App does on one issue, and how often it shows it.
func (s *storm) thread(ctx context.Context, c *Client, number int) error {
	mark, body := fmt.Sprintf("<!-- pawl:%d -->", number), "working"
	var comment Comment
	var checks []CheckRunRef
	steps := []func(bool) error{
		func(bool) error { _, err := c.Permission(ctx, s.repo, "ann"); return err },
		func(bool) error { _, err := c.Issue(ctx, s.repo, number); return err },
		func(bool) error { return c.React(ctx, s.repo, OnIssue, int64(number), "eyes") },
		func(again bool) (err error) {
			if found := false; again {
				if comment, found, err = c.FindComment(ctx, s.repo, number, mark, 0); found || err != nil {
					return err
				}
			}
			comment, err = c.CreateComment(ctx, s.repo, number, body, mark)
			return err
		},
	}
	for _, name := range []string{"pawl", "pawl/severity", "pawl/stagnation"} {
		run := CheckRun{Name: name, HeadSHA: s.sha, ExternalID: fmt.Sprint("octo/hello#", number), Status: "in_progress", Title: "T", Summary: "S"}
		steps = append(steps, func(again bool) error {
			if again {
				ref, found, err := c.FindCheckRun(ctx, s.repo, s.sha, name, run.ExternalID)
				if found {
					checks = append(checks, ref)
				}
				if found || err != nil {
					return err
				}
			}
			ref, err := c.CreateCheckRun(ctx, s.repo, run)
			if err == nil {
				checks = append(checks, ref)
			}
			return err
		})
	}
	for _, do := range steps {
		if err := insist(ctx, c, do); err != nil {
			return err
		}
	}
	if err := sleep(ctx, 10*time.Minute); err != nil { // the agent works
		return err
	}
	for i, name := range []string{"pawl", "pawl/severity", "pawl/stagnation"} {
		run := CheckRun{Name: name, HeadSHA: s.sha, Status: "completed", Conclusion: "success", Title: "T", Summary: "S"}
		if err := insist(ctx, c, func(bool) error { _, err := c.UpdateCheckRun(ctx, s.repo, checks[i].ID, run); return err }); err != nil {
			return err
		}
	}
	return insist(ctx, c, func(bool) error { _, err := c.EditComment(ctx, s.repo, comment.ID, "done", mark); return err })
}

// weather lets GitHub fail in many ways until the context ends.
func (s *storm) weather(ctx context.Context) {
	kinds := []fakegithub.Fault{
		{Status: 502}, {Status: 503, Times: 3}, {AbortBefore: true}, {AbortAfter: true, Times: 2}, {Latency: 31 * time.Second},
		{Status: 403, Message: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."},
		{Status: 429, Header: http.Header{"Retry-After": {"20"}}},
		{Status: 403, Message: "You have exceeded a secondary rate limit.", Header: http.Header{"Retry-After": {"300"}}},
	}
	for sleep(ctx, s.upTo(6*time.Minute)+time.Second) == nil {
		if s.upTo(10) == 0 {
			s.gh.RevokeTokens()
		}
		f := kinds[s.upTo(time.Duration(len(kinds)))]
		f.Route = []string{"POST /repos/*/*/**", "* **", "GET /repos/*/*/issues/*", "POST /repos/*/*/check-runs"}[s.upTo(4)]
		s.gh.Inject(f)
	}
}

func TestADayOfStormOnThreeNodesBreaksNoLimit(t *testing.T) {
	const threads = 200
	s := newStorm(t, threads, 20_261_121)
	synctest.Test(t, func(t *testing.T) {
		shared := new(memory)
		for _, wrong := range []time.Duration{-2 * time.Second, 0, 2 * time.Second} {
			s.join(t, shared, wrong)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		info, err := s.nodes[0].RepoInfo(ctx, s.repo)
		if err != nil {
			t.Fatal(err)
		}
		s.repo.ID = info.ID
		var wg, sky sync.WaitGroup
		clear, stop := context.WithCancel(ctx)
		sky.Go(func() { s.weather(clear) })
		var last time.Duration
		for i := range threads {
			// Half of them come in bursts of 50, the others over the day.
			at := s.upTo(20 * time.Hour)
			if i%2 == 0 {
				at = time.Duration(i/100) * 8 * time.Hour
			}
			wg.Go(func() {
				_ = sleep(ctx, at)
				if err := s.thread(ctx, s.nodes[i%3], i+1); err != nil {
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
		first := s.writes(start.Add(time.Hour))
		t.Logf("%d writes in the first hour, %d in all", first, s.writes(start.Add(24*time.Hour)))
		if first < 300 {
			t.Errorf("%d writes in the first hour; GitHub allows 500", first)
		}
		s.check(t, threads)
		t.Logf("%d threads done after %v of virtual time", threads, last)
		for i, c := range s.nodes {
			t.Logf("node %d: %v", i, c.Points())
		}
	})
}

// writes counts what the installation has written before a time.
func (s *storm) writes(before time.Time) (n int) {
	for _, r := range s.gh.Requests() {
		if r.Method != http.MethodGet && strings.HasPrefix(r.Caller, "installation:") && r.At.Before(before) {
			n++
		}
	}
	return n
}

// check compares what GitHub shows with what was to be done once.
func (s *storm) check(t *testing.T, threads int) {
	t.Helper()
	defer func() {
		if err := s.gh.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, v := range s.gh.Violations() {
		t.Errorf("%v %s: %s %s: %s", v.At, v.Caller, v.Method, v.Path, v.Rule)
	}
	runs := make(map[string]int)
	for _, run := range s.gh.CheckRuns("octo/hello") {
		if run.Status == "completed" {
			runs[run.ExternalID]++
		}
	}
	for n := 1; n <= threads; n++ {
		comments := s.gh.Comments("octo/hello", n)
		if len(comments) != 1 || !strings.HasPrefix(comments[0].Body, "done") || runs[fmt.Sprint("octo/hello#", n)] != 3 {
			t.Errorf("issue %d: %d comments, %d completed check runs", n, len(comments), runs[fmt.Sprint("octo/hello#", n)])
		}
	}
	if got := len(s.gh.CheckRuns("octo/hello")); got != 3*threads {
		t.Errorf("%d check runs, want %d", got, 3*threads)
	}
}
