package thread

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/panics"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

// State holds a folded log. The zero value is a thread without events.
type State struct {
	Seq      int64
	At       time.Time // last change, Pawl's own acts excluded
	Snapshot Details
	// Run counts runs from 1; Ended means that the last run is over.
	Run        int
	Ended      bool
	Decision   *Decided
	On         string // commit of the last decision with one
	DecidedAt  time.Time
	worked     *Decided // last decision that ended a change, and its run
	workedRun  int
	Attempts   []Attempt
	Unfinished *Unfinished // work to continue, or nil
	red        CheckResult // first failure since the commit's checks were last classified
	rewritten  *Decided    // last notice of a force-push
	handedOver Attempt     // start of a handed-over attempt
	// Feedback holds all accepted feedback, Ignored the newest ignored feedback.
	Feedback  []Request
	Ignored   []Feedback
	Questions []Feedback // unanswered
	Controls  []Feedback
	Stopped   string
	Stop      Feedback  // request to stop
	readMade  time.Time // time of the remark behind Snapshot's texts
	Pinned    string
	PinnedBy  Feedback // command that pinned the backend
	// Closed says why work is impossible. closedBy is the change, closedAt its time (or zero), renamedTo the new
	// owner/name.
	Closed    string
	closedBy  string
	closedAt  time.Time
	renamedTo string
	Acts      map[string]ActState // by key; an act that is not Done may have happened
	// Pull is Pawl's pull request for an issue; Head is the last pushed commit.
	Pull int
	Head string
	// BaseMoved is the time of the last push to the base; zero once Pawl requested its merge.
	BaseMoved time.Time
	Repo      config.Repo // repository configuration of the last attempt
	// Own holds Pawl's texts in the form of feedback.Authored; TakenTexts holds comments that attempts took.
	Own        []byte
	TakenTexts []string
	Known      []string // descriptions that attempts worked on
	Generation int
	Cause      string
	Watch      Watch
	onlyWatch  bool      // nothing but a watch made Pawl work
	headAt     time.Time // when the log learned of the head
	movedAt    time.Time // a user's last push to the branch
	foreignAt  time.Time // the last push by anyone but Pawl
	// People holds acts on the work, Checks other Apps' results, both oldest first.
	People []PeopleVerdict
	// Moves holds users' pushes to the branch.
	Moves  []Move
	Checks []CheckResult
	// Checked holds classified failures, oldest first.
	Checked Findings
	// Delivery identifies the newest remark or change, or is empty.
	Delivery string
	// ErrorReported means that a repeated error was reported, and that nothing has happened on the thread since.
	ErrorReported bool
}

type Attempt struct {
	Started
	At      time.Time
	EndedAt time.Time // zero while the attempt runs
	Receipt policy.Receipt
	Pull    int // pull request of the work; 0 before it exists
	// Steers is the number of texts that users sent to the attempt. Steered lists the writers of the texts that its agent
	// received.
	Steers  int
	Steered []string
}

// Request holds accepted feedback and what became of it.
type Request struct {
	Feedback
	Purpose   policy.Purpose
	Taken     int          // attempt that took the feedback; 0 for none
	Head      string       // the branch's head at that time, if known
	Deferred  bool         // it begins no attempt: a decision ended review rounds, or it only joins the next round of a watch
	Withdrawn string       // why the feedback no longer counts
	Steer     policy.Steer // what becomes of a steer command's text
	Watched   bool         // only a watch turns it into work
	OfWatch   bool         // it ends with the watch: it is Watched, or only continues the watch's work
}

type ActState struct {
	Act
	Done bool
	At   time.Time
}

func Fold(events []Event) (State, error) {
	var s State
	err := s.Apply(events)
	return s, err
}

// ErrDamaged means that an event cannot be decoded.
var ErrDamaged = errors.New("the log is damaged")

// Apply folds events, which must follow s.Seq. After ErrDamaged, s is the state before the damaged event.
func (s *State) Apply(events []Event) error {
	if s.Acts == nil {
		s.Acts = map[string]ActState{}
	}
	for _, e := range events {
		if err := panics.Try(func() error { return s.apply(e) }); err != nil {
			return fmt.Errorf("%w: event %d (%s): %w", ErrDamaged, e.Seq, e.Kind, err)
		}
		s.Seq = e.Seq
	}
	return nil
}

// quiet kinds leave State.At unchanged.
var quiet = []Kind{KindActStarted, KindActDone, KindIgnored, KindAuthored, KindPublished}

// folds maps event kinds to effects. Kinds from newer versions have none.
var folds = map[Kind]func(*State, Event) error{
	KindFeedback:       into((*State).feedback),
	KindIgnored:        into((*State).ignored),
	KindControl:        into((*State).control),
	KindQuestion:       into((*State).question),
	KindThread:         into((*State).change),
	KindWithdrawn:      into((*State).withdraw),
	KindDecision:       into((*State).decided),
	KindAttemptStarted: into((*State).started),
	KindPublished:      into((*State).published),
	KindSteered:        into((*State).steered),
	KindAttemptEnded:   into((*State).ended),
	KindChecked:        into((*State).found),
	KindWatched:        into((*State).watched),
	KindUnfinished:     into((*State).unfinished),
	KindActStarted:     into((*State).acting),
	KindActDone:        into((*State).acted),
}

func into[T any](f func(*State, Event, T)) func(*State, Event) error {
	return func(s *State, e Event) error {
		var data T
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return err
		}
		f(s, e, data)
		return nil
	}
}

// changes are kinds after which a repeated error is reported again.
var changes = []Kind{KindFeedback, KindControl, KindQuestion, KindThread, KindAttemptStarted, KindAttemptEnded}

func (s *State) apply(e Event) error {
	if slices.Contains(changes, e.Kind) {
		s.ErrorReported = false
	}
	if !slices.Contains(quiet, e.Kind) {
		s.At = e.At
	}
	change, ok := folds[e.Kind]
	if !ok {
		return nil
	}
	head := s.Snapshot.HeadSHA
	err := change(s, e)
	if s.Snapshot.HeadSHA != head {
		s.headAt = e.At
	}
	return err
}

func (s *State) question(e Event, q Feedback) {
	s.see(q.Snapshot, q.Delivery)
	q.Seq, q.At = e.Seq, e.At
	s.Questions = append(s.Questions, q)
}

func (s *State) published(_ Event, w Authored) { s.Own = append(s.Own, w.Runs...) }

func (s *State) acting(e Event, a Act) { s.Acts[a.Key] = ActState{Act: a, At: e.At} }

func (s *State) unfinished(e Event, u Unfinished) {
	u.At = e.At
	s.Unfinished = &u
	last := len(s.Attempts) - 1
	if last < 0 || s.Attempts[last].N != u.N {
		return
	}
	if !u.Orderly || u.Receipt != nil {
		return
	}
	// The attempt does not count unless the run ends before it continues.
	s.handedOver = s.Attempts[last]
	s.Attempts = s.Attempts[:last]
	s.untake(u.N)
	s.dropWatched()
}

// untake makes an attempt's requests pending again.
func (s *State) untake(n int) {
	for i := range s.Feedback {
		if s.Feedback[i].Taken == n {
			s.Feedback[i].Taken = 0
		}
	}
}

func (s *State) feedback(e Event, f Feedback) {
	s.see(f.Snapshot, f.Delivery)
	f.Seq, f.At = e.Seq, e.At
	if why := s.late(f); why != "" {
		s.Feedback = append(s.Feedback, Request{Feedback: f, Withdrawn: why})
		return
	}
	watched, ofWatch := s.onlyWatched(f), s.ofWatch(f)
	if s.joinsRound(f) {
		s.Feedback = append(s.Feedback, Request{Feedback: f, Purpose: policy.ToChange, Head: s.Snapshot.HeadSHA, Deferred: true, Watched: true, OfWatch: true})
		return
	}
	s.onlyWatch = ofWatch && s.untracked()
	if !s.Open() {
		s.Run++
		s.Ended = false
	}
	if f.Source == policy.FromBase {
		s.BaseMoved = time.Time{}
	}
	s.read(f)
	s.Generation, s.Cause = f.Generation, f.Cause
	s.replaceSteer(f)
	s.Feedback = append(s.Feedback, Request{
		Feedback: f,
		Purpose:  s.purposeOf(f),
		Head:     s.Snapshot.HeadSHA,
		Steer:    s.steer(f),
		Watched:  watched,
		OfWatch:  ofWatch,
	})
	if f.Pin != "" {
		s.Pinned, s.PinnedBy = f.Pin, f
	}
	if !madeBefore(f, s.Stop) {
		s.Stopped = ""
	}
	if s.ClosedAtGitHub() == "" {
		// The issue is open, so the request gets a new branch and pull request. A permitted request also proves that
		// the App has access.
		s.Closed, s.closedBy = "", ""
	}
	if f.Source == policy.FromDescription {
		s.Known = append(s.Known, f.Baseline, f.Description)
	} else if len(s.Known) == 0 {
		s.Known = append(s.Known, feedback.Content(s.Snapshot.Body))
	}
}

func (s *State) withdraw(_ Event, w Withdrawn) {
	for i := range s.Feedback {
		if slices.Contains(w.Seqs, s.Feedback[i].Seq) {
			s.Feedback[i].Withdrawn = w.Reason
		}
	}
	s.Questions = slices.DeleteFunc(s.Questions, func(q Feedback) bool { return slices.Contains(w.Seqs, q.Seq) })
}

func (s *State) decided(e Event, d Decided) {
	s.Decision, s.DecidedAt, s.On = &d, e.At, cmp.Or(d.On, s.On)
	if d.Rule == policy.RuleRepeatedError {
		s.ErrorReported = true
	}
	if d.Rule == policy.RuleRewritten {
		s.rewritten = &d
	}
	if !ending(d.Action) {
		return
	}
	if d.Rule == policy.RuleMoved && d.On != "" {
		s.dropFound(d.On)
	}
	if d.Purpose == policy.ToChange {
		s.worked, s.workedRun = &d, s.Run
	}
	s.giveUp()
	if d.endsReview() {
		s.deferSeen(d.Seen)
	}
	// Feedback after the decision begins the next run.
	s.Ended = !slices.ContainsFunc(s.Pending(), func(f Request) bool { return f.Seq > d.Seen && !f.Deferred })
	if !s.Ended {
		s.Run++
	}
}

func (d Decided) endsReview() bool {
	return d.Rule == policy.RuleNotConverging || d.Rule == policy.RuleNotBlocking
}

// giveUp drops the unfinished attempt. A handed-over attempt's use still counts.
func (s *State) giveUp() {
	u := s.Unfinished
	s.Unfinished = nil
	if u == nil || !u.interrupted() {
		return
	}
	s.handedOver.EndedAt = u.At
	s.handedOver.Receipt = policy.Receipt{
		N:       u.N,
		Ending:  policy.Killed,
		Outcome: policy.Interrupted,
		Detail:  "the run ended before it went on",
		Tokens:  u.Used.Tokens,
		CostUSD: u.Used.CostUSD,
	}
	s.Attempts = append(s.Attempts, s.handedOver)
}

func (s *State) deferSeen(seen int64) {
	for i := range s.Feedback {
		if f := &s.Feedback[i]; f.waitedAt(seen) {
			f.Deferred = true
		}
	}
}

func (r *Request) waitedAt(seen int64) bool { return r.Taken == 0 && r.Seq <= seen }

func (s *State) started(e Event, a Started) {
	begun := Attempt{Started: a, At: e.At}
	if u := s.Unfinished; u != nil && u.interrupted() && u.N == a.N {
		begun.Steers, begun.Steered = s.handedOver.Steers, s.handedOver.Steered
	}
	s.Attempts = append(s.Attempts, begun)
	s.Repo = a.Repo
	for i := range s.Feedback {
		f := &s.Feedback[i]
		if f.Purpose != a.Decision.Purpose || !f.waitedAt(a.Seen) {
			continue
		}
		f.Taken = a.N
		if f.plain() {
			s.TakenTexts = append(s.TakenTexts, f.Text)
		}
	}
}

// plain reports whether the feedback is a comment in a user's own words.
func (r *Request) plain() bool {
	if r.Source != policy.FromComment {
		return false
	}
	return r.Command == "" && r.Withdrawn == ""
}

func (s *State) ended(e Event, r policy.Receipt) {
	s.Unfinished = s.leftBy(r)
	s.missed()
	for i := range s.Attempts {
		a := &s.Attempts[i]
		if a.N != r.N || !a.EndedAt.IsZero() {
			continue
		}
		r.Outcome = r.Stored(a.Decision.Purpose)
		a.EndedAt, a.Receipt, a.Pull = e.At, r, s.Pull
		if r.Pushed {
			s.Head, s.Snapshot.HeadSHA = r.Commit, r.Commit
		}
		if r.Moved {
			s.withdrawWatched(branchMoved, func(t *Request) bool { return t.Taken == r.N && t.found() })
			s.untake(r.N)
		}
	}
	s.dropWatched()
}

// leftBy returns the work for the next attempt, or nil.
func (s *State) leftBy(r policy.Receipt) *Unfinished {
	if s.Unfinished == nil {
		return nil
	}
	again := *s.Unfinished
	again.Times, again.Used, again.Receipt = 0, policy.Spent{}, nil // the receipt replaces them
	if s.onlyAnswers(r.N) {
		// The attempt started without files; the next one receives the earlier files in a new HOME.
		again.Session = ""
		if again.Changed() {
			return &again
		}
	}
	if r.Outcome == policy.Interrupted && !r.Pushed {
		return &again
	}
	return nil
}

func (s *State) onlyAnswers(n int) bool {
	return slices.ContainsFunc(s.Attempts, func(a Attempt) bool { return a.N == n && a.Decision.Purpose != policy.ToChange })
}

func (s *State) acted(e Event, a Act) {
	s.Acts[a.Key] = ActState{Act: a, Done: true, At: e.At}
	if a.Key == ActPull {
		s.Pull = int(a.ID)
		for i := range s.Attempts {
			if s.Attempts[i].Pull == 0 {
				s.Attempts[i].Pull = s.Pull
			}
		}
	}
	s.Questions = slices.DeleteFunc(s.Questions, func(q Feedback) bool { return a.Key == AnswerKey(q.Seq) })
}

// see stores a snapshot's known fields except texts, and its delivery.
func (s *State) see(n *Details, delivery string) {
	s.Delivery = cmp.Or(delivery, s.Delivery)
	if n == nil {
		return
	}
	o := &s.Snapshot
	o.Installation = cmp.Or(n.Installation, o.Installation)
	o.RepoID = cmp.Or(n.RepoID, o.RepoID)
	o.Author = cmp.Or(n.Author, o.Author)
	o.Labels = cmp.Or(n.Labels, o.Labels)
	o.URL = cmp.Or(n.URL, o.URL)
	o.HeadRef = cmp.Or(n.HeadRef, o.HeadRef)
	o.HeadSHA = cmp.Or(n.HeadSHA, o.HeadSHA)
	o.HeadRepoID = cmp.Or(n.HeadRepoID, o.HeadRepoID)
	o.BaseRef = cmp.Or(n.BaseRef, o.BaseRef)
	o.DefaultBranch = cmp.Or(n.DefaultBranch, o.DefaultBranch)
	o.Pull = o.Pull || n.Pull
}
