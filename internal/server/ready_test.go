package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestReadyzReportsStuckWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, _ := r.Solved()
	code, ready := r.Ready()
	if code != http.StatusOK || !ready.Ready {
		t.Fatalf("%d %+v, want ready", code, ready)
	}
	for _, part := range []string{"queue", "database", "clock"} {
		if !ready.Part(t, part).OK {
			t.Fatalf("%s is not ready: %+v", part, ready)
		}
	}
	db := r.Database()
	change := func(query string, args ...any) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query, args...)
		r.Must(err)
	}
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).UnixMicro() }
	// Every node missed this work, but that is no reason to refuse webhooks.
	change("INSERT INTO deliveries (guid, event, payload, received_at, state, note, tries, retry_at) VALUES ('lost', 'ping', x'7b7d', ?, 'received', '', 0, ?)", ago(16*time.Minute), time.Now().Add(30*time.Minute).UnixMicro())
	if code, ready := r.Ready(); code != http.StatusOK || ready.Part(t, "queue").OK || !strings.Contains(ready.Part(t, "queue").Detail, "a delivery was stored 16m") {
		t.Errorf("a lost delivery: %d %+v", code, ready)
	}
	change("DELETE FROM deliveries WHERE guid = 'lost'")
	change("UPDATE threads SET queued_at = ?, lease_until = ? WHERE number = ?", ago(6*time.Minute), time.Now().Add(29*time.Second).UnixMicro(), n)
	if code, ready := r.Ready(); code != http.StatusOK || ready.Part(t, "queue").OK || !strings.Contains(ready.Part(t, "queue").Detail, "a thread has waited 6m") {
		t.Errorf("a lost step: %d %+v", code, ready)
	}
}

func TestReadyzReportsGitHubOutage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, _ := r.Solved()
	if _, ready := r.Ready(); !ready.Part(t, "github").OK {
		t.Errorf("%+v, want GitHub answering", ready)
	}
	r.World.Inject(fakegithub.Fault{Route: "* **", Status: http.StatusServiceUnavailable, Times: -1})
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry once more")
	r.Must(err)
	r.Await("the server to see that GitHub is down", func() bool {
		code, ready := r.Ready()
		return code == http.StatusOK && ready.Ready && strings.Contains(ready.Part(t, "github").Detail, "answers 503")
	})
	r.World.ClearFaults()
	r.Await("GitHub to answer again", func() bool { _, ready := r.Ready(); return ready.Part(t, "github").OK })
	r.Settle()
	r.World.Inject(fakegithub.Fault{Route: "POST /app/installations/{id}/access_tokens", Status: http.StatusUnauthorized, Times: -1})
	r.World.RevokeTokens()
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry and again")
	r.Must(err)
	r.Await("the server to see that the App is refused", func() bool {
		code, ready := r.Ready()
		return code == http.StatusOK && ready.Ready && strings.Contains(ready.Part(t, "github").Detail, "refuses the App's credentials (401)")
	})
	r.World.ClearFaults()
	r.World.Close()
	body := []byte(`{"action": "created", "issue": {"number": 1}, "comment": {"id": 5, "body": "/pawl solve", "user": {"login": "ada", "id": 1001, "type": "User"}},
		"repository": {"id": 1, "name": "other", "owner": {"login": "acme"}}, "installation": {"id": 1}, "sender": {"login": "ada", "id": 1001}}`)
	if got, answer := r.Hook(body, map[string]string{"X-GitHub-Event": "issue_comment"}); got != http.StatusOK {
		t.Fatalf("answered %d %q", got, answer)
	}
	r.Await("the server to miss GitHub", func() bool {
		code, ready := r.Ready()
		return code == http.StatusOK && ready.Ready && !ready.Part(t, "github").OK
	})
}

func TestReadyzReportsUnwritableDataDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	// Even root cannot write to a missing folder.
	r.Must(os.Rename(filepath.Join(r.Dir, "data"), filepath.Join(r.Dir, "moved")))
	if code, ready := r.Ready(); code != http.StatusOK || ready.Part(t, "data_dir").OK || !ready.Part(t, "database").OK {
		t.Errorf("%d %+v, want ready, with data_dir as the failed detail", code, ready)
	}
	if n := r.Metric(`pawl_healthy{part="data_dir"}`); n != 0 {
		t.Errorf("the metric says %v, want 0", n)
	}
	if got, answer := r.Hook([]byte(`{"zen": "Keep it logically awesome."}`), nil); got != http.StatusOK {
		t.Errorf("a webhook was answered %d %q, want it stored", got, answer)
	}
	r.Must(os.Rename(filepath.Join(r.Dir, "moved"), filepath.Join(r.Dir, "data")))
	if code, ready := r.Ready(); code != http.StatusOK || !ready.Part(t, "data_dir").OK || r.Metric(`pawl_healthy{part="data_dir"}`) != 1 {
		t.Errorf("%d %+v, want data_dir to work again", code, ready)
	}
	r.Stop(syscall.SIGTERM)
}

func TestReadyzReportsThatNoThreadCanBeClaimed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	change := func(query string) {
		t.Helper()
		_, err := r.Node.Store().DB().ExecContext(t.Context(), query)
		r.Must(err)
	}
	change("ALTER TABLE threads RENAME COLUMN later_at TO gone")
	change("INSERT INTO threads (owner, name, number, queued_at, updated_at) VALUES ('acme', 'widgets', 7, 1, 1)")
	r.Await("the report", func() bool {
		_, ready := r.Ready()
		return strings.Contains(ready.Part(t, "queue").Detail, "nothing is claimed: claim threads: ")
	})
	change("ALTER TABLE threads RENAME COLUMN gone TO later_at")
	change("DELETE FROM threads")
	r.Await("a working queue", func() bool { _, ready := r.Ready(); return ready.Part(t, "queue").OK })
}
