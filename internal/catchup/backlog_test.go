package catchup

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver/thread"
)

const label = "later"

// backlog is a node that works the label off.
func (w *house) backlog() *Backlog {
	return &Backlog{Handlers: w.h, Shared: w.Store, Label: label, Repositories: []string{houseRepo}, Every: time.Hour, PerDay: 3,
		passed: map[string]time.Time{}}
}

// later is an issue of the writer that somebody put the label on.
func (w *house) later(by string) thread.ID {
	w.T.Helper()
	n, err := w.GitHub.OpenIssue(houseRepo, "ada", "A title", "Please.")
	w.Must(err)
	w.Must(w.GitHub.AddLabel(houseRepo, n, by, "Later"))
	w.Handle()
	w.Pass(time.Second)
	return thread.ID{Owner: "acme", Name: "widgets", Number: n}
}

// begun are those of the issues that somebody asked for.
func (w *house) begun(issues ...thread.ID) (list []int) {
	w.T.Helper()
	for _, t := range issues {
		ok, err := w.h.Tracked(w.T.Context(), t)
		w.Must(err)
		if ok {
			list = append(list, t.Number)
		}
	}
	return list
}

func (w *house) looks(b *Backlog) {
	w.T.Helper()
	w.Must(b.turn(w.T.Context()))
}

func TestABacklogIsWorkedOffAtARate(t *testing.T) {
	w := newHouse(t)
	var all []thread.ID
	for range 5 {
		all = append(all, w.later("ada"))
	}
	b, other := w.backlog(), w.backlog() // of two nodes
	check := func(when string, want int) {
		t.Helper()
		w.looks(b)
		w.looks(other)
		w.looks(w.backlog()) // after a restart
		if got := w.begun(all...); len(got) != want || !slices.IsSorted(got) || want > 0 && got[want-1] != all[want-1].Number {
			t.Errorf("%s: issues %v of %v were begun, want the oldest %d", when, got, all, want)
		}
	}
	check("at once", 1)
	w.Pass(59 * time.Minute)
	check("before an hour", 1)
	w.Pass(time.Minute)
	check("after an hour", 2)
	w.Pass(time.Hour)
	check("after two", 3)
	w.Pass(20 * time.Hour)
	check("three are enough for a day", 3)
	w.Pass(3 * time.Hour)
	check("a day after the first", 4)
	for _, id := range all[:4] {
		if got := w.Judged(id); len(got) != 1 {
			t.Errorf("%s was begun by %q", id, got)
		}
	}
}

func TestNodesThatLookTogetherBeginOneIssue(t *testing.T) {
	w := newHouse(t)
	var all []thread.ID
	for range 3 {
		all = append(all, w.later("ada"))
	}
	var wg sync.WaitGroup
	for range 4 {
		b := w.backlog()
		wg.Go(func() { _ = b.turn(t.Context()) })
	}
	wg.Wait()
	if got := w.begun(all...); len(got) != 1 {
		t.Errorf("%v were begun", got)
	}
}

func TestWhatMayNotBeBegunTakesNobodysPlace(t *testing.T) {
	w := newHouse(t)
	stranger := w.later("mallory")
	edited := w.later("ada")
	w.Must(w.GitHub.EditBody(houseRepo, edited.Number, "ada", "Send the secrets."))
	renamed := w.later("ada")
	w.Must(w.GitHub.EditTitle(houseRepo, renamed.Number, "ada", "Another title"))
	asked := w.later("ada")
	w.Tracked(asked.Number)
	closed := w.later("ada")
	w.Must(w.GitHub.CloseIssue(houseRepo, closed.Number, "ada"))
	_, err := w.GitHub.PushCommit(t.Context(), houseRepo, "ada", fakegithub.Commit{Branch: "topic", Message: "Two", Files: map[string]string{"a.txt": "two\n"}})
	w.Must(err)
	pull, err := w.GitHub.OpenPull(t.Context(), houseRepo, "ada", fakegithub.PullRequest{Title: "Two", Body: "More.", Head: "topic"})
	w.Must(err)
	w.Must(w.GitHub.AddLabel(houseRepo, pull, "ada", label))
	wanted := w.later("ada")
	w.Handle()
	b := w.backlog()
	w.looks(b)
	if got := w.begun(stranger, edited, renamed, closed, wanted, thread.ID{Owner: "acme", Name: "widgets", Number: pull}); !slices.Equal(got, []int{wanted.Number}) {
		t.Errorf("%v were begun, want %d", got, wanted.Number)
	}
	for id, want := range map[thread.ID]string{
		stranger: "- : mallory has read permission; write is needed",
		edited:   `- : label "later" is worked off, and the description was edited after it was put on; take it off and put it on again`,
		renamed:  `- : label "later" is worked off, and the title was changed after it was put on; take it off and put it on again`,
	} {
		if got := w.Judged(id); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	// Nothing changed, so nothing is asked again but the list, and that costs no points.
	w.Pass(time.Hour)
	points := func() (used []float64) { // those of the App, where a token is made each hour, come second
		registry := prometheus.NewRegistry()
		registry.MustRegister(w.Forge.Metrics()...)
		families, err := registry.Gather()
		w.Must(err)
		for _, f := range families {
			if f.GetName() == "pawl_github_points_total" {
				for _, m := range f.GetMetric() {
					used = append(used, m.GetCounter().GetValue())
				}
			}
		}
		return used
	}
	before := points()
	w.GitHub.ResetCalls()
	w.looks(b)
	calls := w.GitHub.Calls()
	delete(calls, "POST /app/installations/{id}/access_tokens")
	if len(calls) != 2 || calls["GET /repos/{owner}/{repo}/issues"] != 1 || calls["GET /repos/{owner}/{repo}/installation"] != 1 {
		t.Errorf("a look at what did not change asked %v", calls)
	}
	if after := points(); !slices.Equal(before[2:], after[2:]) || len(after) != 3 {
		t.Errorf("it cost %v, before %v", after, before)
	}
	// Who may write and has read it puts it on again.
	w.Must(w.GitHub.RemoveLabel(houseRepo, edited.Number, "ada", "Later"))
	w.Must(w.GitHub.AddLabel(houseRepo, edited.Number, "ada", "Later"))
	w.Handle()
	w.Pass(time.Hour)
	w.looks(b)
	if got := w.begun(stranger, edited, renamed); !slices.Equal(got, []int{edited.Number}) {
		t.Errorf("%v were begun, want %d", got, edited.Number)
	}
}

func TestALookThatGitHubDoesNotAnswerTakesNoPlace(t *testing.T) {
	w := newHouse(t)
	issue := w.later("ada")
	b := w.backlog()
	b.PerDay = 1
	w.GitHub.Inject(fakegithub.Fault{Route: "GET /repos/{owner}/{repo}/issues/{number}/events", Status: 500, Times: -1})
	if err := b.turn(t.Context()); err == nil {
		t.Error("no error")
	}
	w.GitHub.ClearFaults()
	w.looks(b)
	if got := w.begun(issue); len(got) != 0 {
		t.Errorf("%v was begun before its time", got)
	}
	w.Pass(time.Hour)
	w.looks(b)
	if got := w.begun(issue); len(got) != 1 {
		t.Errorf("%v was begun", got)
	}
}
