package testrig

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/checkrun"
)

// Readiness is the answer of /readyz.
type Readiness struct {
	Ready   bool
	Checks  []ReadyPart
	Details []ReadyPart
}

// ReadyPart is one check of /readyz.
type ReadyPart struct {
	Name   string
	OK     bool
	Detail string
}

func (r *Rig) Ready() (code int, said Readiness) {
	r.T.Helper()
	code, body := r.Get("/readyz")
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		r.T.Fatalf("%v in %s", err, body)
	}
	return code, said
}

// Part returns a check or detail by name. A missing one fails the test.
func (s Readiness) Part(t *testing.T, name string) ReadyPart {
	t.Helper()
	for _, p := range append(s.Checks, s.Details...) {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("%q is not among %+v", name, s)
	return ReadyPart{}
}

// Metric returns the value of a line of /metrics by its name and labels, or -1 if there is no such line.
func (r *Rig) Metric(name string) float64 {
	r.T.Helper()
	_, body := r.Get("/metrics")
	for l := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(l), name+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			r.Must(err)
			return n
		}
	}
	return -1
}

// Started returns the number of attempts that the node logged as started.
func (m *Member) Started() int { return strings.Count(m.Log.String(), `"message":"attempt started"`) }

// Began reports whether the node has logged an attempt on the thread.
func (m *Member) Began(issue string) bool {
	for line := range strings.Lines(m.Log.String()) {
		if strings.Contains(line, `"message":"attempt started"`) && strings.Contains(line, `"thread":"`+issue+`"`) {
			return true
		}
	}
	return false
}

// Chat is a chat channel that receives messages by webhook.
type Chat struct {
	*httptest.Server
	mu   sync.Mutex
	text strings.Builder
}

// NewChat opens a channel and closes it when the test ends.
func NewChat(t *testing.T) *Chat {
	c := &Chat{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		var m struct{ Text string }
		if err := json.NewDecoder(q.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.text.WriteString(m.Text + "\n")
	}))
	t.Cleanup(c.Close)
	return c
}

// Messages returns all messages in order, one per line.
func (c *Chat) Messages() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// SmallDisk mounts a file system of the given size in MiB at dir. Without root, it skips the test.
func SmallDisk(t *testing.T, dir string, size int) {
	t.Helper()
	mountSmall(t, dir, fmt.Sprintf("size=%dm", size))
}

// FewFiles mounts a file system with the given number of inodes at dir. Without root, it skips the test.
func FewFiles(t *testing.T, dir string, most int) {
	t.Helper()
	mountSmall(t, dir, fmt.Sprintf("nr_inodes=%d", most))
}

func mountSmall(t *testing.T, dir, options string) {
	t.Helper()
	if err := syscall.Mount("pawl-test", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("a small file system cannot be mounted here (%v); this test needs root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// Send delivers a ping with a payload of about n bytes under a new GUID. It returns the GUID and the response's status,
// or 0 if there was no response.
func (r *Rig) Send(n int) (guid string, code int) {
	r.T.Helper()
	zen := make([]byte, n/2)
	rand.Read(zen)
	guid = fmt.Sprintf("00000000-0000-4000-8000-%012x", zen[:6])
	body := fmt.Appendf(nil, `{"zen":"%x"}`, zen)
	req, err := http.NewRequestWithContext(r.T.Context(), http.MethodPost, r.URL("/api/github/hook"), bytes.NewReader(body))
	r.Must(err)
	for k, v := range map[string]string{"Content-Type": "application/json", "X-GitHub-Event": "ping", "X-GitHub-Delivery": guid,
		"X-Hub-Signature-256": "sha256=" + Signature(sha256.New, body)} {
		req.Header.Set(k, v)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return guid, 0
	}
	answer.Body.Close()
	return guid, answer.StatusCode
}

// Below counts this machine's live processes whose command line begins with a text.
func (r *Rig) Below(text string) int {
	r.T.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	r.Must(err)
	n := 0
	for _, d := range dirs {
		line, err := os.ReadFile(d + "/cmdline")
		if err == nil && strings.HasPrefix(string(line), text) {
			n++
		}
	}
	return n
}

// OneOfEach checks that a thread has one pull request and one status comment.
func (r *Rig) OneOfEach(n int) {
	r.T.Helper()
	pulls, comments := 0, 0
	for _, p := range r.World.Pulls(Repo) {
		if p.Pull.Head == fmt.Sprintf("pawl/issue-%d", n) {
			pulls++
		}
	}
	for _, c := range r.World.Comments(Repo, n) {
		if strings.Contains(c.Body, checkrun.StatusMarker(ThreadName(n))) {
			comments++
		}
	}
	if pulls != 1 || comments != 1 {
		r.T.Errorf("%s has %d pull requests and %d status comments, want one of each", ThreadName(n), pulls, comments)
	}
}
