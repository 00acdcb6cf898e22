package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/pawlbot/pawl/handlers"
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
	var content io.Reader = bytes.NewReader(body)
	if h["Content-Length"] == "unknown" {
		// Only a reader of a known kind makes the client send a length.
		content = io.MultiReader(content)
	}
	delete(h, "Content-Length")
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url("/api/github/hook"), content)
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

// sent are the deliveries that came to be stored by hook. The server itself may
// fetch the one of the App's installation, which GitHub sent while nobody listened.
func (r *rig) sent() []thread.Delivery {
	r.t.Helper()
	return slices.DeleteFunc(r.deliveries(), func(d thread.Delivery) bool { return d.Event == "installation" })
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

func TestWebhooksThatAreNotGitHubsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("", "")
	r.start()
	body := []byte(`{"zen": "Keep it logically awesome."}`)
	valid := "sha256=" + signature(sha256.New, body)
	for _, tc := range []struct {
		name   string
		header map[string]string
		want   int
	}{
		{"no signature", map[string]string{"X-Hub-Signature-256": ""}, 401},
		{"a signature with another secret", map[string]string{"X-Hub-Signature-256": "sha256=" + strings.Repeat("0", 64)}, 401},
		{"a signature of another text", map[string]string{"X-Hub-Signature-256": "sha256=" + signature(sha256.New, []byte("{}"))}, 401},
		{"a signature cut short", map[string]string{"X-Hub-Signature-256": valid[:40]}, 401},
		{"a signature that is no hexadecimal", map[string]string{"X-Hub-Signature-256": "sha256=zz"}, 401},
		{"an empty signature", map[string]string{"X-Hub-Signature-256": "sha256="}, 401},
		{"SHA-1 alone", map[string]string{"X-Hub-Signature-256": "", "X-Hub-Signature": "sha1=" + signature(sha1.New, body)}, 401},
		{"SHA-1 beside a wrong SHA-256", map[string]string{"X-Hub-Signature-256": "sha256=00", "X-Hub-Signature": "sha1=" + signature(sha1.New, body)}, 401},
		{"SHA-1 in the place of SHA-256", map[string]string{"X-Hub-Signature-256": "sha1=" + signature(sha1.New, body)}, 401},
		{"no GUID", map[string]string{"X-GitHub-Delivery": ""}, 400},
		{"a GUID with odd characters", map[string]string{"X-GitHub-Delivery": "../../etc/passwd"}, 400},
		{"a GUID without an end", map[string]string{"X-GitHub-Delivery": strings.Repeat("a", 200)}, 400},
		{"no event", map[string]string{"X-GitHub-Event": ""}, 400},
		{"an event with odd characters", map[string]string{"X-GitHub-Event": "issues; drop table"}, 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, answer := r.hook(body, tc.header); got != tc.want {
				t.Errorf("answered %d %q, want %d", got, answer, tc.want)
			}
		})
	}
	if code, _ := r.get("/api/github/hook"); code != http.StatusMethodNotAllowed {
		t.Errorf("GET answered %d, want 405", code)
	}
	if list := r.sent(); len(list) != 0 {
		t.Errorf("%d deliveries were stored, want none: %+v", len(list), list)
	}
	if got, answer := r.hook(body, nil); got != http.StatusOK {
		t.Errorf("the valid one was answered %d %q, want 200", got, answer)
	}
}

func TestPayloadsOfMoreThan25MiBAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("", "")
	r.start()
	body := func(size int) []byte { return []byte(`{"zen":"` + strings.Repeat("x", size-10) + `"}`) }
	for _, tc := range []struct {
		name   string
		size   int
		length string
		want   int
	}{
		{"one byte more", handlers.MaxPayload + 1, "", 413},
		{"one byte more, its length not told", handlers.MaxPayload + 1, "unknown", 413},
		{"as much as GitHub sends", handlers.MaxPayload, "", 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, answer := r.hook(body(tc.size), map[string]string{"Content-Length": tc.length}); got != tc.want {
				t.Errorf("answered %d %q, want %d", got, answer, tc.want)
			}
		})
	}
	if n := len(r.sent()); n != 1 {
		t.Errorf("%d deliveries were stored, want 1", n)
	}
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
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got := r.again(command); got != http.StatusOK {
				t.Errorf("a repeated GUID among 50 was answered %d, want 200", got)
			}
		})
	}
	wg.Wait()
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

// Only what Pawl reads has to be as documented; what else is in a payload may be odd,
// as in GitHub's own examples (handlers reads those).
func TestPayloadsThatCannotBeReadAreStoredAndMarked(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("", "")
	r.start()
	for i, tc := range []struct{ event, payload string }{
		{"check_run", `{"action": "completed", "check_run": {"id": 4, "completed_at": "2018-04-25 20:42:10"}}`},
		{"package", `{"action": `},
		{"issue_comment", `{"action": "created", "comment": {"id": "no number"}}`},
		{"issue_comment", `[]`},
		{"issue_comment", `not JSON`},
		{"issue_comment", ``},
		{"issues", `{"action": "edited", "changes": {"body": 7}}`},
		{"an_event_of_next_year", `{"action": "created"}`},
	} {
		guid := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		status, answer := r.hook([]byte(tc.payload), map[string]string{"X-GitHub-Event": tc.event, "X-GitHub-Delivery": guid})
		if status != http.StatusOK {
			t.Errorf("%s %s was answered %d %q, want 200", tc.event, tc.payload, status, answer)
			continue
		}
		r.settle()
		if d := r.deliveryOf(guid); d.State != thread.Unparsable || d.Note == "" {
			t.Errorf("%s %s is %s (%s), want unparsable with a reason", tc.event, tc.payload, d.State, d.Note)
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

func TestADatabaseThatTakesNothingIsAnswered503(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("", "")
	r.start()
	lock, err := r.database().Conn(t.Context())
	r.must(err)
	defer lock.Close()
	// Whoever holds the write lock longer than the server is patient.
	_, err = lock.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	r.must(err)
	body := []byte(`{"zen": "Keep it logically awesome."}`)
	if got, answer := r.hook(body, nil); got != http.StatusServiceUnavailable {
		t.Errorf("answered %d %q, want 503", got, answer)
	}
	_, err = lock.ExecContext(t.Context(), "ROLLBACK")
	r.must(err)
	if got, answer := r.hook(body, nil); got != http.StatusOK {
		t.Errorf("the redelivery was answered %d %q, want 200", got, answer)
	}
	r.settle()
	if list := r.sent(); len(list) != 1 || list[0].State != thread.Handled {
		t.Errorf("deliveries %+v, want one that is handled", list)
	}
}
