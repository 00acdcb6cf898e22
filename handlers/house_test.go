package handlers

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

const houseRepo = "acme/widgets"

// house is the real ingress, handlers and SQLite store in front of a fake GitHub.
// Nothing works off the queue: handle does, when the test asks for it.
type house struct {
	t      *testing.T
	gh     *fakegithub.Server
	store  *store.Store
	h      *Handlers
	hook   string
	offset atomic.Int64
}

func newHouse(t *testing.T) *house {
	t.Helper()
	w := &house{t: t}
	var err error
	w.gh, err = fakegithub.New(fakegithub.Options{WebhookSecret: vectorSecret, Now: w.now})
	w.must(err)
	t.Cleanup(func() { w.must(w.gh.Close()) })
	w.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{Now: w.now})
	w.must(err)
	t.Cleanup(func() { w.must(w.store.Close()) })
	client, err := forge.New(forge.Config{
		WebURL: w.gh.WebURL(), APIURL: w.gh.APIURL(), AppID: 1, PrivateKey: w.gh.PrivateKeyPEM(), Now: w.now,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	w.must(err)
	w.h = &Handlers{Store: w.store, Forge: client, Now: w.now, Solver: &solver.Solver{Store: w.store, Forge: client, Now: w.now}}
	w.serve(vectorSecret)
	w.must(w.gh.AddRepo(t.Context(), houseRepo, map[string]string{"a.txt": "one\n"}))
	w.must(w.gh.AddUser("ada", 1001, map[string]string{houseRepo: "write"}))
	w.must(w.gh.AddUser("mallory", 1002, map[string]string{houseRepo: "read"}))
	w.must(w.gh.Install(houseRepo))
	w.handle()
	return w
}

func (w *house) now() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) }

// pass lets time go by.
func (w *house) pass(d time.Duration) { w.offset.Add(int64(d)) }

func (w *house) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// serve answers webhooks that are signed with a secret.
func (w *house) serve(secret string) {
	w.t.Helper()
	in, err := NewIngress([]string{secret}, w.store, w.now, zerolog.Nop())
	w.must(err)
	srv := httptest.NewServer(in)
	w.t.Cleanup(srv.Close)
	w.hook = srv.URL
	w.gh.SetWebhookURL(w.hook)
}

// handle does the work of the queue: each delivery that was stored and not
// handled.
func (w *house) handle() {
	w.t.Helper()
	w.must(w.gh.WaitDelivered(w.t.Context()))
	list, err := w.store.Deliveries(w.t.Context(), 5000)
	w.must(err)
	for _, d := range slices.Backward(list) {
		w.must(w.h.Deliver(w.t.Context(), d))
	}
}

// tracked is a thread that the writer asked Pawl to work on, and on which a run
// has ended.
func (w *house) tracked(number int) solver.Thread {
	w.t.Helper()
	_, err := w.gh.Comment(houseRepo, number, "ada", "/pawl solve")
	w.must(err)
	w.handle()
	t := solver.Thread{Owner: "acme", Name: "widgets", Number: number}
	_, err = w.store.Append(w.t.Context(), t, false, solver.NewEvent{Kind: solver.KindDecision, At: w.now(),
		Data: solver.Decided{Decision: policy.Decision{Action: policy.DoDone, Rule: "done"}, Seen: 1}})
	w.must(err)
	w.pass(time.Second)
	return t
}

func (w *house) issue(body string) solver.Thread {
	w.t.Helper()
	n, err := w.gh.OpenIssue(houseRepo, "ada", "A title", body)
	w.must(err)
	return w.tracked(n)
}

// pull is a tracked pull request of the writer.
func (w *house) pull() solver.Thread {
	w.t.Helper()
	_, err := w.gh.PushCommit(w.t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: "topic", Message: "Two", Files: map[string]string{"a.txt": "two\n"}})
	w.must(err)
	n, err := w.gh.OpenPull(w.t.Context(), houseRepo, "ada", fakegithub.PullRequest{Title: "Two lines", Body: "More.", Head: "topic"})
	w.must(err)
	return w.tracked(n)
}

func (w *house) log(t solver.Thread) []solver.Event {
	w.t.Helper()
	events, err := w.store.Events(w.t.Context(), t, 0)
	w.must(err)
	return events
}

// judged are the remarks of a log, as "+ text" or "- text: reason".
func (w *house) judged(t solver.Thread) []string {
	w.t.Helper()
	var list []string
	for _, e := range w.log(t) {
		for _, f := range remarks([]solver.Event{e}) {
			text, _, _ := strings.Cut(f.Raw, "\n")
			if e.Kind == solver.KindIgnored {
				list = append(list, "- "+text+": "+f.Reason)
			} else {
				list = append(list, "+ "+text)
			}
		}
	}
	return list
}

// changes are the changes of a log, as "what by whom #number".
func (w *house) changes(t solver.Thread) []solver.Change {
	w.t.Helper()
	var list []solver.Change
	for _, e := range w.log(t) {
		if e.Kind == solver.KindThread {
			var c solver.Change
			w.must(json.Unmarshal(e.Data, &c))
			c.Snapshot, c.Delivery = nil, ""
			list = append(list, c)
		}
	}
	return list
}
