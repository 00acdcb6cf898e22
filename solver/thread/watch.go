package thread

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// WatchLabel on a pull request is a request to watch it.
const WatchLabel = Label + ":watch"

// Watched logs a step of a watch: a pull request was admitted or refused, or its head was looked at.
type Watched struct {
	Rounds  int    `json:"rounds,omitempty"`  // limit of rounds, once admitted
	Refused string `json:"refused,omitempty"` // why the pull request is not watched
	SHA     string `json:"sha,omitempty"`     // head that was looked at
	Seen    int64  `json:"seen,omitempty"`    // last event before the look
	Round   int    `json:"round,omitempty"`   // rounds so far, if Lacks is empty
	Lacks   string `json:"lacks,omitempty"`   // why the head is not ready
	// Passed means that every check that Pawl reads passes, and only GitHub counts the head as not passed.
	Passed bool `json:"passed,omitempty"`
	// Again is when to look again without an event; zero for never.
	Again time.Time `json:"again,omitzero"`
	at    time.Time // of the look
	// Checks names the checks of the head. The next head is expected to have them, too.
	Checks []string `json:"checks,omitempty"`
}

// Watch is a user's standing request to turn a pull request green. Seq is 0 if there was none.
type Watch struct {
	Feedback
	Rounds int     // limit of rounds; 0 before the pull request is admitted
	Ended  string  // why the watch ended, or the refusal
	Looked Watched // at the last head; zero before the first look
	// changed is the last event that calls for another look.
	changed int64
	// head and base are the pull request's when it was admitted. again means that it must be admitted again.
	head, base string
	again      bool
}

// Watching reports whether a watch is requested and has not ended.
func (s State) Watching() bool { return s.Watch.Seq != 0 && s.Watch.Ended == "" }

// Watched reports whether the pull request is watched: requested, admitted, and not ended.
func (s State) Watched() bool { return s.Watching() && s.Watch.Rounds > 0 }

// AdmitDue reports whether the pull request must be admitted. It must if the watch is new, or if a user repeated the
// request after the head or the base had changed.
func (s State) AdmitDue() bool { return s.Watching() && (s.Watch.Rounds == 0 || s.Watch.again) }

// WatchYields reports whether another thread's watch of the same branch goes first: it was admitted, or neither was and
// it was requested first.
func (s State) WatchYields(other State) bool {
	switch {
	case !other.Watching():
		return false
	case other.Watched():
		return true
	case s.Watched():
		return false
	}
	a, b := other.Watch, s.Watch
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Number, b.Number)) < 0
}

// WatchDue reports whether the head must be looked at: it is new, something has changed since the last look, or another
// look is due. Otherwise next is when it is due; zero for never. A moved base is looked at once per interval of
// policy.update_every (zero for never). The look comes at the interval's end, so that the last push counts.
func (s State) WatchDue(now time.Time, every time.Duration) (due bool, next time.Time) {
	looked := s.Watch.Looked
	if looked.SHA != s.Snapshot.HeadSHA || s.Watch.changed > looked.Seen {
		return true, time.Time{}
	}
	next = earlier(looked.Again, s.baseDue(every))
	if next.IsZero() || now.Before(next) {
		return false, next
	}
	return true, time.Time{}
}

// baseDue returns when to look at a base that has moved since the last look; zero for never.
func (s State) baseDue(every time.Duration) time.Time {
	switch {
	case every <= 0, s.BaseMoved.IsZero():
		return time.Time{}
	}
	end := s.BaseMoved.Truncate(every).Add(every)
	if s.Watch.Looked.at.Before(end) {
		return end
	}
	return time.Time{}
}

// earlier returns the earlier of two times. Zero means never.
func earlier(a, b time.Time) time.Time {
	switch {
	case b.IsZero():
		return a
	case a.IsZero(), b.Before(a):
		return b
	}
	return a
}

// Ready reports whether the last look found the head green and free of conflicts.
func (s State) Ready() bool { return s.lookHolds() && s.Watch.Looked.Lacks == "" }

// Passed reports whether at the last look every check passed, but GitHub counted the head as not passed.
func (s State) Passed() bool { return s.lookHolds() && s.Watch.Looked.Passed }

// lookHolds reports whether nothing has happened since the last look that would change its result.
func (s State) lookHolds() bool {
	if !s.Watched() || s.Watch.Looked.SHA == "" {
		return false
	}
	if s.Open() || s.stoppedSince(s.Watch.Looked.Seen) {
		return false
	}
	return s.Watch.Looked.SHA == s.Snapshot.HeadSHA
}

// stoppedSince reports whether a decision after an event left the work waiting for a user.
func (s State) stoppedSince(seen int64) bool {
	d := s.Decision
	if d == nil || d.Seen <= seen {
		return false
	}
	return d.Action == policy.DoStop || d.Action == policy.DoAsk
}

// CheckedHead returns the commit whose checks matter, or empty. It is any head of a watched pull request, or Pawl's
// last commit while that is the head.
func (s State) CheckedHead() string {
	switch {
	case s.Watching():
		return s.Snapshot.HeadSHA
	case !s.Tracked(), s.headOfRound():
		return ""
	}
	if s.Snapshot.HeadSHA == "" || s.Snapshot.HeadSHA == s.Head {
		return s.Head
	}
	return ""
}

// headOfRound reports whether a round pushed the last commit to a user's pull request.
func (s State) headOfRound() bool {
	if s.Pull != 0 {
		return false
	}
	return slices.ContainsFunc(s.Attempts, func(a Attempt) bool {
		return a.Decision.Round > 0 && a.Receipt.Pushed && a.Receipt.Commit == s.Head
	})
}

func (s *State) watch(c Feedback) {
	if s.Watching() {
		s.Watch.Feedback, s.Watch.changed = c, c.Seq
		s.Watch.again = s.Watch.head != s.Snapshot.HeadSHA || s.Watch.base != s.Snapshot.BaseRef
	} else {
		s.Watch = Watch{Feedback: c, changed: c.Seq}
	}
	if !s.Open() {
		s.Checked = s.Checked.unfinished(s.Snapshot.HeadSHA)
	}
	if !madeBefore(c, s.Stop) {
		s.Stopped = ""
	}
}

// endWatch ends a watch and withdraws the requests that only the watch made.
func (s *State) endWatch(why string) {
	if !s.Watching() {
		return
	}
	s.Watch.Ended = why
	s.dropWatched()
}

// dropWatched withdraws the requests of a watch that has ended, unless an attempt finished them. The running attempt
// keeps its requests until its end.
func (s *State) dropWatched() {
	if s.Watching() || s.Watch.Ended == "" {
		return
	}
	s.withdrawWatched(s.Watch.Ended, s.waiting())
}

func (s *State) withdrawWatched(why string, which func(*Request) bool) {
	for i := range s.Feedback {
		r := &s.Feedback[i]
		if r.OfWatch && r.Withdrawn == "" && which(r) {
			r.Withdrawn = why
		}
	}
}

// watched folds a step of the watch.
func (s *State) watched(e Event, w Watched) {
	switch {
	case !s.Watching():
	case w.Refused != "":
		s.endWatch(w.Refused)
	case w.Rounds > 0:
		s.Watch.Rounds, s.Watch.again = w.Rounds, false
		s.Watch.head, s.Watch.base = s.Snapshot.HeadSHA, s.Snapshot.BaseRef
	default:
		w.at = e.At
		s.Watch.Looked = w
	}
}

// watchChange applies a change of the thread to its watch.
func (s *State) watchChange(e Event, c Change) {
	if !s.Watching() {
		return
	}
	if why := c.closes(); why != "" {
		s.endWatch(why)
		return
	}
	switch c.What {
	case "drafted":
		s.endWatch("the pull request was converted to a draft by " + c.By)
	case "retargeted", "reopened", "approved", "dismissed": // a rule may need approvals
		s.Watch.changed = e.Seq
	case "head_moved":
		if !s.ownPush(c) {
			s.watchMoved(c)
		}
	}
}

// watchMoved withdraws the watch's findings on earlier heads. The new head gets its own look, even if it was the head
// before.
func (s *State) watchMoved(c Change) {
	s.Checked = slices.DeleteFunc(s.Checked, func(k Checked) bool { return k.SHA == c.Detail })
	s.dropFound(c.Detail)
	waits := s.waiting()
	for i := range s.Feedback { // reviews that a failed round took
		if r := &s.Feedback[i]; r.Watched && waits(r) {
			r.Taken = 0
		}
	}
}

// dropFound withdraws the watch's findings on other heads, unless an attempt finished them.
func (s *State) dropFound(head string) {
	done := s.answered(policy.ToChange)
	s.withdrawWatched(branchMoved, func(r *Request) bool {
		open := r.Taken == 0 || r.Taken > done
		return open && r.found() && r.SHA != head
	})
}

const branchMoved = "the branch moved, and the watch looks at the new head"

// FoundOnly reports whether all requests of the run came from looks: failing checks and conflicts.
func (s State) FoundOnly() (is bool) {
	var ofRun []int // attempts; 0 for requests that wait
	for _, a := range s.Attempts {
		if a.Run == s.Run {
			ofRun = append(ofRun, a.N)
		}
	}
	ofRun = append(ofRun, 0)
	for i := range s.Feedback {
		r := &s.Feedback[i]
		switch {
		case !slices.Contains(ofRun, r.Taken):
		case r.Watched && r.found():
			is = true
		case r.Withdrawn == "":
			return false
		}
	}
	return is
}

// found reports whether a look made the request, not a reviewer.
func (r *Request) found() bool {
	return r.Source == policy.FromCheckRun || r.Source == policy.FromBase
}

// onlyWatched reports whether only a watch turns feedback into work: a failing check, a conflict, a review.
func (s *State) onlyWatched(f Feedback) bool {
	if !s.Watching() || f.Command != "" && f.Source != policy.FromBase {
		return false
	}
	sources := []policy.Source{policy.FromCheckRun, policy.FromBase, policy.FromReview, policy.FromReviewComment}
	return slices.Contains(sources, f.Source)
}

// joinsRound reports whether feedback begins no round but joins the next one: a line comment on a user's watched pull
// request. A review that requests changes begins a round.
func (s *State) joinsRound(f Feedback) bool {
	if s.Pull != 0 || f.Source != policy.FromReviewComment {
		return false
	}
	return s.onlyWatched(f)
}

// Reviewed returns the events of a review's request, unless an attempt has finished it or works on it.
func (s State) Reviewed(review int64) (seqs []int64) {
	waits := s.waiting()
	for i := range s.Feedback {
		r := &s.Feedback[i]
		if r.ofReview(review) && waits(r) {
			seqs = append(seqs, r.Seq)
		}
	}
	return seqs
}

// Found returns the events of a watch's requests about a commit's failing checks, unless an attempt finished them or
// works on them.
func (s State) Found(sha string) (seqs []int64) {
	waits := s.waiting()
	for i := range s.Feedback {
		r := &s.Feedback[i]
		if r.SHA != sha || r.Withdrawn != "" {
			continue
		}
		if r.Watched && r.Source == policy.FromCheckRun && waits(r) {
			seqs = append(seqs, r.Seq)
		}
	}
	return seqs
}

// ofReview reports whether the review made the request and nothing withdrew it.
func (r *Request) ofReview(id int64) bool {
	if r.Source != policy.FromReview {
		return false
	}
	return r.Target.ID == id && r.Withdrawn == ""
}

// waiting returns a test for requests that no attempt has finished or works on.
func (s *State) waiting() func(*Request) bool {
	a, _ := s.Running()
	done := s.answered(policy.ToChange)
	return func(r *Request) bool {
		switch {
		case r.Taken == 0:
			return true
		case r.Taken <= done:
			return false
		}
		return r.Taken != a.N
	}
}

// untracked reports whether no user asked for work apart from a watch.
func (s *State) untracked() bool { return s.Run == 0 || s.onlyWatch }

// ofWatch reports whether feedback ends with the watch. Either only the watch turns it into work, or it only continues
// the watch's work or adds words for its agent.
func (s *State) ofWatch(f Feedback) bool {
	if s.onlyWatched(f) {
		return true
	}
	if !s.Watching() || !s.untracked() {
		return false
	}
	r := Request{Feedback: f}
	return r.goesOn() || policy.CommandNamed(f.Command).Joins
}

// forWatch reports whether the attempts of the run took nothing but requests of a watch.
func (s State) forWatch() (is bool) {
	i := slices.IndexFunc(s.Attempts, func(a Attempt) bool { return a.Run == s.Run })
	if i < 0 {
		return false
	}
	for j := range s.Feedback {
		r := &s.Feedback[j]
		if r.Taken < s.Attempts[i].N || r.Purpose != policy.ToChange {
			continue
		}
		if !r.OfWatch {
			return false
		}
		is = true
	}
	return is
}

// watchFacts returns policy's facts about the watch. typed holds the events in which users typed new words.
func (s State) watchFacts(typed map[int64]bool) (w policy.Watch) {
	if s.Watch.Ended != "" && s.forWatch() {
		w.Ended = s.Watch.Ended
	}
	if !s.Watched() {
		return w
	}
	w.Rounds, w.Pushed, w.Moved = s.Watch.Rounds, s.movedAt, s.foreignAt
	for _, c := range s.Controls {
		if c.Command == "watch" && typed[c.Seq] {
			w.Asked = policy.Later(w.Asked, c.At)
		}
		if !c.By.Bot() {
			w.Spoke = policy.Later(w.Spoke, c.At)
		}
	}
	for _, r := range s.Feedback {
		if !r.Watched && r.typed() {
			w.Spoke = policy.Later(w.Spoke, r.At)
		}
	}
	return w
}

// failingTests lists the tests that failed in the requests' checks.
func failingTests(all []Request) (tests []string) {
	for _, r := range all {
		tests = append(tests, r.Tests...)
	}
	slices.Sort(tests)
	return slices.Compact(tests)
}

// requestsAndWatches lists the requests and watch commands, which may hold a user's words, in the log's order.
func (s State) requestsAndWatches() []*Request {
	var all []*Request
	for i := range s.Feedback {
		all = append(all, &s.Feedback[i])
	}
	for _, c := range s.Controls {
		if c.Command == "watch" {
			all = append(all, &Request{Feedback: c})
		}
	}
	slices.SortStableFunc(all, func(a, b *Request) int { return int(a.Seq - b.Seq) })
	return all
}

// HeadSince returns when the head became the pull request's head, as far as the log knows.
func (s State) HeadSince() time.Time { return policy.Later(s.headAt, s.Watch.At) }

// ReadyKey returns the key of the comment that mentions the user who asked for a watch.
func ReadyKey(watch int64) string { return fmt.Sprint(commentKey, "ready:", watch) }

// IsWatchLabel reports whether a label asks to watch.
func IsWatchLabel(name string) bool { return strings.EqualFold(name, WatchLabel) }
