package handlers

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

const payloadRoute = "GET /app/hook/deliveries/{id}"

// missed looks once and checks how many it took in.
func (w *house) missed(c *CatchUp, want int) {
	w.t.Helper()
	m, err := c.Missed(w.t.Context())
	w.must(err)
	if m.Taken != want {
		w.t.Errorf("took in %d missed deliveries of %d listed, want %d", m.Taken, m.Listed, want)
	}
}

// GitHub keeps the deliveries of the last three days, of which those of 70 hours
// are taken in; the first of an outage of 71 hours are found by the
// reconciliation.
func TestAnOutageOf71HoursIsMadeGoodOnceAndWhole(t *testing.T) {
	w := newHouse(t)
	var threads []solver.Thread
	for range 10 {
		threads = append(threads, w.issue("Please."))
	}
	const missed, outage = 500, 71 * time.Hour
	w.gh.SetWebhookURL("http://127.0.0.1:1/")
	want := map[solver.Thread][]string{} // in the order of what is taken in
	late := map[solver.Thread][]string{} // what comes after, from the reconciliation
	within := 0
	for i := range missed {
		thread := threads[i%len(threads)]
		w.pass(outage / missed)
		text := fmt.Sprintf("/pawl retry %d", i)
		_, err := w.gh.Comment(houseRepo, thread.Number, "ada", text)
		w.must(err)
		w.must(w.gh.WaitDelivered(t.Context()))
		if outage-time.Duration(i+1)*outage/missed < lookBack {
			want[thread] = append(want[thread], "+ "+text)
			within++
		} else {
			late[thread] = append(late[thread], "+ "+text)
		}
	}
	// The first webhook after the outage must not hide what was missed in it.
	w.gh.SetWebhookURL(w.hook)
	_, err := w.gh.Comment(houseRepo, threads[0].Number, "ada", "/pawl retry live")
	w.must(err)
	w.handle()
	c := NewCatchUp(w.h, w.store)
	w.missed(c, within)
	w.missed(c, 0)
	w.missed(NewCatchUp(w.h, w.store), 0)
	w.handle()
	w.reconciled(c, missed-within)
	w.reconciled(c, 0)
	w.reconciled(NewCatchUp(w.h, w.store), 0)
	for _, thread := range threads {
		got := w.judged(thread)[1:]
		if thread == threads[0] && (len(got) == 0 || got[0] != "+ /pawl retry live") {
			t.Fatalf("%s: judged %q, want the live one first", thread, got)
		} else if thread == threads[0] {
			got = got[1:]
		}
		if diff := cmp.Diff(append(want[thread], late[thread]...), got); diff != "" {
			t.Errorf("%s: judged in this order (-want +got)\n%s", thread, diff)
		}
	}
	if missed-within == 0 {
		t.Error("nothing was left to the reconciliation")
	}
}

func TestARedeliveryOfWhatWasTakenInHasNoSecondEffect(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	w.gh.Drop("issue_comment", 1)
	_, err := w.gh.Comment(houseRepo, thread.Number, "ada", "/pawl retry")
	w.must(err)
	w.missed(NewCatchUp(w.h, w.store), 1)
	w.handle()
	all := w.gh.Deliveries()
	w.must(w.gh.Redeliver(all[len(all)-1].GUID))
	w.handle()
	if got := w.judged(thread); len(got) != 2 {
		t.Errorf("judged %q, want the retry once", got)
	}
	w.missed(NewCatchUp(w.h, w.store), 0)
}

func TestWhatPawlRefusedIsTakenIn(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	w.serve("another secret of some length")
	_, err := w.gh.Comment(houseRepo, thread.Number, "ada", "/pawl retry")
	w.must(err)
	w.must(w.gh.WaitDelivered(t.Context()))
	if all := w.gh.Deliveries(); all[len(all)-1].StatusCode != http.StatusUnauthorized {
		t.Fatalf("the delivery was answered %d, want 401", all[len(all)-1].StatusCode)
	}
	w.missed(NewCatchUp(w.h, w.store), 1)
	w.handle()
	if got := w.judged(thread); len(got) != 2 || got[1] != "+ /pawl retry" {
		t.Errorf("judged %q, want the retry", got)
	}
}

func TestThePayloadsOfEventsThatPawlDoesNotReadAreNotFetched(t *testing.T) {
	w := newHouse(t)
	w.gh.SetWebhookURL("")
	w.gh.Ping()
	w.gh.Send("package", []byte(`{}`))
	w.gh.Send("star", []byte(`{}`))
	w.must(w.gh.WaitDelivered(t.Context()))
	w.missed(NewCatchUp(w.h, w.store), 0)
	if n := w.gh.Calls()[payloadRoute]; n != 0 {
		t.Errorf("%d payloads were fetched, want none", n)
	}
}

func TestADeliveryThatGitHubCannotGiveHoldsUpNoOther(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	w.handle()
	w.gh.SetWebhookURL("")
	for _, text := range []string{"/pawl retry 1", "/pawl retry 2", "/pawl retry 3"} {
		_, err := w.gh.Comment(houseRepo, thread.Number, "ada", text)
		w.must(err)
	}
	w.must(w.gh.WaitDelivered(t.Context()))
	all := w.gh.Deliveries()
	broken := all[len(all)-2].ID
	w.gh.Inject(fakegithub.Fault{Route: fmt.Sprintf("GET /app/hook/deliveries/%d", broken), Status: 500, Times: -1})
	c := NewCatchUp(w.h, w.store)
	m, err := c.Missed(t.Context())
	if err == nil || m.Taken != 2 || !strings.Contains(err.Error(), all[len(all)-2].GUID) {
		t.Errorf("took in %d, %v; want 2 and the GUID of the third", m.Taken, err)
	}
	w.gh.ClearFaults()
	w.missed(c, 1)
}

func TestALookEndsWhereTheLastOneBegan(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	for i := range 250 {
		_, err := w.gh.Comment(houseRepo, thread.Number, "ada", fmt.Sprint(i))
		w.must(err)
	}
	w.must(w.gh.WaitDelivered(t.Context()))
	c := NewCatchUp(w.h, w.store)
	w.missed(c, 0)
	w.pass(time.Hour)
	_, err := w.gh.Comment(houseRepo, thread.Number, "ada", "newer")
	w.must(err)
	w.must(w.gh.WaitDelivered(t.Context()))
	w.missed(c, 0)
	w.pass(time.Hour)
	w.gh.ResetCalls()
	w.missed(c, 0)
	if n := w.gh.Calls()["GET /app/hook/deliveries"]; n != 1 {
		t.Errorf("%d pages were listed, want 1", n)
	}
}

func TestAMissedPayloadThatCannotBeReadIsKeptUnread(t *testing.T) {
	w := newHouse(t)
	w.gh.SetWebhookURL("")
	w.gh.Send("issues", []byte(`""`))
	w.gh.Send("bad event", []byte(`{}`))
	w.must(w.gh.WaitDelivered(t.Context()))
	w.missed(NewCatchUp(w.h, w.store), 1)
	w.handle()
	list, err := w.store.Deliveries(t.Context(), 10)
	w.must(err)
	for _, d := range list {
		if d.Event == "bad event" || d.Event == "issues" && d.State != solver.Unparsable {
			t.Errorf("%+v, want what a webhook of it would be", d)
		}
	}
}

func TestWatchLooksAtOnceAndEndsWithItsContext(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	w.gh.Lose("issue_comment", 1)
	_, err := w.gh.Comment(houseRepo, thread.Number, "ada", "/pawl retry")
	w.must(err)
	ctx, stop := context.WithCancel(t.Context())
	looked, ended := make(chan struct{}), make(chan struct{})
	var log lockedLog
	w.h.Log = zerolog.New(&log)
	go func() {
		defer close(ended)
		NewCatchUp(w.h, w.store).Watch(ctx, time.Hour, func() { close(looked) })
	}()
	<-log.until("events found that no webhook brought")
	<-looked
	stop()
	<-ended
	w.handle()
	w.newRemarks(thread, "+ /pawl retry")
}

// A delivery says who did something, and the reconciliation may not know.
func TestTheReconciliationWaitsForTheDeliveriesButNotForever(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	w.gh.Drop("issue_comment", 1)
	w.gh.Lose("issue_comment", 1)
	for _, text := range []string{"/pawl retry", "/pawl status"} {
		_, err := w.gh.Comment(houseRepo, thread.Number, "ada", text)
		w.must(err)
	}
	c := NewCatchUp(w.h, w.store)
	c.bounds.quiet = 0
	c.pass(t.Context())
	if got := w.judged(thread); len(got) != 1 {
		t.Errorf("judged %q while a delivery waits, want nothing new", got)
	}
	w.handle()
	c.pass(t.Context())
	w.newRemarks(thread, "+ /pawl retry", "+ /pawl status")

	w.gh.Lose("issue_comment", 1)
	_, err := w.gh.Comment(houseRepo, thread.Number, "ada", "/pawl resume")
	w.must(err)
	w.gh.Send("issues", []byte(`{}`))
	w.must(w.gh.WaitDelivered(t.Context()))
	for range maxPutOff {
		c.pass(t.Context())
	}
	w.newRemarks(thread, "+ /pawl retry", "+ /pawl status")
	c.pass(t.Context())
	w.newRemarks(thread, "+ /pawl retry", "+ /pawl status", "+ /pawl resume")
}

func TestADatabaseThatIsNewDoesNotDoTheOrdersOfTheLastDays(t *testing.T) {
	w := newHouse(t)
	w.gh.SetWebhookURL("")
	n, err := w.gh.OpenIssue(houseRepo, "ada", "A title", "Please.")
	w.must(err)
	old := func() {
		_, err := w.gh.Comment(houseRepo, n, "ada", "/pawl solve")
		w.must(err)
		w.must(w.gh.WaitDelivered(t.Context()))
	}
	old()
	w.pass(2 * time.Hour)
	w.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "new.db"), store.Options{Now: w.now})
	w.must(err)
	defer w.store.Close()
	w.h.Store, w.h.Solver.Store = w.store, w.store
	w.missed(NewCatchUp(w.h, w.store), 0)
	// What comes after the first start is missed, also after a second one.
	w.pass(time.Hour)
	old()
	w.pass(time.Hour)
	w.missed(NewCatchUp(w.h, w.store), 1)
}

func TestPayloadsThatFailHoldUpNoOtherAndAreGivenUpInTheEnd(t *testing.T) {
	w := newHouse(t)
	thread := w.issue("Please.")
	w.gh.SetWebhookURL("")
	const broken = 12
	for i := range broken + 3 {
		_, err := w.gh.Comment(houseRepo, thread.Number, "ada", fmt.Sprint("/pawl retry ", i))
		w.must(err)
	}
	w.must(w.gh.WaitDelivered(t.Context()))
	all := w.gh.Deliveries()
	for _, d := range all[len(all)-broken-3 : len(all)-3] {
		w.gh.Inject(fakegithub.Fault{Route: fmt.Sprintf("GET /app/hook/deliveries/%d", d.ID), Status: 500, Times: -1})
	}
	c := NewCatchUp(w.h, w.store)
	c.bounds.failures = 5
	taken := 0
	for range 3 { // five fail, five others, and then what is left
		m, err := c.Missed(t.Context())
		if err == nil {
			t.Error("a look at broken payloads tells of no error")
		}
		taken += m.Taken
	}
	if taken != 3 {
		t.Errorf("took in %d in three looks, want 3", taken)
	}
	w.pass(keptAtGitHub)
	if m, err := c.Missed(t.Context()); err != nil || m.Gone != broken || len(c.left) != 0 {
		t.Errorf("%d gone, %d left, %v; want %d given up", m.Gone, len(c.left), err, broken)
	}
}

func TestEveryEventThatPawlReadsIsOfUse(t *testing.T) {
	for _, event := range handled {
		if !ofUse(forge.Delivery{Event: event, Action: "completed"}) {
			t.Errorf("a missed %s is left where it is", event)
		}
	}
	if ofUse(forge.Delivery{Event: "check_run", Action: "created"}) || ofUse(forge.Delivery{Event: "ping"}) {
		t.Error("what says nothing is fetched")
	}
}

// lockedLog waits for a line.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
	line string
	met  chan struct{}
}

// until is closed when a line with that text has been written.
func (l *lockedLog) until(line string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line, l.met = line, make(chan struct{})
	l.look()
	return l.met
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	l.look()
	return len(p), nil
}

func (l *lockedLog) look() {
	if l.met != nil && l.line != "" && strings.Contains(l.text.String(), l.line) {
		close(l.met)
		l.line = ""
	}
}
