package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// readiness is what /readyz says.
type readiness struct {
	Ready   bool
	Checks  []readyPart
	Details []readyPart
}

type readyPart struct {
	Name   string
	OK     bool
	Detail string
}

func (r *rig) ready() (code int, said readiness) {
	r.t.Helper()
	code, body := r.get("/readyz")
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		r.t.Fatalf("%v in %s", err, body)
	}
	return code, said
}

// part is a check or a detail by name; one that is not there is a failure.
func (s readiness) part(t *testing.T, name string) readyPart {
	t.Helper()
	for _, p := range append(s.Checks, s.Details...) {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("%q is not among %+v", name, s)
	return readyPart{}
}

func TestReadyzTellsWhatIsStuckAndStaysReady(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, _ := r.solved()
	if code, said := r.ready(); code != http.StatusOK || !said.Ready || !said.part(t, "queue").OK || !said.part(t, "database").OK || !said.part(t, "clock").OK {
		t.Fatalf("%d %+v, want ready", code, said)
	}
	db := r.database()
	change := func(query string, args ...any) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query, args...)
		r.must(err)
	}
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).UnixMicro() }
	// What nobody works on, as if it had been lost. It is no reason to refuse webhooks.
	change("INSERT INTO deliveries (guid, event, payload, received_at, state, note, tries, retry_at) VALUES ('lost', 'ping', x'7b7d', ?, 'received', '', 0, ?)", ago(16*time.Minute), time.Now().Add(30*time.Minute).UnixMicro())
	if code, said := r.ready(); code != http.StatusOK || said.part(t, "queue").OK || !strings.Contains(said.part(t, "queue").Detail, "a delivery was stored 16m") {
		t.Errorf("a lost delivery: %d %+v", code, said)
	}
	change("DELETE FROM deliveries WHERE guid = 'lost'")
	change("UPDATE threads SET queued_at = ?, lease_until = ? WHERE number = ?", ago(6*time.Minute), time.Now().Add(29*time.Second).UnixMicro(), n)
	if code, said := r.ready(); code != http.StatusOK || said.part(t, "queue").OK || !strings.Contains(said.part(t, "queue").Detail, "a thread has waited 6m") {
		t.Errorf("a lost step: %d %+v", code, said)
	}
}

func TestReadyzSaysThatGitHubIsAwayAndStaysReady(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, _ := r.solved()
	if _, said := r.ready(); !said.part(t, "github").OK {
		t.Errorf("%+v, want GitHub answering", said)
	}
	r.world.Inject(fakegithub.Fault{Route: "* **", Status: http.StatusServiceUnavailable, Times: -1})
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl retry once more")
	r.must(err)
	r.await("the server to be told that GitHub is down", func() bool {
		code, said := r.ready()
		return code == http.StatusOK && said.Ready && strings.Contains(said.part(t, "github").Detail, "answers 503")
	})
	r.world.ClearFaults()
	r.await("GitHub to answer again", func() bool { _, said := r.ready(); return said.part(t, "github").OK })
	r.settle()
	r.world.Inject(fakegithub.Fault{Route: "POST /app/installations/{id}/access_tokens", Status: http.StatusUnauthorized, Times: -1})
	r.world.RevokeTokens()
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl retry and again")
	r.must(err)
	r.await("the server to be told that the App is refused", func() bool {
		code, said := r.ready()
		return code == http.StatusOK && said.Ready && strings.Contains(said.part(t, "github").Detail, "refuses the App's credentials (401)")
	})
	r.world.ClearFaults()
	r.world.Close()
	body := []byte(`{"action": "created", "issue": {"number": 1}, "comment": {"id": 5, "body": "/pawl solve", "user": {"login": "ada", "id": 1001, "type": "User"}},
		"repository": {"id": 1, "name": "other", "owner": {"login": "acme"}}, "installation": {"id": 1}, "sender": {"login": "ada", "id": 1001}}`)
	if got, answer := r.hook(body, map[string]string{"X-GitHub-Event": "issue_comment"}); got != http.StatusOK {
		t.Fatalf("answered %d %q", got, answer)
	}
	r.await("the server to miss GitHub", func() bool {
		code, said := r.ready()
		return code == http.StatusOK && said.Ready && !said.part(t, "github").OK
	})
}

func TestReadyzSaysThatTheDataDirectoryTakesNothingAndStaysReady(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	// Also root cannot write into a folder that is gone.
	r.must(os.Rename(filepath.Join(r.dir, "data"), filepath.Join(r.dir, "moved")))
	if code, said := r.ready(); code != http.StatusOK || said.part(t, "data_dir").OK || !said.part(t, "database").OK {
		t.Errorf("%d %+v, want ready, with data_dir as what does not work", code, said)
	}
	if n := r.metric(`pawl_healthy{part="data_dir"}`); n != 0 {
		t.Errorf("the metric says %v, want 0", n)
	}
	if got, answer := r.hook([]byte(`{"zen": "Keep it logically awesome."}`), nil); got != http.StatusOK {
		t.Errorf("a webhook was answered %d %q, want it stored", got, answer)
	}
	r.must(os.Rename(filepath.Join(r.dir, "moved"), filepath.Join(r.dir, "data")))
	if code, said := r.ready(); code != http.StatusOK || !said.part(t, "data_dir").OK || r.metric(`pawl_healthy{part="data_dir"}`) != 1 {
		t.Errorf("%d %+v, want data_dir to work again", code, said)
	}
	r.stop(syscall.SIGTERM)
}
