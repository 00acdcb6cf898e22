package server_test

import (
	"bufio"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/crash/crashtest"
	"github.com/pawlbot/pawl/internal/testrig"
)

// The thread's page, which the comment and the check run link to, follows the running agent until it ends. It does not
// delay the server's stop.
func TestThreadPageFollowsTheRunningAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo 'I begin with a.txt'\necho two >> a.txt\n"+testrig.Gated+"echo 'It is done.'\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the agent", func() bool { return r.Has("ready") })
	_, page := r.Get("/threads/acme/widgets/1")
	live := between(page, `data-live="`, `"`)
	if n != 1 || !strings.Contains(page, "Attempt 1 is running") || !strings.Contains(page, "<p>I begin with a.txt</p>") || !strings.HasPrefix(live, "../../../threads/acme/widgets/1/live?seq=") {
		t.Fatalf("issue %d, live %q, the page:\n%s", n, live, page)
	}
	follow := func() *bufio.Scanner {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.Pages+"/threads/acme/widgets/1/live?seq=2&at=0", nil)
		r.Must(err)
		q.AddCookie(r.Cookie)
		answer, err := http.DefaultClient.Do(q)
		r.Must(err)
		t.Cleanup(func() { answer.Body.Close() })
		return bufio.NewScanner(answer.Body)
	}
	receives := func(lines *bufio.Scanner, want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the page did not get %s: %v", want, lines.Err())
	}
	lines := follow()
	receives(lines, `{"text":"I begin with a.txt"}`)
	r.Touch("go")
	receives(lines, `"ended":true`)
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	// The server stops while a page follows another attempt.
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry")
	r.Must(err)
	r.Await("the second attempt", func() bool { return r.Calls() == 2 })
	lines = follow()
	receives(lines, `"n":2`)
	began := time.Now()
	r.Stop(syscall.SIGTERM)
	for lines.Scan() {
	}
	if took := time.Since(began); took > crashtest.StopsWithin {
		t.Errorf("the server stopped %s after the signal", took)
	}
}

// between returns the text between two texts, or "".
func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}
