package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver/thread"
)

func signature(algorithm func() hash.Hash, body []byte) string {
	mac := hmac.New(algorithm, []byte(rigSecret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// hook sends a webhook as GitHub does. Given headers replace GitHub's; an empty
// one is left out.
func (r *rig) hook(body []byte, header map[string]string) (status int, answer string) {
	r.t.Helper()
	h := map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": "ping", "X-GitHub-Delivery": "11111111-2222-4333-8444-555555555555",
		"X-Hub-Signature-256": "sha256=" + signature(sha256.New, body),
	}
	for k, v := range header {
		h[k] = v
	}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url("/api/github/hook"), bytes.NewReader(body))
	r.must(err)
	for k, v := range h {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	r.must(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	r.must(err)
	return resp.StatusCode, string(b)
}

// again sends what GitHub delivered last under an event once more, with the same
// GUID.
func (r *rig) again(d fakegithub.Delivery) int {
	r.t.Helper()
	status, _ := r.hook(d.Payload, map[string]string{"X-GitHub-Event": d.Event, "X-GitHub-Delivery": d.GUID})
	return status
}

// delivered returns the newest delivery of an event.
func (r *rig) delivered(event string) fakegithub.Delivery {
	r.t.Helper()
	var found fakegithub.Delivery
	for _, d := range r.world.Deliveries() {
		if d.Event == event {
			found = d
		}
	}
	if found.GUID == "" {
		r.t.Fatalf("GitHub delivered no %s", event)
	}
	return found
}

func TestARepeatedDeliveryHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, _ := r.solved()
	command := r.delivered("issue_comment")
	for _, d := range r.world.Deliveries() {
		if d.Event == "issue_comment" && strings.Contains(string(d.Payload), "/pawl solve") {
			command = d
		}
	}
	before := r.thread(threadName(n))
	if got := r.again(command); got != http.StatusOK {
		t.Errorf("a repeated GUID was answered %d, want 200", got)
	}
	r.settle()
	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	r.start()
	if got := r.again(command); got != http.StatusOK {
		t.Errorf("a repeated GUID was answered %d after a restart, want 200", got)
	}
	r.settle()
	if got := r.thread(threadName(n)); r.calls() != 1 || got.Run != before.Run {
		t.Errorf("%d calls of the agent in run %d, want 1 in run %d", r.calls(), got.Run, before.Run)
	}
}

func TestAShortWebhookSecretIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("", "")
	path := r.file()
	text, err := os.ReadFile(path)
	r.must(err)
	for _, secret := range []string{"", "fifteen letters"} {
		r.must(os.WriteFile(path, bytes.Replace(text, []byte(rigSecret), []byte(secret), 1), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		out, err := exec.CommandContext(ctx, pawlBinary, "serve", "--config", path).CombinedOutput()
		late := ctx.Err()
		cancel()
		if err == nil || late != nil || !bytes.Contains(out, []byte("webhook_secret")) || !bytes.Contains(out, []byte("at least 16")) {
			t.Errorf("secret %q: %v\n%s\nwant an error that names webhook_secret and its least length", secret, err, out)
		}
	}
}

func TestAWebhookWaitsNeitherForGitHubNorForAnAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(gatedAgent, "")
	r.gate()
	r.start()
	n := r.solve("A second line", "Please.")
	r.await("the agent", func() bool { return r.calls() == 1 })
	// From here on GitHub answers nothing.
	r.world.Inject(fakegithub.Fault{Route: "* **", Times: -1, Latency: time.Hour})
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl solve also a third line")
	r.must(err)
	r.must(r.world.WaitDelivered(t.Context()))
	if d := r.delivered("issue_comment"); d.StatusCode != http.StatusOK {
		t.Errorf("the webhook was answered %d, want 200", d.StatusCode)
	}
	if d := r.deliveryOf(r.delivered("issue_comment").GUID); d.State != thread.Received {
		t.Errorf("the delivery is %s, want it stored and not yet handled", d.State)
	}
	r.world.ClearFaults()
}

func TestFiftyDeliveriesUnderOneGUIDAreOne(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	n, err := r.world.OpenIssue(rigRepo, writer, "A second line", "Please.")
	r.must(err)
	r.world.Hold()
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl solve")
	r.must(err)
	command := r.world.Held()[0]
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got := r.again(command); got != http.StatusOK {
				t.Errorf("answered %d, want 200", got)
			}
		})
	}
	wg.Wait()
	r.world.Release()
	r.over(threadName(n))
	r.settle()
	if s := r.state(n); r.calls() != 1 || len(s.Feedback) != 1 {
		t.Errorf("%d calls of the agent and %d remarks, want 1 and 1", r.calls(), len(s.Feedback))
	}
}
