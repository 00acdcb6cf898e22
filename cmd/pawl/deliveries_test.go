package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// unhandled are the deliveries that pawl status lists as not handled, by GUID.
func (r *rig) unhandled() map[string]thread.DeliveryState {
	r.T.Helper()
	code, out, said := pawl(r.T, r.Dir, nil, "status", "--config", "pawl.yml", "--json")
	if code != exitDone {
		r.T.Fatalf("exit code %d: %s", code, said)
	}
	var report struct {
		Deliveries []struct {
			GUID  string               `json:"guid"`
			State thread.DeliveryState `json:"state"`
		}
	}
	r.Must(json.Unmarshal([]byte(out), &report))
	all := map[string]thread.DeliveryState{}
	for _, d := range report.Deliveries {
		all[d.GUID] = d.State
	}
	return all
}

func TestAPersonDecidesOnDeliveriesThatWereGivenUp(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	decide := func(wantCode int, want string, args ...string) {
		t.Helper()
		code, out, said := pawl(t, r.Dir, nil, append([]string{"deliveries", args[0], "--config", "pawl.yml"}, args[1:]...)...)
		if code != wantCode || !strings.Contains(out+said, want) {
			t.Errorf("%v: exit code %d, %q; want %d and %q", args, code, out+said, wantCode, want)
		}
	}
	r.File()
	decide(exitFailed, "start pawl serve once", "retry", "all")
	r.Start()
	if _, said := r.Ready(); !said.Part(t, "deliveries").OK {
		t.Errorf("%+v, want nothing given up", said)
	}
	db := r.Database()
	const hostile = "<script>alert(1)</script>\x1b[31m"
	for _, guid := range []string{"one", "two", "three"} {
		_, err := db.ExecContext(t.Context(), `INSERT INTO deliveries (guid, event, payload, received_at, state, note, tries, retry_at)
			VALUES (?, 'ping', x'7b7d', ?, 'failed', ?, 100, 0)`, guid, time.Now().Add(-96*time.Hour).UnixMicro(), hostile)
		r.Must(err)
	}
	if code, said := r.Ready(); code != http.StatusOK || said.Part(t, "deliveries").OK || !strings.Contains(said.Part(t, "deliveries").Detail, "3 could not be handled") {
		t.Errorf("%d %+v, want ready, and that three were given up", code, said)
	}
	if n := r.Metric(`pawl_deliveries{state="given_up"}`); n != 3 {
		t.Errorf("the metric says %v, want 3", n)
	}
	if _, page := r.Get("/accounts"); !strings.Contains(page, "two") || !strings.Contains(page, "given up") || strings.Contains(page, "<script>alert") {
		t.Errorf("the page does not list them, or not safely:\n%s", page)
	}
	if code, out, said := pawl(t, r.Dir, nil, "status", "--config", "pawl.yml"); code != exitDone || strings.Count(out, "given up; ") != 3 || strings.Contains(out, "\x1b") {
		t.Errorf("exit code %d: %s%s; want three lines, without control characters", code, out, said)
	}
	decide(exitFailed, "retry four: there is no such delivery", "retry", "four")
	decide(exitDone, "two: 1 dismissed", "dismiss", "two")
	decide(exitDone, "one: 1 to be tried again", "retry", "one")
	r.Await("the first to be handled", func() bool { return r.DeliveryOf("one").State == thread.Handled })
	if diff := cmp.Diff(map[string]thread.DeliveryState{"three": thread.GivenUp}, r.unhandled()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	decide(exitDone, "all: 1 to be tried again", "retry", "all")
	r.Await("all to be handled", func() bool { return len(r.unhandled()) == 0 })
	decide(exitDone, "all: 0 to be tried again", "retry", "all")
	if d := r.DeliveryOf("two"); d.State != thread.Handled || !strings.HasPrefix(d.Note, "dismissed by the operator: ") {
		t.Errorf("the second is %s: %s", d.State, d.Note)
	}
	var logged string
	r.Must(db.QueryRowContext(t.Context(), "SELECT group_concat(data, ' ') FROM events WHERE kind = 'operated'").Scan(&logged))
	who := operator().Login
	for _, want := range []string{`{"what":"delivery_dismissed","subject":"two","by":"` + who + `","where":"in the shell"}`, `{"what":"delivery_retried","subject":"one","by":"` + who + `"`, `"subject":"all"`} {
		if !strings.Contains(logged, want) {
			t.Errorf("%s is not in the server's log: %s", want, logged)
		}
	}
	r.Stop(syscall.SIGKILL)
	decide(exitDone, "all: 0", "retry", "all") // for the next server
	decide(exitUsage, "pawl deliveries retry --help", "retry")
}
