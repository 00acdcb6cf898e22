package main

import (
	"encoding/json"
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
	if log := r.log.String(); !strings.Contains(log, "/acme/widgets/pull/") {
		t.Errorf("the log does not name the pull request:\n%s", log)
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
