package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// polls has the server ask GitHub for its deliveries, and starts it without an address at GitHub and without a
// webhook's secret.
func (r *rig) polls() {
	r.T.Helper()
	file := r.File()
	text, err := os.ReadFile(file)
	r.Must(err)
	bare := strings.NewReplacer("  app:", "  receive: poll\n  app:", fmt.Sprintf("webhook_secret: %q, ", testrig.Secret), "").Replace(string(text))
	r.Must(os.WriteFile(file, []byte(bare), 0o600))
	r.Server = r.Launch(exec.Command(testrig.Program, "serve", "--config", file), r.Log)
	r.Addr = r.Server.Addr
}

func TestAServerWithoutAnAddressAsksForItsDeliveries(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent("echo two >> a.txt\n", "")
	r.polls()
	first := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Over(testrig.ThreadName(first)); s.State != "done" {
		t.Fatalf("state %s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	if resp, err := http.Post(r.URL("/api/github/hook"), "application/json", strings.NewReader("{}")); err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("a webhook without any secret to check it with was answered %v, %v; want 404", resp, err)
	}
	// What happens while no server runs is taken in by the next one, and what was taken in is not done again.
	r.Stop(syscall.SIGKILL)
	second := r.Solve("A third line", "Please add a third line to a.txt.")
	r.polls()
	if s := r.Over(testrig.ThreadName(second)); s.State != "done" {
		t.Fatalf("after a restart: state %s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	r.Settle()
	if r.Calls() != 2 || len(r.World.Pulls(testrig.Repo)) != 2 {
		t.Errorf("%d calls of the agent and %d pull requests for two issues", r.Calls(), len(r.World.Pulls(testrig.Repo)))
	}
}
