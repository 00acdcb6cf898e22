package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

func (r *rig) away() {
	r.World.Inject(fakegithub.Fault{Route: "* **", Status: http.StatusServiceUnavailable, Times: -1})
}

// kept returns how often the server has logged that it keeps an attempt's commit.
func (r *rig) kept() int {
	return strings.Count(r.Log.String(), "GitHub is unreachable: the attempt's commit is kept")
}

func TestWorkSurvivesAGitHubOutage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.AtWork()
	r.away()
	r.Touch("go")
	r.Await("the push to be tried twice", func() bool { return r.kept() >= 2 })
	body := []byte(`{"zen": "Keep it logically awesome."}`)
	if code, answer := r.Hook(body, nil); code != http.StatusOK {
		t.Errorf("a webhook was answered %d %q, want 200", code, answer)
	}
	if code, ready := r.Ready(); code != http.StatusOK || !ready.Ready {
		t.Errorf("/readyz: %d %+v, want ready", code, ready)
	}
	r.World.ClearFaults()
	r.WantSolved(n)
	if a := r.State(n).Attempts; r.Calls() != 1 || len(a) != 1 {
		t.Errorf("%d calls and attempts %+v, want one of each", r.Calls(), a)
	}
}

// An organization may turn on an IP allow list at any time. Its owner then adds the server's address.
func TestWorkContinuesOnceAnIPAllowListAdmitsTheServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.AtWork()
	for _, route := range []string{"* /repos/*/*", "* /repos/*/*/*", "* /repos/*/*/*/*", "* /repos/*/*/*/*/*", "* /repos/*/*/*/*/*/*", "POST /graphql"} {
		r.World.Inject(fakegithub.Fault{Route: route, Status: http.StatusForbidden, Times: -1,
			Message: "Although you appear to have the correct authorization credentials, the `acme` organization has an IP allow list enabled, and your IP address is not permitted to access this resource."})
	}
	r.Touch("go")
	r.Await("the hint in the log", func() bool {
		return strings.Contains(r.Log.String(), "let this server's address into the organization's IP allow list")
	})
	r.World.ClearFaults()
	r.WantSolved(n)
	if r.Calls() != 1 {
		t.Errorf("the agent was called %d times, want once", r.Calls())
	}
}

// One repository's git server is down, and only one attempt may run at a time.
func TestWaitingPushFreesItsSlot(t *testing.T) {
	t.Parallel()
	const other = "acme/gadgets"
	r := newRig(t, nil)
	r.Must(r.World.AddRepo(t.Context(), other, map[string]string{"a.txt": "one\n"}))
	r.Must(r.World.AddUser("olga", 1003, map[string]string{other: "write"}))
	r.Must(r.World.Install(other))
	r.World.Inject(fakegithub.Fault{Route: "POST /" + testrig.Repo + ".git/git-receive-pack", Status: http.StatusServiceUnavailable, Times: -1})
	r.Config += "workers: 1\n"
	r.Agent("cat > /dev/null\necho two >> a.txt\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the push to wait", func() bool { return r.kept() >= 1 })
	m, err := r.World.OpenIssue(other, "olga", "A second line", "Please add a second line to a.txt.")
	r.Must(err)
	_, err = r.World.Comment(other, m, "olga", "/pawl solve")
	r.Must(err)
	if s := r.Over(fmt.Sprintf("%s#%d", other, m)); s.State != "done" {
		t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	if _, running := r.State(n).Running(); !running {
		t.Errorf("the attempt of %s no longer waits: %+v", testrig.ThreadName(n), r.State(n).Attempts)
	}
	r.World.ClearFaults()
	r.WantSolved(n)
	if got := len(r.State(n).Attempts); got != 1 || r.Calls() != 2 {
		t.Errorf("%d attempts and %d calls, want one and, with the other thread's, two", got, r.Calls())
	}
}

// GitHub answers this way while this machine's clock or the key is wrong.
func TestTemporarilyRefusedCredentialsCostNoAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.AtWork()
	for _, route := range []string{"GET /app", "POST /app/installations/{id}/access_tokens"} {
		r.World.Inject(fakegithub.Fault{Route: route, Status: http.StatusUnauthorized, Times: -1,
			Message: "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"})
	}
	r.World.RevokeTokens()
	r.Touch("go")
	r.Await("the push to be tried twice", func() bool { return r.kept() >= 2 })
	r.World.ClearFaults()
	r.WantSolved(n)
	if r.Calls() != 1 {
		t.Errorf("the agent was called %d times, want once", r.Calls())
	}
}

// The test moves the server's clock. Waits that began earlier still follow real time.
func TestPushWaitsHoursForGitHubNotADay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		away  time.Duration
		calls int
	}{{"two hours", 2 * time.Hour, 1}, {"a day", 24 * time.Hour, 2}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Agent(testrig.Waiting, "")
			r.Start()
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			r.Await("the agent at work", func() bool { return r.Has("ready") })
			r.away()
			r.Touch("go")
			r.Await("the first try of the push", func() bool { return r.kept() == 1 })
			r.Clock.Reach(r.Clock.Now().Add(tc.away))
			r.Await("another try, or the end of the attempt", func() bool {
				_, running := r.State(n).Running()
				return r.kept() >= 2 || !running
			})
			r.World.ClearFaults()
			s := r.Ending(n)
			r.Once(n)
			a := r.State(n).Attempts
			if s.State != "done" || r.Calls() != tc.calls || len(a) != tc.calls {
				t.Errorf("%s (%s %q) after %d calls, attempts %+v; want done after %d", s.State, s.Rule, s.Reasons, r.Calls(), a, tc.calls)
			}
			if tc.calls == 2 && (a[0].Receipt.Outcome != policy.Interrupted || a[0].Receipt.Ending != policy.Completed) {
				t.Errorf("the first attempt: %+v, want one that was completed by its agent and interrupted", a[0].Receipt)
			}
		})
	}
}

// pushing returns an issue whose work is done while GitHub is down. One push has failed.
func (r *rig) pushing() (issue int) {
	r.T.Helper()
	issue = r.AtWork()
	r.away()
	r.Touch("go")
	r.Await("the first try of the push", func() bool { return r.kept() == 1 })
	return issue
}

func TestStopDuringOutageHandsWorkOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.pushing()
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	r.World.ClearFaults()
	r.Start()
	s := r.Ending(n)
	r.Once(n)
	if a := r.State(n).Attempts; s.State != "done" || len(a) != 1 || r.Calls() != 1 {
		t.Errorf("%s (%s %q), %d calls, attempts %+v; want done after one call: only the push was missing", s.State, s.Rule, s.Reasons, r.Calls(), a)
	}
}

func TestNoPushToThreadClosedDuringOutage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.pushing()
	r.Must(r.World.CloseIssue(testrig.Repo, n, testrig.Writer))
	r.Await("the attempt's end", func() bool { _, running := r.State(n).Running(); return !running })
	r.World.ClearFaults()
	s := r.Ending(n)
	a := r.State(n).Attempts
	if s.Rule != "closed" || len(a) != 1 || a[0].Receipt.Outcome != policy.Cancelled || len(r.World.Pulls(testrig.Repo)) != 0 {
		t.Errorf("%s (%s %q), attempts %+v; want closed after one that was cancelled, and no pull request", s.State, s.Rule, s.Reasons, a)
	}
}

// The tests of internal/forge cover a slow API. Git has no timeout of its own.
func TestSlowGitServerOnlyTakesLonger(t *testing.T) {
	t.Parallel()
	needs.All(t, "it waits for half a minute")
	r := newRig(t, nil)
	r.World.Inject(fakegithub.Fault{Route: "GET /{owner}/{repo}.git/info/refs", Latency: 31 * time.Second})
	r.solvedDespite(fakegithub.Fault{Route: "POST /{owner}/{repo}.git/git-receive-pack", Latency: 31 * time.Second})
}

// Every call is answered just before its deadline. A step's deadline is longer than its calls' deadlines together.
func TestWorkBeginsWhileGitHubAnswersSlowly(t *testing.T) {
	t.Parallel()
	needs.All(t, "each call takes 25 seconds")
	r := newRig(t, nil)
	r.Agent("echo two >> a.txt\n", "")
	r.World.Inject(fakegithub.Fault{Route: "* **", Latency: 25 * time.Second, Times: -1})
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the agent", func() bool { return r.Calls() > 0 })
	r.World.ClearFaults() // the remaining calls would take another five minutes
	if s := r.Over(testrig.ThreadName(n)); s.State != "done" || r.Calls() != 1 {
		t.Errorf("%s (%s %q) after %d calls, want done after one", s.State, s.Rule, s.Reasons, r.Calls())
	}
}

// If the next server may not read the repository, the attempt ends once. A later command begins the second attempt.
func TestRefusedHandoverEndsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	n := r.pushing()
	r.Stop(syscall.SIGTERM)
	r.World.ClearFaults()
	r.World.Inject(fakegithub.Fault{Route: "GET /{owner}/{repo}.git/info/refs", Status: 403, Times: -1})
	r.Start()
	s := r.Ending(n)
	if a := r.State(n).Attempts; s.Rule != "pawl_failed" || len(a) != 1 || a[0].N != 1 || a[0].EndedAt.IsZero() || a[0].Receipt.Outcome != policy.Interrupted {
		t.Fatalf("%s (%s %q), attempts %+v; want it stopped after one attempt that was interrupted", s.State, s.Rule, s.Reasons, a)
	}
	r.World.ClearFaults()
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry")
	r.Must(err)
	if s := r.Ending(n); s.State != "done" || len(r.State(n).Attempts) != 2 {
		t.Errorf("%s (%s %q), attempts %+v; want done after a second one", s.State, s.Rule, s.Reasons, r.State(n).Attempts)
	}
}
