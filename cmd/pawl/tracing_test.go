package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
)

// collected is an OpenTelemetry collector on loopback.
type collected struct {
	t   *testing.T
	url string

	mu    sync.Mutex
	raw   []byte
	spans []*spans.Span
}

func newCollector(t *testing.T) *collected {
	c := &collected{t: t}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &sent)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		c.t.Errorf("%s: %v", r.URL.Path, err)
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, body...)
	for _, r := range sent.ResourceSpans {
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
}

// of returns the spans of a delivery's trace.
func (c *collected) of(guid string) []*spans.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := webhookSpan(guid).TraceID()
	var found []*spans.Span
	for _, s := range c.spans {
		if string(s.TraceId) == string(id[:]) {
			found = append(found, s)
		}
	}
	return found
}

// value is an attribute of a span, empty for none.
func value(s *spans.Span, name string) string {
	for _, a := range s.Attributes {
		if a.Key == name {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

func TestATraceLeadsFromTheWebhookToThePush(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify:\n  - grep -q two a.txt\n"})
	r.config = "tracing: {endpoint: " + c.url + "}\n"
	r.agent("cat > /dev/null; echo two >> a.txt; echo my final words\n", "")
	r.start()
	n := r.solve("Words of the issue", "Words of the description.")
	r.over(threadName(n))
	r.settle()
	guid := ""
	for _, d := range r.world.Deliveries() {
		if d.Event == "issue_comment" && strings.Contains(string(d.Payload), "/pawl solve") {
			guid = d.GUID
		}
	}
	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	trace := c.of(guid)
	byID := map[string]*spans.Span{}
	for _, s := range trace {
		byID[string(s.SpanId)] = s
	}
	// The way of each span up to the webhook, by names.
	var ways []string
	for _, s := range trace {
		way := s.Name
		for s.ParentSpanId != nil {
			if s = byID[string(s.ParentSpanId)]; s == nil {
				t.Fatalf("the parent of %q is not in the trace", way)
			}
			way = s.Name + " > " + way
		}
		ways = append(ways, way)
	}
	slices.Sort(ways)
	want := []string{
		"webhook", "webhook > delivery", "webhook > step", "webhook > step > attempt", "webhook > step > attempt > agent run",
		"webhook > step > attempt > push", "webhook > step > attempt > verify", "webhook > step > decide", "webhook > step > decide > layer", "webhook > step > decide > layer > verify base", "webhook > step > publish",
	}
	if d := cmp.Diff(want, slices.Compact(ways)); d != "" {
		t.Error(d)
	}
	for _, s := range trace {
		if in := slices.Contains([]string{"webhook", "delivery"}, s.Name); !in && value(s, solver.TraceThread) != threadName(n) {
			t.Errorf("%s says of its thread %q", s.Name, value(s, solver.TraceThread))
		}
		if s.Name == "attempt" && (value(s, attempt.TraceOutcome) != "edited" || value(s, solver.TraceAttempt) != "1" || value(s, attempt.TraceBackend) != "mine") {
			t.Errorf("the attempt's attributes are %v", s.Attributes)
		}
	}
	for _, secret := range []string{"Words of the", "/pawl solve", "my final words", rigSecret, "ghs_", "grep"} {
		if strings.Contains(string(c.raw), secret) {
			t.Errorf("the spans hold %q", secret)
		}
	}
	// The log leads to the same work.
	for _, line := range strings.Split(r.log.String(), "\n") {
		if strings.Contains(line, `"attempt started"`) || strings.Contains(line, `"attempt ended"`) {
			for _, id := range []string{`"delivery":"` + guid + `"`, `"thread":"` + threadName(n) + `"`, `"attempt":1,`} {
				if strings.Count(line, id) != 1 {
					t.Errorf("%s does not say %s once", line, id)
				}
			}
		}
	}
}

func TestACollectorThatHangsOrIsAwayHoldsNothingUp(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, endpoint := range map[string]string{"hangs": "http://" + silent.Addr().String(), "is away": gone.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.config = "tracing: {endpoint: " + endpoint + "}\n"
			r.agent(plainAgent, "")
			r.start()
			n := r.solve("A second line", "Please.")
			if s := r.over(threadName(n)); s.State != "done" {
				t.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
			}
			if code := r.stop(syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestRefusedWebhooksLeaveNoSpan(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	r := newRig(t, nil)
	r.config = "tracing: {endpoint: " + c.url + "}\n"
	r.agent("", "")
	r.start()
	body := []byte(`{"zen": "Keep it logically awesome."}`)
	const refused, taken = "99999999-2222-4333-8444-555555555555", "88888888-2222-4333-8444-555555555555"
	if got, _ := r.hook(body, map[string]string{"X-GitHub-Delivery": refused, "X-Hub-Signature-256": "sha256=00"}); got != http.StatusUnauthorized {
		t.Fatalf("answered %d", got)
	}
	if got, _ := r.hook(body, map[string]string{"X-GitHub-Delivery": taken}); got != http.StatusOK {
		t.Fatalf("answered %d", got)
	}
	r.settle()
	r.stop(syscall.SIGTERM)
	if none, some := c.of(refused), c.of(taken); len(none) != 0 || len(some) == 0 {
		t.Errorf("%d spans of the refused webhook and %d of the other, want none and some", len(none), len(some))
	}
}
