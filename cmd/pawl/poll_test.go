package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// polls has the server ask GitHub for its deliveries, and starts it without an address at GitHub and without a
// webhook's secret.
func (r *rig) polls() {
	r.t.Helper()
	file := r.file()
	text, err := os.ReadFile(file)
	r.must(err)
	bare := strings.NewReplacer("  app:", "  receive: poll\n  app:", fmt.Sprintf("webhook_secret: %q, ", rigSecret), "").Replace(string(text))
	r.must(os.WriteFile(file, []byte(bare), 0o600))
	r.server = r.launch(exec.Command(pawlBinary, "serve", "--config", file), r.log)
	r.addr = r.server.addr
}

func TestAServerWithoutAnAddressAsksForItsDeliveries(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.agent("echo two >> a.txt\n", "")
	r.polls()
	first := r.solve("A second line", "Please add a second line to a.txt.")
	if s := r.over(threadName(first)); s.State != "done" {
		t.Fatalf("state %s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	if resp, err := http.Post(r.url("/api/github/hook"), "application/json", strings.NewReader("{}")); err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("a webhook without any secret to check it with was answered %v, %v; want 404", resp, err)
	}
	// What happens while no server runs is taken in by the next one, and what was taken in is not done again.
	r.stop(syscall.SIGKILL)
	second := r.solve("A third line", "Please add a third line to a.txt.")
	r.polls()
	if s := r.over(threadName(second)); s.State != "done" {
		t.Fatalf("after a restart: state %s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	r.settle()
	if r.calls() != 2 || len(r.world.Pulls(rigRepo)) != 2 {
		t.Errorf("%d calls of the agent and %d pull requests for two issues", r.calls(), len(r.world.Pulls(rigRepo)))
	}
}
