package main

import (
	"database/sql"
	"encoding/binary"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// wrongBy are the errors of a clock that a server is tried with.
var wrongBy = map[string]time.Duration{
	"an hour ahead": time.Hour, "an hour behind": -time.Hour, "a year ahead": 8766 * time.Hour, "a year behind": -8766 * time.Hour,
}

// astray starts a node whose clock is wrong, and returns what sets the clock.
func (c *cluster) astray(by time.Duration) (m *testrig.Member, set func(by time.Duration)) {
	c.T.Helper()
	file := filepath.Join(c.Dir, "clock"+by.String())
	set = func(by time.Duration) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
		c.Must(err)
		defer f.Close()
		_, err = f.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(by)), 0)
		c.Must(err)
	}
	set(by)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), nodeVariable+"="+c.File(), clockVariable+"="+file)
	return c.launch(cmd), set
}

// beats waits until the lease of the thread at work was renewed so often, which
// is done every 10 s: the sweeps of all nodes, every 5 s, have looked at it.
func (c *cluster) beats(db *sql.DB, times int) {
	c.T.Helper()
	var last int64
	for times++; times > 0; {
		c.Await("a heartbeat", func() bool {
			var until int64
			c.Must(db.QueryRowContext(c.T.Context(), "SELECT coalesce(max(lease_until), 0) FROM threads WHERE lease_owner <> ''").Scan(&until))
			renewed := until != last
			last = until
			return renewed
		})
		times--
	}
}

// doneAtOnce checks that the thread ended after one attempt, with one of each.
func (c *cluster) doneAtOnce(issue thread.ID) {
	c.T.Helper()
	c.Await("the end of "+issue.String(), func() bool { return !c.states([]thread.ID{issue})[0].Open() })
	c.settle()
	s := c.states([]thread.ID{issue})[0]
	if len(s.Attempts) != 1 || s.Attempts[0].Receipt.Outcome != policy.Edited || s.Decision.Action != policy.DoDone {
		c.T.Errorf("%s: attempts %+v, then %+v; want one that edited, and done", issue, s.Attempts, s.Decision)
	}
}

// metricsToken reads metrics where a clock is so wrong that no login is in time.
const metricsToken = "a token of the clock's tests"

// agreed reports whether a node says that its clock is that of the database.
func (r *rig) agreed() bool {
	r.T.Helper()
	q, err := http.NewRequestWithContext(r.T.Context(), http.MethodGet, "http://"+r.Pages+"/metrics", nil)
	r.Must(err)
	q.Header.Set("Authorization", "Bearer "+metricsToken)
	answer, err := http.DefaultClient.Do(q)
	r.Must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	r.Must(err)
	found := regexp.MustCompile(`(?m)^pawl_healthy\{part="clock"\} ([01])$`).FindSubmatch(body)
	if answer.StatusCode != http.StatusOK || found == nil {
		r.T.Fatalf("/metrics: %s\n%s", answer.Status, body)
	}
	return string(found[1]) == "1"
}

// claimsNothing is what a node logs while its clock is wrong.
const claimsNothing = "the clock is wrong; nothing is claimed"

// looksWrong checks what a node says of its own clock.
func (c *cluster) looksWrong(m *testrig.Member, wrong bool) {
	c.T.Helper()
	c.to(m)
	if c.agreed() == wrong {
		c.T.Errorf("the node at %s says that its clock agrees: %v", m.Addr, !wrong)
	}
	if wrong {
		c.Await("the node to say that it claims nothing", func() bool { return strings.Contains(m.Log.String(), claimsNothing) })
	} else if strings.Contains(m.Log.String(), claimsNothing) {
		c.T.Errorf("a node whose clock is right says: %s", claimsNothing)
	}
}

func TestNodesWhoseClocksAreWrongTakeNothingFromOthers(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	c.More = `, metrics_token: "` + metricsToken + `"`
	c.Agent("cat > /dev/null\n"+testrig.Gated+"echo \"$PAWL_THREAD\" >> a.txt\n", "startup_timeout: 20m, idle_timeout: 20m")
	right := c.join()
	issue := c.issue(testrig.Repo, "A line")
	c.Await("the agent at work", func() bool { return c.Has("ready") })
	var astray []*testrig.Member
	for _, by := range wrongBy {
		m, _ := c.astray(by)
		astray = append(astray, m)
	}
	c.beats(db.Open(t, strings.TrimPrefix(strings.SplitN(c.DSN, "?", 2)[0], "postgres://pawl@/")), 2)
	c.Touch("go")
	c.doneAtOnce(issue)
	c.Once(issue.Number)
	for _, m := range astray {
		if m.Began(issue.String()) {
			t.Errorf("the node at %s started an attempt on what another one works on", m.Addr)
		}
		c.looksWrong(m, true)
		// What it takes in is worked on once as well, by any of them.
		c.doneAtOnce(c.issue(testrig.Repo, "Another line"))
	}
	c.looksWrong(right, false)
	if all := c.Status().Clocks; len(all) != len(astray) {
		t.Errorf("pawl status names %+v, want the %d servers whose clocks are wrong", all, len(astray))
	}
}

func TestOneServerWhoseClockIsRightCleansTheDatabase(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.Agent(testrig.PlainAgent, "")
	wrong, _ := c.astray(10 * time.Minute)
	c.Await("the node to say that it claims nothing", func() bool { return strings.Contains(wrong.Log.String(), claimsNothing) })
	const removed = `"old records removed"`
	cleaners := []*testrig.Member{c.join(), c.join()}
	cleaned := func() (n int) {
		for _, m := range append(cleaners, wrong) {
			n += strings.Count(m.Log.String(), removed)
		}
		return n
	}
	c.Await("the cleaning", func() bool { return cleaned() > 0 })
	for _, m := range cleaners {
		c.Await("the cleaning of its folders", func() bool { return strings.Contains(m.Log.String(), `"old transcripts removed"`) })
	}
	if n := cleaned(); n != 1 || strings.Contains(wrong.Log.String(), removed) {
		t.Errorf("the database was cleaned %d times, by the node whose clock is wrong: %t; want once, by another",
			n, strings.Contains(wrong.Log.String(), removed))
	}
}

func TestAClockThatIsSetWhileAnAgentWorksLosesNothing(t *testing.T) {
	t.Parallel()
	for name, by := range wrongBy {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			c := &cluster{rig: r, ahead: &testrig.Clock{}}
			c.More = `, metrics_token: "` + metricsToken + `"`
			c.Agent("cat > /dev/null\n"+testrig.Gated+"echo two >> a.txt\n", "startup_timeout: 20m, idle_timeout: 20m")
			m, set := c.astray(0)
			issue := c.issue(testrig.Repo, "A line")
			c.Await("the agent at work", func() bool { return c.Has("ready") })
			set(by)
			// A clock that is set back may have the last edit of the comment put off, for
			// minutes by that clock, which are long over by the true one.
			c.Dated = func() time.Time { return time.Now().Add(by) }
			db, err := sql.Open("sqlite", "file:"+filepath.Join(r.Dir, "pawl.db")+"?mode=ro&_pragma=busy_timeout(10000)")
			c.Must(err)
			defer db.Close()
			c.beats(db, 2)
			c.Touch("go")
			c.Await("the end of the attempt at work", func() bool { return !c.states([]thread.ID{issue})[0].Open() })
			c.Await("the node to say that it claims nothing", func() bool { return !c.agreed() })
			set(0)
			c.Dated = time.Now
			_, err = c.World.Comment(testrig.Repo, issue.Number, testrig.Reader, "Whether I may write is asked of GitHub.")
			c.Must(err)
			c.doneAtOnce(issue)
			c.Once(issue.Number)
			c.doneAtOnce(c.issue(testrig.Repo, "Another line"))
			if m.Started() != 2 {
				t.Errorf("%d attempts were started, want 2", m.Started())
			}
		})
	}
}
