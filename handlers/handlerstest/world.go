// Package handlerstest sets up tests of handlers and internal/catchup. It has a repository on a fake GitHub, a client,
// an SQLite store, and a clock that the test moves. It does not import handlers, whose own tests use it.
package handlerstest

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

const (
	// Repo is a repository that ada may write to and mallory may read.
	Repo = "acme/widgets"
	// Secret signs webhooks.
	Secret = "a secret of sixteen bytes or more"
)

// World is the repository with its environment. Only Handle handles deliveries.
type World struct {
	T      *testing.T
	GitHub *fakegithub.Server
	Store  *store.Store
	Forge  *forge.Client
	// Deliver handles one delivery; New's caller sets it.
	Deliver func(context.Context, thread.Delivery) error
	Hook    string // the webhooks' URL

	began  time.Time    // a whole second
	offset atomic.Int64 // time passed since then
}

// New returns a World without the repository. Call Serve and Install next.
func New(t *testing.T) *World {
	t.Helper()
	w := &World{T: t, began: time.Now().Truncate(time.Second)}
	var err error
	w.GitHub, err = fakegithub.New(fakegithub.Options{WebhookSecret: Secret, Now: w.Now})
	w.Must(err)
	t.Cleanup(func() { w.Must(w.GitHub.Close()) })
	w.Store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{Now: w.Now})
	w.Must(err)
	t.Cleanup(func() { w.Must(w.Store.Close()) })
	w.Forge = w.Client()
	return w
}

func (w *World) Client() *forge.Client {
	w.T.Helper()
	client, err := forge.New(forge.Config{
		WebURL: w.GitHub.WebURL(), APIURL: w.GitHub.APIURL(), AppID: 1, PrivateKey: w.GitHub.PrivateKeyPEM(), Now: w.Now,
		Sleep: w.sleep,
	})
	w.Must(err)
	return client
}

// Serve starts a server for webhooks.
func (w *World) Serve(hook http.Handler) {
	w.T.Helper()
	srv := httptest.NewServer(hook)
	w.T.Cleanup(srv.Close)
	w.Hook = srv.URL
	w.GitHub.SetWebhookURL(w.Hook)
}

// Install creates the repository and installs the App. It handles the webhooks.
func (w *World) Install() {
	w.T.Helper()
	w.Must(w.GitHub.AddRepo(w.T.Context(), Repo, map[string]string{"a.txt": "one\n"}))
	w.Must(w.GitHub.AddUser("ada", 1001, map[string]string{Repo: "write"}))
	w.Must(w.GitHub.AddUser("mallory", 1002, map[string]string{Repo: "read"}))
	w.Must(w.GitHub.Install(Repo))
	w.Handle()
}

// Now advances the clock by a microsecond, so no two events have the same time. The second changes only when the test
// calls Pass, because GitHub's dates are whole seconds.
func (w *World) Now() time.Time {
	return w.began.Add(time.Duration(w.offset.Add(int64(time.Microsecond))))
}

// sleep lets time pass without waiting.
func (w *World) sleep(ctx context.Context, d time.Duration) error {
	w.Pass(d)
	return ctx.Err()
}

// Pass advances the clock.
func (w *World) Pass(d time.Duration) { w.offset.Add(int64(d)) }

func (w *World) Must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Handle handles each stored delivery.
func (w *World) Handle() {
	w.T.Helper()
	w.Must(w.GitHub.WaitDelivered(w.T.Context()))
	list, err := w.Store.Deliveries(w.T.Context(), 5000)
	w.Must(err)
	for _, d := range slices.Backward(list) {
		w.Must(w.Deliver(w.T.Context(), d))
	}
}

// Tracked returns a thread that ada asked Pawl to work on, after a finished run.
func (w *World) Tracked(number int) thread.ID {
	w.T.Helper()
	_, err := w.GitHub.Comment(Repo, number, "ada", "/pawl solve")
	w.Must(err)
	w.Handle()
	t := thread.ID{Owner: "acme", Name: "widgets", Number: number}
	_, err = w.Store.Append(w.T.Context(), t, false, thread.NewEvent{Kind: thread.KindDecision, At: w.Now(),
		Data: thread.Decided{Decision: policy.Decision{Action: policy.DoDone, Rule: "done"}, Seen: 1}})
	w.Must(err)
	w.Pass(time.Second)
	return t
}

// Writes posts a comment and handles it.
func (w *World) Writes(on int, who, text string) (id int64) {
	w.T.Helper()
	id, err := w.GitHub.Comment(Repo, on, who, text)
	w.Must(err)
	w.Handle()
	return id
}

// Opened opens ada's issue and handles it.
func (w *World) Opened(body string, labels ...string) thread.ID {
	w.T.Helper()
	n, err := w.GitHub.OpenIssue(Repo, "ada", "A title", body, labels...)
	w.Must(err)
	w.Handle()
	return thread.ID{Owner: "acme", Name: "widgets", Number: n}
}

// Issue opens a tracked issue by ada.
func (w *World) Issue(body string) thread.ID {
	w.T.Helper()
	return w.Tracked(w.Opened(body).Number)
}

// Pull opens a tracked pull request by ada.
func (w *World) Pull() thread.ID {
	w.T.Helper()
	_, err := w.GitHub.PushCommit(w.T.Context(), Repo, "ada", fakegithub.Commit{Branch: "topic", Message: "Two", Files: map[string]string{"a.txt": "two\n"}})
	w.Must(err)
	n, err := w.GitHub.OpenPull(w.T.Context(), Repo, "ada", fakegithub.PullRequest{Title: "Two lines", Body: "More.", Head: "topic"})
	w.Must(err)
	return w.Tracked(n)
}

func (w *World) Log(t thread.ID) []thread.Event {
	w.T.Helper()
	events, err := w.Store.Events(w.T.Context(), t, 0)
	w.Must(err)
	return events
}

// Judged lists a log's remarks as "+ text" or "- text: reason".
func (w *World) Judged(t thread.ID) []string {
	w.T.Helper()
	var list []string
	for _, e := range w.Log(t) {
		if !slices.Contains([]thread.Kind{thread.KindFeedback, thread.KindIgnored, thread.KindControl, thread.KindQuestion}, e.Kind) {
			continue
		}
		var f thread.Feedback
		w.Must(json.Unmarshal(e.Data, &f))
		text, _, _ := strings.Cut(f.Raw, "\n")
		if e.Kind == thread.KindIgnored {
			list = append(list, "- "+text+": "+f.Reason)
		} else {
			list = append(list, "+ "+text)
		}
	}
	return list
}

// Verdicts lists others' remarks on a thread in order: "+ reason" if acted on, "- reason" if ignored or withdrawn.
func Verdicts(s thread.State) (list []string) {
	all := slices.Clone(s.Feedback)
	for _, f := range s.Ignored {
		if !f.Own {
			all = append(all, thread.Request{Feedback: f, Withdrawn: f.Reason})
		}
	}
	slices.SortFunc(all, func(a, b thread.Request) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range all {
		if r.Withdrawn != "" {
			list = append(list, "- "+r.Withdrawn)
		} else {
			list = append(list, "+ "+r.Reason)
		}
	}
	return list
}

// Changes lists a log's changes without their sources.
func (w *World) Changes(t thread.ID) []thread.Change {
	w.T.Helper()
	var list []thread.Change
	for _, e := range w.Log(t) {
		if e.Kind == thread.KindThread {
			var c thread.Change
			w.Must(json.Unmarshal(e.Data, &c))
			c.Snapshot, c.Delivery = nil, ""
			list = append(list, c)
		}
	}
	return list
}
