package server_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver/thread"
)

// At startup, the server reports problems for an operator to a chat. The log has the pull request's URL.
func TestChatAlerts(t *testing.T) {
	t.Parallel()
	chat := testrig.NewChat(t)
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Config += "policy: {caps: {per_server_per_day: 1}}\n"
	r.Start()
	n := r.Solve("Add a line", "Please add a line to a.txt.")
	r.Await("the pull request", func() bool { return r.PullOf(n) > 0 })
	r.Settle()
	opened, own := false, 0
	for line := range strings.Lines(r.Log.String()) {
		var l struct{ Level, Message, URL, By string }
		if json.Unmarshal([]byte(line), &l) != nil {
			t.Errorf("a line is not JSON: %s", line)
		}
		opened = opened || l.Level == "info" && l.Message == "pull request opened" && strings.HasSuffix(l.URL, fmt.Sprintf("/acme/widgets/pull/%d", r.PullOf(n)))
		if l.Message == "remark judged" && l.By == "pawl[bot]" {
			own++
			if l.Level != "debug" {
				t.Errorf("Pawl's own comments are logged at level %s: %s", l.Level, line)
			}
		}
	}
	if !opened || own == 0 {
		t.Errorf("pull request URL logged: %v; %d of Pawl's own comments judged:\n%s", opened, own, r.Log)
	}
	r.Stop(syscall.SIGTERM)
	r.Config += "notify: {url: \"" + chat.URL + "\"}\n"
	r.Start()
	r.Await("the message", func() bool {
		return strings.HasPrefix(chat.Messages(), "Pawl: 100 % of the 24-hour limit for attempts is used: 1 of 1 attempt (0 left)")
	})
}

// Consecutive limits open the account's breaker, use up the daily limit and count as failures. While no server runs,
// the test writes causes into the database that would take hours to arise.
func TestChatAlertsCoverEveryCause(t *testing.T) {
	t.Parallel()
	chat := testrig.NewChat(t)
	r := newRig(t, nil)
	r.Agent(fmt.Sprintf(testrig.Limited, testrig.ResetText(time.Now().Add(5*time.Hour))), "stream: codex")
	r.Config += "policy: {caps: {per_server_per_day: 4}}\nnotify: {url: \"" + chat.URL + "\"}\n"
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the first limit", func() bool { return r.Thread(testrig.ThreadName(n)).State == "stopped" })
	for range 2 {
		_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry")
		r.Must(err)
		r.Settle()
	}
	r.Solve("Another line", "Please add a third line to a.txt.") // once a second thread reports the limit, the whole account is limited
	r.Await("the fourth limit", func() bool { return r.Calls() == 4 })
	r.Settle()
	r.Stop(syscall.SIGTERM)

	now := time.Now()
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(r.Dir, "pawl.db"), store.Options{})
	r.Must(err)
	for i := range 3 { // counts neither as a failure nor as a success
		g := learning.Graded{ID: fmt.Sprintf("acme/widgets#90/%d", i), At: now.Add(-time.Hour), Backend: "mine", Signals: []learning.Signal{{Source: learning.JudgeSource, Value: 1, Known: true}},
			Facts: learning.AttemptFacts{Outcome: policy.NoChange}}
		data, err := json.Marshal(g)
		r.Must(err)
		r.Must(db.PutGraded(t.Context(), thread.GradeRow{ID: g.ID, At: g.At, Backend: g.Backend, Repo: testrig.Repo, Data: data}))
	}
	r.Must(db.UpdateShared(t.Context(), "notify", func(_ time.Time, old []byte) []byte {
		var stored map[string]any
		if err := json.Unmarshal(old, &stored); err != nil || stored["unsolved"] != 4.0 {
			t.Errorf("stored state %s, %v; want 4 unsolved attempts", old, err)
		}
		stored["solved"] = now.Add(-25 * time.Hour)
		next, err := json.Marshal(stored)
		if err != nil {
			t.Error(err)
		}
		return next
	}))
	r.Must(db.Close())
	raw := r.Database()
	change := func(query string, args ...any) {
		t.Helper()
		_, err := raw.ExecContext(t.Context(), query, args...)
		r.Must(err)
	}
	change("INSERT INTO deliveries (guid, event, payload, received_at, state, note, tries, retry_at) VALUES ('one', 'ping', x'7b7d', ?, 'failed', 'refused', 100, 0)", now.Add(-96*time.Hour).UnixMicro())
	change("UPDATE threads SET queued_at = ? WHERE number = ?", now.Add(-20*time.Minute).UnixMicro(), n)
	change(fmt.Sprintf("CREATE TRIGGER held BEFORE UPDATE ON threads WHEN OLD.number = %d BEGIN SELECT RAISE(IGNORE); END", n)) // no node can claim the thread

	r.Clock.Pass(time.Minute) // the next check is due
	r.Start()
	for _, want := range []string{
		"100 % of the 24-hour limit for attempts is used: 4 of 4 attempts (0 left)",
		"the breaker of account mine is open after ",
		"no attempt has succeeded for 1d 1h (4 attempts)",
		"webhook deliveries could not be handled and are no longer tried: 1. `pawl status` lists them",
		"a thread has waited 2",
		"Pawl does not learn from judge, because its values are implausible",
	} {
		r.Await(want, func() bool { return strings.Contains(chat.Messages(), "Pawl: "+want) })
	}
}
