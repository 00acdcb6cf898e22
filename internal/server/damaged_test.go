package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/status"
	"github.com/pawlbot/pawl/internal/testrig"
)

// An unreadable event stops only its own thread, with a message to users.
func TestDamagedRowStopsOnlyItsThread(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	damaged, _ := r.Solved()
	row := fmt.Sprintf("kind = 'decision' AND thread_id = (SELECT id FROM threads WHERE number = %d)", damaged)
	change := func(from, to string) {
		t.Helper()
		_, err := r.Node.Store().DB().ExecContext(t.Context(), "UPDATE events SET data = replace(data, '"+from+"', '"+to+"') WHERE "+row)
		r.Must(err)
	}
	change(`{"action"`, `#"action"`)
	r.Writes(damaged, testrig.Writer, "/pawl solve again")
	r.Writes(damaged, testrig.Writer, "/pawl retry")
	reports := func() (n int) {
		for _, c := range r.World.Comments(testrig.Repo, damaged) {
			if strings.Contains(c.Body, "this thread cannot be read from Pawl's database") {
				n++
			}
		}
		return n
	}
	r.Await("a message on the thread", func() bool { return reports() > 0 })
	other := r.Solve("A third line", "Please add a third line to a.txt.")
	if s := r.Over(testrig.ThreadName(other)); s.State != "done" {
		t.Errorf("another thread is %s (%s %v), want done", s.State, s.Rule, s.Reasons)
	}
	if n := reports(); n != 1 {
		t.Errorf("reported %d times, want once", n)
	}
	report, err := status.Read(t.Context(), r.Node.Config(), r.Node.Store(), time.Now(), status.AllThreads)
	r.Must(err)
	for _, v := range report.Threads {
		if unreadable := strings.HasPrefix(v.Headline, "Unreadable: thread acme/widgets#"); unreadable != (v.Thread == testrig.ThreadName(damaged)) {
			t.Errorf("pawl status says of %s: %q", v.Thread, v.Headline)
		}
	}
	change(`#"action"`, `{"action"`)
	r.Writes(damaged, testrig.Writer, "/pawl retry")
	if s := r.Over(testrig.ThreadName(damaged)); s.State != "done" {
		t.Errorf("the repaired thread is %s (%s %v), want done", s.State, s.Rule, s.Reasons)
	}
}
