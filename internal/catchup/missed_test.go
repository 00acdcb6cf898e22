package catchup

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
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

const payloadRoute = "GET /app/hook/deliveries/{id}"

// Pawl stores only the last 70 hours of the three days that GitHub lists. The reconciliation finds the first events of
// a 71-hour outage.
func TestMissedEventsOf71HoursAreFoundOnce(t *testing.T) {
	needs.All(t, "an outage of 71 hours")
	w := newHouse(t)
	var threads []thread.ID
	for range 10 {
		threads = append(threads, w.Issue("Please."))
	}
	const missed, outage = 500, 71 * time.Hour
	w.GitHub.SetWebhookURL("http://127.0.0.1:1/")
	want := map[thread.ID][]string{} // in the order of storage
	late := map[thread.ID][]string{} // later, from the reconciliation
	within := 0
	for i := range missed {
		issue := threads[i%len(threads)]
		w.Pass(outage / missed)
		text := fmt.Sprintf("/pawl retry %d", i)
		_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", text)
		w.Must(err)
		w.Must(w.GitHub.WaitDelivered(t.Context()))
		if outage-time.Duration(i+1)*outage/missed < lookBack {
			want[issue] = append(want[issue], "+ "+text)
			within++
		} else {
			late[issue] = append(late[issue], "+ "+text)
		}
	}
	// The first webhook after the outage must not hide missed deliveries.
	w.GitHub.SetWebhookURL(w.Hook)
	_, err := w.GitHub.Comment(houseRepo, threads[0].Number, "ada", "/pawl retry live")
	w.Must(err)
	w.Handle()
	c := w.watcher()
	w.missed(c, within)
	w.missed(c, 0)
	w.missed(w.watcher(), 0)
	w.Handle()
	w.reconciled(c, missed-within)
	w.reconciled(c, 0)
	w.reconciled(w.watcher(), 0)
	for _, issue := range threads {
		got := w.Judged(issue)[1:]
		if issue == threads[0] && (len(got) == 0 || got[0] != "+ /pawl retry live") {
			t.Fatalf("%s: judged %q, want the live one first", issue, got)
		} else if issue == threads[0] {
			got = got[1:]
		}
		if diff := cmp.Diff(append(want[issue], late[issue]...), got); diff != "" {
			t.Errorf("%s: judged in this order (-want +got)\n%s", issue, diff)
		}
	}
	if missed-within == 0 {
		t.Error("the deliveries contained every event")
	}
}

func TestRedeliveryHasNoSecondEffect(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	w.GitHub.Drop("issue_comment", 1)
	_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "/pawl retry")
	w.Must(err)
	w.missed(w.watcher(), 1)
	w.Handle()
	all := w.GitHub.Deliveries()
	w.Must(w.GitHub.Redeliver(all[len(all)-1].GUID))
	w.Handle()
	if got := w.Judged(issue); len(got) != 2 {
		t.Errorf("judged %q, want the retry once", got)
	}
	w.missed(w.watcher(), 0)
}

func TestDeliveriesRefusedByPawlAreStored(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	w.serve("another secret of some length")
	_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "/pawl retry")
	w.Must(err)
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	if all := w.GitHub.Deliveries(); all[len(all)-1].StatusCode != http.StatusUnauthorized {
		t.Fatalf("the delivery was answered %d, want 401", all[len(all)-1].StatusCode)
	}
	w.missed(w.watcher(), 1)
	w.Handle()
	if got := w.Judged(issue); len(got) != 2 || got[1] != "+ /pawl retry" {
		t.Errorf("judged %q, want the retry", got)
	}
}

func TestUnreadPayloadsAreNotFetched(t *testing.T) {
	w := newHouse(t)
	w.GitHub.SetWebhookURL("")
	w.GitHub.Ping()
	w.GitHub.Send("package", []byte(`{}`))
	w.GitHub.Send("star", []byte(`{}`))
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	w.missed(w.watcher(), 0)
	if n := w.GitHub.Calls()[payloadRoute]; n != 0 {
		t.Errorf("%d payloads were fetched, want none", n)
	}
}

func TestUnavailableDeliveryBlocksNoOther(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	w.Handle()
	w.GitHub.SetWebhookURL("")
	for _, text := range []string{"/pawl retry 1", "/pawl retry 2", "/pawl retry 3"} {
		_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", text)
		w.Must(err)
	}
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	all := w.GitHub.Deliveries()
	broken := all[len(all)-2].ID
	w.GitHub.Inject(fakegithub.Fault{Route: fmt.Sprintf("GET /app/hook/deliveries/%d", broken), Status: 500, Times: -1})
	c := w.watcher()
	m, err := c.Missed(t.Context())
	if err == nil || m.Taken != 2 || !strings.Contains(err.Error(), all[len(all)-2].GUID) {
		t.Errorf("took in %d, %v; want 2 and the GUID of the third", m.Taken, err)
	}
	w.GitHub.ClearFaults()
	w.missed(c, 1)
}

func TestFailedListIsNotCounted(t *testing.T) {
	w := newHouse(t)
	c, listed := w.watcher(), 0
	c.Listed = func() { listed++ }
	w.missed(c, 0)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := c.Missed(ended); err == nil || listed != 1 {
		t.Errorf("%d lists are counted, want one: %v", listed, err)
	}
}

func TestLookEndsWhereThePreviousOneBegan(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	for i := range 250 {
		_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", fmt.Sprint(i))
		w.Must(err)
	}
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	c := w.watcher()
	w.missed(c, 0)
	w.Pass(time.Hour)
	_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "newer")
	w.Must(err)
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	w.missed(c, 0)
	w.Pass(time.Hour)
	w.GitHub.ResetCalls()
	w.missed(c, 0)
	if n := w.GitHub.Calls()["GET /app/hook/deliveries"]; n != 1 {
		t.Errorf("%d pages were listed, want 1", n)
	}
}

func TestUnparsableMissedPayloadIsKept(t *testing.T) {
	w := newHouse(t)
	w.GitHub.SetWebhookURL("")
	w.GitHub.Send("issues", []byte(`""`))
	w.GitHub.Send("bad event", []byte(`{}`))
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	w.missed(w.watcher(), 1)
	w.Handle()
	list, err := w.Store.Deliveries(t.Context(), 10)
	w.Must(err)
	for _, d := range list {
		if d.Event == "bad event" || d.Event == "issues" && d.State != thread.Unparsable {
			t.Errorf("%+v, want the delivery as its webhook would store it", d)
		}
	}
}

func TestWatchLooksAtOnceAndEndsWithItsContext(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	w.GitHub.Lose("issue_comment", 1)
	_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "/pawl retry")
	w.Must(err)
	ctx, stop := context.WithCancel(t.Context())
	looked, ended := make(chan struct{}), make(chan struct{})
	var log lockedLog
	w.h.Log = zerolog.New(&log)
	go func() {
		defer close(ended)
		w.watcher().Watch(ctx, func() { close(looked) })
	}()
	<-log.until("found events that no webhook delivered")
	<-looked
	stop()
	<-ended
	w.Handle()
	w.newRemarks(issue, "+ /pawl retry")
}

// A delivery names the user; the reconciliation may not know the user.
func TestReconciliationWaitsOnceForDeliveries(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	w.GitHub.Drop("issue_comment", 1)
	w.GitHub.Lose("issue_comment", 1)
	for _, text := range []string{"/pawl retry", "/pawl status"} {
		_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", text)
		w.Must(err)
	}
	c := w.watcher()
	c.bounds.quiet = 0
	c.look(t.Context())
	if got := w.Judged(issue); len(got) != 1 {
		t.Errorf("judged %q while a delivery waits, want nothing new", got)
	}
	w.Handle()
	c.look(t.Context())
	w.newRemarks(issue, "+ /pawl retry", "+ /pawl status")

	w.GitHub.Lose("issue_comment", 1)
	_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "/pawl resume")
	w.Must(err)
	w.GitHub.Send("issues", []byte(`{}`))
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	c.look(t.Context())
	w.newRemarks(issue, "+ /pawl retry", "+ /pawl status")
	c.look(t.Context())
	w.newRemarks(issue, "+ /pawl retry", "+ /pawl status", "+ /pawl resume")
}

func TestNewDatabaseRunsNoOldCommands(t *testing.T) {
	w := newHouse(t)
	w.GitHub.SetWebhookURL("")
	n, err := w.GitHub.OpenIssue(houseRepo, "ada", "A title", "Please.")
	w.Must(err)
	old := func() {
		_, err := w.GitHub.Comment(houseRepo, n, "ada", "/pawl solve")
		w.Must(err)
		w.Must(w.GitHub.WaitDelivered(t.Context()))
	}
	old()
	w.Pass(2 * time.Hour)
	w.Store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "new.db"), store.Options{Now: w.Now})
	w.Must(err)
	defer w.Store.Close()
	w.h.Store, w.h.Solver.Env.Store = w.Store, w.Store
	w.missed(w.watcher(), 0)
	// Deliveries after the first start count as missed, even after a second start.
	w.Pass(time.Hour)
	old()
	w.Pass(time.Hour)
	w.missed(w.watcher(), 1)
}

func TestFailingPayloadsBlockNoOther(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	w.GitHub.SetWebhookURL("")
	const broken = 12
	for i := range broken + 3 {
		_, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", fmt.Sprint("/pawl retry ", i))
		w.Must(err)
	}
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	all := w.GitHub.Deliveries()
	for _, d := range all[len(all)-broken-3 : len(all)-3] {
		w.GitHub.Inject(fakegithub.Fault{Route: fmt.Sprintf("GET /app/hook/deliveries/%d", d.ID), Status: 500, Times: -1})
	}
	c := w.watcher()
	c.bounds.failures = 5
	taken := 0
	for range 3 { // five fail, then five others, then the rest
		m, err := c.Missed(t.Context())
		if err == nil {
			t.Error("a look at broken payloads returned no error")
		}
		taken += m.Taken
	}
	if taken != 3 {
		t.Errorf("took in %d in three looks, want 3", taken)
	}
	w.Pass(keptAtGitHub)
	if m, err := c.Missed(t.Context()); err != nil || m.Gone != broken || len(c.left) != 0 {
		t.Errorf("%d gone, %d left, %v; want %d given up", m.Gone, len(c.left), err, broken)
	}
}

// lockedLog is a log in which a test can wait for a line.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
	line string
	met  chan struct{}
}

// until returns a channel that closes once a line with the text has been written.
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
