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

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// wrongBy are the errors of a clock that a server is tried with.
var wrongBy = map[string]time.Duration{
	"an hour ahead": time.Hour, "an hour behind": -time.Hour, "a year ahead": 8766 * time.Hour, "a year behind": -8766 * time.Hour,
}

// astray starts a node whose clock is wrong, and returns what sets the clock.
func (c *cluster) astray(by time.Duration) (m *member, set func(by time.Duration)) {
	c.t.Helper()
	file := filepath.Join(c.dir, "clock"+by.String())
	set = func(by time.Duration) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
		c.must(err)
		defer f.Close()
		_, err = f.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(by)), 0)
		c.must(err)
	}
	set(by)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), nodeVariable+"="+c.file(), clockVariable+"="+file)
	return c.launch(cmd), set
}

// beats waits until the lease of the thread at work was renewed so often, which
// is done every 10 s: the sweeps of all nodes, every 5 s, have looked at it.
func (c *cluster) beats(db *sql.DB, times int) {
	c.t.Helper()
	var last int64
	for times++; times > 0; {
		c.await("a heartbeat", func() bool {
			var until int64
			c.must(db.QueryRowContext(c.t.Context(), "SELECT coalesce(max(lease_until), 0) FROM threads WHERE lease_owner <> ''").Scan(&until))
			renewed := until != last
			last = until
			return renewed
		})
		times--
	}
}

// doneAtOnce checks that the thread ended after one attempt, with one of each.
func (c *cluster) doneAtOnce(issue thread.ID) {
	c.t.Helper()
	c.await("the end of "+issue.String(), func() bool { return !c.states([]thread.ID{issue})[0].Open() })
	c.settle()
	s := c.states([]thread.ID{issue})[0]
	if len(s.Attempts) != 1 || s.Attempts[0].Receipt.Outcome != policy.Edited || s.Decision.Action != policy.DoDone {
		c.t.Errorf("%s: attempts %+v, then %+v; want one that edited, and done", issue, s.Attempts, s.Decision)
	}
}

// metricsToken reads metrics where a clock is so wrong that no login is in time.
const metricsToken = "a token of the clock's tests"

// agreed reports whether a node says that its clock is that of the database.
func (r *rig) agreed() bool {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.pages+"/metrics", nil)
	r.must(err)
	q.Header.Set("Authorization", "Bearer "+metricsToken)
	answer, err := http.DefaultClient.Do(q)
	r.must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	r.must(err)
	found := regexp.MustCompile(`(?m)^pawl_healthy\{part="clock"\} ([01])$`).FindSubmatch(body)
	if answer.StatusCode != http.StatusOK || found == nil {
		r.t.Fatalf("/metrics: %s\n%s", answer.Status, body)
	}
	return string(found[1]) == "1"
}

// claimsNothing is what a node logs while its clock is wrong.
const claimsNothing = "the clock is wrong; nothing is claimed"

// looksWrong checks what a node says of its own clock.
func (c *cluster) looksWrong(m *member, wrong bool) {
	c.t.Helper()
	c.to(m)
	if c.agreed() == wrong {
		c.t.Errorf("the node at %s says that its clock agrees: %v", m.addr, !wrong)
	}
	if wrong {
		c.await("the node to say that it claims nothing", func() bool { return strings.Contains(m.log.String(), claimsNothing) })
	} else if strings.Contains(m.log.String(), claimsNothing) {
		c.t.Errorf("a node whose clock is right says: %s", claimsNothing)
	}
}

func TestNodesWhoseClocksAreWrongTakeNothingFromOthers(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	c := newCluster(t, db)
	c.more = `, metrics_token: "` + metricsToken + `"`
	c.agent("cat > /dev/null\n"+gated+"echo \"$PAWL_THREAD\" >> a.txt\n", "startup_timeout: 20m, idle_timeout: 20m")
	right := c.join()
	issue := c.issue(rigRepo, "A line")
	c.await("the agent at work", func() bool { return c.has("ready") })
	var astray []*member
	for _, by := range wrongBy {
		m, _ := c.astray(by)
		astray = append(astray, m)
	}
	c.beats(db.Open(t, strings.TrimPrefix(strings.SplitN(c.dsn, "?", 2)[0], "postgres://pawl@/")), 2)
	c.touch("go")
	c.doneAtOnce(issue)
	c.once(issue.Number)
	for _, m := range astray {
		if m.began(issue.String()) {
			t.Errorf("the node at %s started an attempt on what another one works on", m.addr)
		}
		c.looksWrong(m, true)
		// What it takes in is worked on once as well, by any of them.
		c.doneAtOnce(c.issue(rigRepo, "Another line"))
	}
	c.looksWrong(right, false)
	if all := c.status().Clocks; len(all) != len(astray) {
		t.Errorf("pawl status names %+v, want the %d servers whose clocks are wrong", all, len(astray))
	}
}

func TestOneServerWhoseClockIsRightCleansTheDatabase(t *testing.T) {
	t.Parallel()
	c := newCluster(t, startPostgres(t))
	c.agent(plainAgent, "")
	wrong, _ := c.astray(10 * time.Minute)
	c.await("the node to say that it claims nothing", func() bool { return strings.Contains(wrong.log.String(), claimsNothing) })
	const removed = `"old records removed"`
	cleaners := []*member{c.join(), c.join()}
	cleaned := func() (n int) {
		for _, m := range append(cleaners, wrong) {
			n += strings.Count(m.log.String(), removed)
		}
		return n
	}
	c.await("the cleaning", func() bool { return cleaned() > 0 })
	for _, m := range cleaners {
		c.await("the cleaning of its folders", func() bool { return strings.Contains(m.log.String(), `"old transcripts removed"`) })
	}
	if n := cleaned(); n != 1 || strings.Contains(wrong.log.String(), removed) {
		t.Errorf("the database was cleaned %d times, by the node whose clock is wrong: %t; want once, by another",
			n, strings.Contains(wrong.log.String(), removed))
	}
}

func TestAClockThatIsSetWhileAnAgentWorksLosesNothing(t *testing.T) {
	t.Parallel()
	for name, by := range wrongBy {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			c := &cluster{rig: r, ahead: &clock{}}
			c.more = `, metrics_token: "` + metricsToken + `"`
			c.agent("cat > /dev/null\n"+gated+"echo two >> a.txt\n", "startup_timeout: 20m, idle_timeout: 20m")
			m, set := c.astray(0)
			issue := c.issue(rigRepo, "A line")
			c.await("the agent at work", func() bool { return c.has("ready") })
			set(by)
			// A clock that is set back may have the last edit of the comment put off, for
			// minutes by that clock, which are long over by the true one.
			c.dated = func() time.Time { return time.Now().Add(by) }
			db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, "pawl.db")+"?mode=ro&_pragma=busy_timeout(10000)")
			c.must(err)
			defer db.Close()
			c.beats(db, 2)
			c.touch("go")
			c.await("the end of the attempt at work", func() bool { return !c.states([]thread.ID{issue})[0].Open() })
			c.await("the node to say that it claims nothing", func() bool { return !c.agreed() })
			set(0)
			c.dated = time.Now
			_, err = c.world.Comment(rigRepo, issue.Number, reader, "Whether I may write is asked of GitHub.")
			c.must(err)
			c.doneAtOnce(issue)
			c.once(issue.Number)
			c.doneAtOnce(c.issue(rigRepo, "Another line"))
			if m.started() != 2 {
				t.Errorf("%d attempts were started, want 2", m.started())
			}
		})
	}
}
