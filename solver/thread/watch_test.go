package thread

import (
	"slices"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

func command(made int, name string) Feedback {
	by := feedback.Actor{ID: 1, Login: "ada", Type: "User"}
	return Feedback{Source: policy.FromComment, By: by, Command: name, MadeAt: second(made), Snapshot: &Details{Pull: true, HeadSHA: "c0"}}
}

// watchedLog returns the log of a watched pull request.
func watchedLog(t *testing.T) (log arrivals) {
	t.Helper()
	log.add(t, KindControl, command(1, "watch"))
	log.add(t, KindWatched, Watched{Rounds: 5})
	return log
}

func TestLaterOfWatchAndUnwatchCounts(t *testing.T) {
	for _, c := range []struct {
		made     map[string]int
		watching bool
	}{
		{map[string]int{"watch": 1, "unwatch": 2}, false},
		{map[string]int{"watch": 2, "unwatch": 1}, true},
	} {
		for _, order := range [][]string{{"watch", "unwatch"}, {"unwatch", "watch"}} {
			var log arrivals
			for _, name := range order {
				log.add(t, KindControl, command(c.made[name], name))
			}
			if got := log.fold(t).Watching(); got != c.watching {
				t.Errorf("%v, made at %v: watching is %t", order, c.made, got)
			}
		}
	}
}

func TestChangesEndAWatch(t *testing.T) {
	for what, ended := range map[string]string{
		"closed": "the thread was closed by ada", "merged": "the pull request was merged by ada", "drafted": "the pull request was converted to a draft by ada",
		"uninstalled": "the App was uninstalled or lost access to the repository", "branch_deleted": "branch feature was deleted by ada",
		"head_moved": "", "base_moved": "", "approved": "",
	} {
		log := watchedLog(t)
		log.add(t, KindFeedback, Feedback{Source: policy.FromCheckRun, SHA: "c0"})
		detail := map[string]string{"branch_deleted": "feature", "head_moved": "c1"}[what]
		log.add(t, KindThread, Change{What: what, By: "ada", Detail: detail})
		s := log.fold(t)
		if s.Watch.Ended != ended || s.Watching() != (ended == "") {
			t.Errorf("%s: ended because %q, want %q", what, s.Watch.Ended, ended)
		}
		if pending := len(s.Pending()) > 0; pending != (what == "base_moved" || what == "approved") {
			t.Errorf("%s: the request of the watch is pending: %t", what, pending)
		}
	}
}

func TestAWatchIsDueAfterWhatConcernsItsHead(t *testing.T) {
	for name, c := range map[string]struct {
		kind Kind
		data any
		due  bool
	}{
		"a result on the head":       {KindIgnored, Feedback{Source: policy.FromCheckRun, Check: "unit", Conclusion: "success", SHA: "c0"}, true},
		"a result on another commit": {KindIgnored, Feedback{Source: policy.FromCheckRun, Check: "unit", Conclusion: "success", SHA: "c9"}, false},
		"a comment":                  {KindIgnored, Feedback{Source: policy.FromComment}, false},
		"a new head":                 {KindThread, Change{What: "head_moved", By: "ada", Detail: "c1", Snapshot: &Details{HeadSHA: "c1"}}, true},
		"an approval":                {KindThread, Change{What: "approved", By: "ada"}, true},
		"a dismissal":                {KindThread, Change{What: "dismissed", By: "ada"}, true},
		"a push to the base":         {KindThread, Change{What: "base_moved", By: "ada", Detail: "b1"}, true},
		"another request to watch":   {KindControl, command(9, "watch"), true},
	} {
		log := watchedLog(t)
		due := func(s State) bool {
			is, _ := s.WatchDue(second(1000), 10*time.Minute)
			return is
		}
		if !due(log.fold(t)) {
			t.Fatal("a new watch is not due")
		}
		log.add(t, KindWatched, Watched{SHA: "c0", Seen: 2})
		if s := log.fold(t); due(s) || !s.Ready() {
			t.Fatal("a watch is due after its look, or not ready")
		}
		stopped := log.fold(t)
		stopped.Decision = &Decided{Decision: policy.Decision{Action: policy.DoAsk}, Seen: stopped.Watch.Looked.Seen + 1}
		if stopped.Ready() {
			t.Error("ready while an agent's question waits")
		}
		log.add(t, c.kind, c.data)
		log[len(log)-1].At = second(len(log))
		if is, _ := log.fold(t).WatchDue(second(5), 10*time.Minute); is && name == "a push to the base" {
			t.Errorf("%s: due before the end of the interval", name)
		}
		if got := due(log.fold(t)); got != c.due {
			t.Errorf("%s: due is %t", name, got)
		}
	}
}

func TestEndOfAWatchWithdrawsWhatItAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		events func(log *arrivals)
		work   int  // requests that still ask for work
		tracks bool // Pawl still listens
	}{
		"a finding that waits": {func(log *arrivals) {
			log.add(t, KindFeedback, Feedback{Source: policy.FromCheckRun, SHA: "c0"})
			log.add(t, KindControl, command(9, "unwatch"))
		}, 0, false},
		"a failed round": {func(log *arrivals) {
			log.round(t, policy.VerifyFailed)
			log.add(t, KindControl, command(9, "unwatch"))
		}, 0, false},
		"a failed round that the user had go on": {func(log *arrivals) {
			log.round(t, policy.VerifyFailed)
			log.add(t, KindFeedback, command(3, "resume"))
			log.add(t, KindControl, command(9, "unwatch"))
		}, 0, false},
		"a round that runs": {func(log *arrivals) {
			log.round(t, "")
			log.add(t, KindControl, command(9, "unwatch"))
		}, 1, false},
		"a round that ran then": {func(log *arrivals) {
			log.round(t, "")
			log.add(t, KindControl, command(9, "unwatch"))
			log.ends(t, policy.Receipt{N: 1, Outcome: policy.VerifyFailed})
		}, 0, false},
		"a round that was handed over": {func(log *arrivals) {
			log.round(t, "")
			log.add(t, KindControl, command(9, "unwatch"))
			log.add(t, KindUnfinished, Unfinished{N: 1, Orderly: true, Times: 1})
		}, 0, false},
		"a user's own request": {func(log *arrivals) {
			log.round(t, policy.VerifyFailed)
			log.add(t, KindFeedback, command(3, "solve"))
			log.add(t, KindControl, command(9, "unwatch"))
		}, 1, true},
	} {
		log := watchedLog(t)
		c.events(&log)
		s := log.fold(t)
		if got := len(s.Work(policy.ToChange)); got != c.work || s.Tracked() != c.tracks {
			t.Errorf("%s: %d requests are left, want %d; tracked: %t", name, got, c.work, s.Tracked())
		}
		if s.CheckedHead() != "" && !c.tracks {
			t.Errorf("%s: the checks of %s still matter", name, s.CheckedHead())
		}
		if _, running := s.Running(); running || c.work > 0 || len(s.Attempts) == 0 {
			continue
		}
		if s.Facts(second(10)).Watch.Ended != "ada ended the watch" {
			t.Errorf("%s: policy does not know that the watch ended", name)
		}
	}
}

// round logs a watch's round that pushed work for a failing check. Without an outcome the round is still running.
func (log *arrivals) round(t *testing.T, outcome policy.Outcome) {
	log.add(t, KindFeedback, Feedback{Source: policy.FromCheckRun, SHA: "c0"})
	log.add(t, KindAttemptStarted, Started{N: 1, Run: 1, Seen: 99, Decision: policy.Decision{Round: 1}})
	if outcome != "" {
		log.ends(t, policy.Receipt{N: 1, Outcome: outcome, Pushed: true, Commit: "c1"})
	}
}

// ends logs the end of an attempt with a time. Without the time the attempt would count as running.
func (log *arrivals) ends(t *testing.T, r policy.Receipt) {
	log.add(t, KindAttemptEnded, r)
	(*log)[len(*log)-1].At = second(len(*log))
}

func TestCancelledRoundReturnsItsReviews(t *testing.T) {
	log := watchedLog(t)
	log.add(t, KindFeedback, Feedback{Source: policy.FromCheckRun, SHA: "c0"})
	review := command(2, "")
	review.Source = policy.FromReview
	log.add(t, KindFeedback, review)
	log.add(t, KindAttemptStarted, Started{N: 1, Run: 1, Seen: 4, Decision: policy.Decision{Round: 1}})
	log.add(t, KindThread, Change{What: "head_moved", By: "ada", Detail: "c1"})
	log.add(t, KindAttemptEnded, policy.Receipt{N: 1, Outcome: policy.Cancelled, Moved: true})
	var sources []policy.Source
	for _, r := range log.fold(t).Pending() {
		sources = append(sources, r.Source)
	}
	if !slices.Equal(sources, []policy.Source{policy.FromReview}) {
		t.Errorf("pending are %q, want the review", sources)
	}
}

func TestWhichOfTwoWatchesOfABranchYields(t *testing.T) {
	watch := func(at, number, rounds int) State {
		asked := Feedback{Seq: 1, At: second(at), Number: number}
		return State{Watch: Watch{Feedback: asked, Rounds: rounds}}
	}
	ended := watch(1, 1, 5)
	ended.Watch.Ended = "ada ended the watch"
	for name, c := range map[string]struct {
		own, other State
		want       bool
	}{
		"no other":                      {watch(2, 2, 0), State{}, false},
		"the other has ended":           {watch(2, 2, 0), ended, false},
		"the other was admitted":        {watch(1, 2, 0), watch(2, 1, 5), true},
		"both were admitted":            {watch(1, 2, 5), watch(2, 1, 5), true},
		"the other was requested first": {watch(2, 1, 0), watch(1, 2, 0), true},
		"and later":                     {watch(1, 2, 0), watch(2, 1, 0), false},
		"both at once":                  {watch(1, 2, 0), watch(1, 1, 0), true},
		"both at once, the first":       {watch(1, 1, 0), watch(1, 2, 0), false},
		"a request while one lasts":     {watch(2, 2, 5), watch(1, 1, 0), false},
	} {
		if got := c.own.WatchYields(c.other); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
