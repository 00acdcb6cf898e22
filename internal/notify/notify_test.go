package notify

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/policy"
)

var start = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func TestAlerts(t *testing.T) {
	quiet := Health{MaxConsecutive: 3, QueueAge: 9 * time.Minute, Day: policy.Ledger{Used: policy.Used{Attempts: 89, USD: 1}, MaxAttempts: 100},
		Breakers: map[string]policy.Breaker{"main": {Kind: policy.UsageLimit, Consecutive: 2}}}
	for name, c := range map[string]struct {
		change func(*Health, *reported)
		want   []string
	}{
		"quiet":               {func(*Health, *reported) {}, nil},
		"deliveries given up": {func(f *Health, _ *reported) { f.GivenUp = 2 }, []string{"deliveries"}},
		"a stuck queue":       {func(f *Health, _ *reported) { f.QueueAge = 11 * time.Minute }, []string{"queue"}},
		"a breaker": {func(f *Health, _ *reported) {
			f.Breakers["main"] = policy.Breaker{Kind: policy.UsageLimit, Consecutive: 3, ResetsAt: start.Add(time.Hour)}
		}, []string{"breaker main"}},
		"a budget near its end":  {func(f *Health, _ *reported) { f.Day.Attempts = 90 }, []string{"budget attempts"}},
		"no limit, no alert":     {func(f *Health, _ *reported) { f.Day.MaxAttempts, f.Day.Attempts = 0, 9000 }, nil},
		"a signal":               {func(f *Health, _ *reported) { f.Degraded = []string{"judge"} }, []string{"signal judge"}},
		"a day without success":  {func(_ *Health, t *reported) { *t = reported{Solved: start.Add(-24 * time.Hour), Unsolved: 3} }, []string{"success"}},
		"a weekend without work": {func(_ *Health, t *reported) { *t = reported{Solved: start.Add(-72 * time.Hour), Unsolved: 2} }, nil},
		"a bad hour":             {func(_ *Health, t *reported) { *t = reported{Solved: start.Add(-time.Hour), Unsolved: 30} }, nil},
	} {
		f := quiet
		f.Breakers = map[string]policy.Breaker{"main": quiet.Breakers["main"]}
		var shared reported
		c.change(&f, &shared)
		var keys []string
		for _, a := range f.alerts(start, shared) {
			keys = append(keys, a.key)
		}
		if diff := cmp.Diff(c.want, keys); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOnlySuccessOrFailureCounts(t *testing.T) {
	var s reported
	for i, o := range []policy.Outcome{policy.NoChange, policy.Declined, policy.VerifyFailed, policy.Interrupted, policy.EditLoop} {
		s.attempt(o, start.Add(time.Duration(i)*time.Hour))
	}
	if s.Unsolved != 3 || !s.Solved.Equal(start) {
		t.Errorf("%d without success since %s, want 3 since the first", s.Unsolved, s.Solved)
	}
	if s.attempt(policy.WorkUnverified, start.Add(9*time.Hour)); s.Unsolved != 0 || !s.Solved.Equal(start.Add(9*time.Hour)) {
		t.Errorf("after a success %d since %s", s.Unsolved, s.Solved)
	}
}

// chat is a chat channel, with the nodes' shared state.
type chat struct {
	mu       sync.Mutex
	status   int
	messages []string
	shared   []byte
	now      time.Time
	facts    Health
	url      string
}

func newChat(t *testing.T) *chat {
	c := &chat{status: http.StatusOK, now: start}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m map[string]string
		data, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(data, &m) != nil || len(m) != 1 {
			t.Errorf("%s %s: %v", r.Method, data, err)
		}
		if w.WriteHeader(c.status); c.status == http.StatusOK {
			c.messages = append(c.messages, m["text"])
		}
	}))
	t.Cleanup(s.Close)
	c.url = s.URL + "/services/T0/B0/hunter2"
	return c
}

func (c *chat) node() *Watch {
	return &Watch{URL: func() string { return c.url }, Client: Client(http.DefaultTransport), Log: zerolog.Nop(),
		Health: func(context.Context) (Health, error) { return c.facts, nil },
		UpdateShared: func(_ context.Context, key string, f func(time.Time, []byte) []byte) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if next := f(c.now, c.shared); key == "notify" && next != nil {
				c.shared = next
			}
			return nil
		}}
}

func TestOneNodeReportsNewAndEndedAlerts(t *testing.T) {
	c := newChat(t)
	a, b := c.node(), c.node()
	turn := func(pass time.Duration) {
		t.Helper()
		c.now = c.now.Add(pass)
		for _, w := range []*Watch{a, b} {
			if err := w.turn(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	turn(0)
	c.facts.GivenUp = 1
	turn(time.Minute)
	turn(time.Minute)
	turn(time.Hour)
	c.facts.Degraded = []string{"judge"}
	turn(time.Minute)
	c.facts.GivenUp = 0
	turn(time.Minute)
	turn(25 * time.Hour)
	want := []string{"could not be handled", "does not learn from judge", "Pawl: resolved: deliveries", "does not learn from judge"}
	if len(c.messages) != len(want) {
		t.Fatalf("reported: %q", c.messages)
	}
	for i, w := range want {
		if !strings.Contains(c.messages[i], w) || !strings.HasPrefix(c.messages[i], "Pawl: ") {
			t.Errorf("message %d is %q, want %q", i, c.messages[i], w)
		}
	}
}

func TestRefusedMessageIsSentAgainWithoutLoggingItsURL(t *testing.T) {
	c := newChat(t)
	w := c.node()
	c.facts.GivenUp, c.status = 1, http.StatusServiceUnavailable
	err := w.turn(t.Context())
	if err == nil || !strings.Contains(err.Error(), "503") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a refusal is %v", err)
	}
	w.URL = func() string { return "http://127.0.0.1:1/hunter2" }
	c.now = c.now.Add(time.Minute)
	if err = w.turn(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a lost connection is %v", err)
	}
	w.URL, c.status, c.now = func() string { return c.url }, http.StatusOK, c.now.Add(time.Minute)
	if err := w.turn(t.Context()); err != nil || len(c.messages) != 1 {
		t.Errorf("then %v, and reported: %q", err, c.messages)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	c := newChat(t)
	s := httptest.NewServer(http.RedirectHandler(c.url, http.StatusTemporaryRedirect))
	defer s.Close()
	w := c.node()
	w.URL, c.facts.GivenUp = func() string { return s.URL }, 1
	if err := w.turn(t.Context()); err == nil || len(c.messages) != 0 {
		t.Errorf("%v, and reported: %q", err, c.messages)
	}
}
