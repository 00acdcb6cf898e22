package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// The server tells a chat at its start what needs a person, and the pull request's address stands in its log.
func TestTheOperatorIsToldInAChat(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var said []string
	chat := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		var m struct{ Text string }
		if err := json.NewDecoder(q.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		said = append(said, m.Text)
	}))
	defer chat.Close()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.config += "policy: {caps: {per_server_per_day: 1}}\n"
	r.start()
	n := r.solve("Add a line", "Please add a line to a.txt.")
	r.await("the pull request", func() bool { return r.pullOf(n) > 0 })
	r.settle()
	opened, own := false, 0
	for line := range strings.Lines(r.log.String()) {
		var l struct{ Level, Message, URL, By string }
		if json.Unmarshal([]byte(line), &l) != nil {
			t.Errorf("a line is no JSON: %s", line)
		}
		opened = opened || l.Level == "info" && l.Message == "pull request opened" && strings.HasSuffix(l.URL, fmt.Sprintf("/acme/widgets/pull/%d", r.pullOf(n)))
		if l.Message == "remark judged" && l.By == "pawl[bot]" {
			own++
			if l.Level != "debug" {
				t.Errorf("what Pawl judges of its own words is told at %s: %s", l.Level, line)
			}
		}
	}
	if !opened || own == 0 {
		t.Errorf("the pull request's address is told: %v; %d words of Pawl's own were judged:\n%s", opened, own, r.log)
	}
	r.stop(syscall.SIGTERM)
	r.config += "notify: {url: \"" + chat.URL + "/hook\"}\n"
	r.start()
	r.await("the message", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(said) == 1 && strings.Contains(said[0], "Pawl: 100 % of the attempts that all attempts of 24 hours may use are used: 1 of 1 attempt (0 left)")
	})
}
