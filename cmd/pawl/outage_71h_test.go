package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// The aim for what is made good after an outage, from the start of the server.
const madeGoodWithin = 10 * time.Minute

// GitHub lists and keeps the deliveries of three days. Those of 70 hours are
// fetched; the first of a longer outage are found by the reconciliation, which
// follows in the same look.
func TestAnOutageOf71HoursIsMadeGoodWithinTenMinutesOfTheStart(t *testing.T) {
	t.Parallel()
	binary := crashBinary(t) // for its clock
	ahead := &testrig.Clock{}
	r := newRigAt(t, nil, ahead.Now)
	c := &cluster{rig: r, ahead: ahead} // for its way to start a process
	r.Agent(testrig.PlainAgent, "")
	file := r.File()
	serve := func() *testrig.Member {
		cmd := exec.Command(binary, "serve", "--config", file)
		cmd.Env = append(os.Environ(), "PAWL_CRASH_CLOCK="+ahead.Ahead.String())
		return c.launch(cmd)
	}
	first := serve()
	const threads, missed, outage = 4, 142, 71 * time.Hour
	var numbers []int
	for i := range threads {
		numbers = append(numbers, r.Solve(fmt.Sprint("A line ", i), "Please add a line to a.txt."))
	}
	for _, n := range numbers {
		r.Over(testrig.ThreadName(n))
	}
	r.Settle()
	c.leave(first, syscall.SIGTERM)

	r.World.SetWebhookURL("http://127.0.0.1:1/")
	for i := range missed {
		ahead.Reach(ahead.Now().Add(outage / missed))
		_, err := r.World.Comment(testrig.Repo, numbers[i%threads], testrig.Writer, fmt.Sprint("/pawl retry change ", i))
		r.Must(err)
		r.Must(r.World.WaitDelivered(t.Context()))
	}
	r.World.ResetCalls()
	began := time.Now()
	serve()
	heard := func() map[string]int {
		times := map[string]int{}
		for _, n := range numbers {
			for _, f := range r.State(n).Feedback {
				times[f.Raw]++
			}
		}
		return times
	}
	good := func() bool {
		s := r.Stats()
		return s.Deliveries[thread.Received]+s.Deliveries[thread.Failed] == 0 && len(heard()) > missed
	}
	for !good() && time.Since(began) < madeGoodWithin {
		time.Sleep(200 * time.Millisecond)
	}
	took := time.Since(began)
	t.Logf("%d missed events were taken in and handled %v after the start", missed, took.Round(100*time.Millisecond))
	if took > madeGoodWithin {
		t.Errorf("that is more than %v", madeGoodWithin)
	}
	times := heard()
	for i := range missed {
		if text := fmt.Sprint("/pawl retry change ", i); times[text] != 1 {
			t.Errorf("%q is in the logs %d times", text, times[text])
		}
	}
	fetched := r.World.Calls()[http.MethodGet+" /app/hook/deliveries/{id}"]
	t.Logf("%d payloads were fetched, %d events found by the reconciliation", fetched, missed-fetched)
	if fetched < missed-8 || fetched == missed {
		t.Errorf("%d payloads were fetched; want those of 70 hours of 71", fetched)
	}
}
