package solver

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// Bounds of what is learned from: a discounted reward that is so old, or has so
// many after it, counts for nothing any more (0.99 to the power of 1,000 is
// 0.00004).
const (
	learnedAge  = 180 * 24 * time.Hour
	learnedRows = 2000
)

// GradedRow is one attempt as it is learned from. Data is a policy.Graded.
type GradedRow struct {
	ID      string // of the attempt, such as "owner/repo#7/3"
	At      time.Time
	Backend string
	Repo    string // owner/name
	Data    []byte
}

// Learned is what all attempts of all threads say of the backends.
//
// What was computed holds for learnedFor: many threads may wait for the same
// backend and look again and again.
func (s *Solver) Learned(ctx context.Context) (policy.Learned, error) {
	s.learned.mu.Lock()
	defer s.learned.mu.Unlock()
	now := s.Now()
	if age := now.Sub(s.learned.at); !s.learned.at.IsZero() && age >= 0 && age < learnedFor {
		return s.learned.is, nil
	}
	is, err := s.learnedAt(ctx, now)
	if err == nil {
		s.learned.is, s.learned.at = is, now
	}
	return is, err
}

// learnedFor is how long it takes at most until a new reward counts.
const learnedFor = 2 * time.Second

// learnedCache is what was learned, as of a time. The zero value is empty.
type learnedCache struct {
	mu sync.Mutex
	at time.Time
	is policy.Learned
}

func (s *Solver) learnedAt(ctx context.Context, now time.Time) (policy.Learned, error) {
	rows, err := s.Store.Graded(ctx, now.Add(-learnedAge), learnedRows)
	if err != nil {
		return policy.Learned{}, fmt.Errorf("read grades: %w", err)
	}
	graded := make([]policy.Graded, 0, len(rows))
	for _, r := range rows {
		var g policy.Graded
		if err := json.Unmarshal(r.Data, &g); err != nil {
			s.Log.Error().Err(err).Str("attempt", r.ID).Msg("a grade cannot be read and is left out")
			continue
		}
		graded = append(graded, g)
	}
	return policy.Learn(graded, now), nil
}

// choice adds to the facts what a backend is chosen by. Where there is nothing
// to choose nothing is read.
func (s *step) choice(ctx context.Context, f *policy.Facts, e config.Effective) error {
	f.Mode = policy.Mode(e.Policy.Learning.Mode)
	if len(e.Backends) < 2 {
		return nil
	}
	f.Context = s.state.task(s.thread).Context()
	f.Seed = seed(s.thread, len(s.state.Attempts)+1)
	if f.Mode == policy.ModeFixed {
		return nil
	}
	learned, err := s.Learned(ctx)
	f.Learned = &learned
	return err
}

// seed is the chance in the choice of an attempt's backend: the same for the same
// attempt, so that a decision that is taken again is the same.
func seed(t Thread, n int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", t, n) // a hash never fails
	return h.Sum64()
}

// task is what the thread asks for, as the choice of a backend sees it.
func (s State) task(t Thread) policy.Task {
	task := policy.Task{Repo: t.Repo(), Title: s.Snapshot.Title, Body: policy.Content(s.Snapshot.Body)}
	if s.Snapshot.Labels != "" {
		task.Labels = strings.Split(s.Snapshot.Labels, "\n")
	}
	task.Paths = policy.MentionedPaths(task.Title + "\n" + task.Body)
	return task
}

// learn writes the grades of the thread's attempts where they have changed since
// they were last written: after an attempt, and after what people did with it.
func (s *step) learn(ctx context.Context) error {
	for i, a := range s.state.Attempts {
		if a.EndedAt.IsZero() {
			continue
		}
		g := s.state.graded(s.thread, i, s.Config.Policy)
		data, err := json.Marshal(g)
		if err != nil {
			return err
		}
		key, sum := gradeKey(a.N), hash(string(data))
		if s.state.Acts[key].Hash == sum {
			continue
		}
		err = s.Store.PutGraded(ctx, g.ID, func(GradedRow) GradedRow {
			return GradedRow{ID: g.ID, At: g.At, Backend: g.Backend, Repo: s.thread.Repo(), Data: data}
		})
		if err != nil {
			return fmt.Errorf("write the grade of attempt %d: %w", a.N, err)
		}
		if err := s.acted(ctx, key, Act{Hash: sum}); err != nil {
			return err
		}
	}
	return nil
}

// graded is one attempt with everything that is known of its worth. It is a
// function of the log, so writing it again changes nothing.
func (s State) graded(t Thread, i int, p config.Policy) policy.Graded {
	a := s.Attempts[i]
	r, at := a.Receipt, a.EndedAt
	changed := policy.Progress(r.StartTree, r.EndTree)
	g := policy.Graded{
		ID: fmt.Sprintf("%s/%d", t, a.N), At: at, Backend: a.Backend, Context: s.task(t).Context(),
		Facts: policy.AttemptFacts{
			Ending: r.Ending, Outcome: r.Outcome, StartedAt: a.At, EndedAt: at, Changed: changed, Session: r.Session,
		},
	}
	if r.Session != "" || r.ToolCalls > 0 {
		// A program that prints plain text leaves no record of what it did.
		g.Facts.Transcript = &policy.Transcript{Session: r.Session, Bytes: r.Trajectory.Bytes}
	}
	if a.Context != (policy.Context{}) {
		// Labels and texts may have changed since.
		g.Context = a.Context
	}
	if r.Pushed {
		g.Facts.Commits = 1
	}
	if r.Outcome == policy.Interrupted {
		g.Facts.OwnFailure = r.Detail
	}
	g.Signals = append(s.people(i), s.own(i, p)...)
	return g
}

// own are the signals of an attempt that Pawl gathers itself.
func (s State) own(i int, p config.Policy) []policy.Signal {
	a := s.Attempts[i]
	r, at := a.Receipt, a.EndedAt
	changed := policy.Progress(r.StartTree, r.EndTree)
	verified := policy.Verified{Configured: len(a.Repo.Verify) > 0 || len(r.Verify) > 0, Changed: changed, Passed: true}
	for _, v := range r.Verify {
		verified.Passed = verified.Passed && v.Passed
		verified.Failing = append(verified.Failing, names(v.Failing)...)
	}
	verifier := policy.VerifierSignal(verified, at)
	if verified.Configured && changed && len(r.Verify) == 0 {
		verifier = policy.Signal{Source: policy.VerifierSource, At: at, Missing: "the attempt ended before it was verified"}
	}
	judge := policy.JudgeAnswer{}
	if j := r.Judge; j != nil {
		judge = policy.JudgeAnswer{Asked: true, Grade: j.Grade, Detail: j.Detail, Error: j.Error}
	}
	trajectory := policy.Trajectory{
		ToolCalls: r.ToolCalls, Edits: r.Edits.Operations, TestRuns: r.Trajectory.TestRuns, Errors: r.Trajectory.Errors,
		Retries: r.Trajectory.Retries, Changed: changed, Ending: r.Ending, Bytes: r.Trajectory.Bytes,
	}
	if a.Kind == config.Command && r.ToolCalls == 0 {
		trajectory.None = "the command prints no calls of tools"
	}
	return []policy.Signal{
		policy.SeveritySignal(Limits(p).Severity.Judge(r.Edits), at),
		verifier,
		s.ci(i),
		policy.JudgeSignal(judge, at),
		policy.TrajectorySignal(trajectory, at),
		policy.JournalSignal(policy.Journal{Final: r.Final, Changed: changed, TestRuns: r.Trajectory.TestRuns, Verifier: verifier}, at),
	}
}

// ci is the signal of the checks of others on the commit that an attempt pushed.
func (s State) ci(i int) policy.Signal {
	a := s.Attempts[i]
	at, results := a.EndedAt, map[string]policy.CheckResult{}
	for _, c := range s.Checks {
		if c.SHA != "" && c.SHA == a.Receipt.Commit {
			results[c.Name] = policy.CheckResult{Name: c.Name, Conclusion: c.Conclusion, Outside: c.Outside}
			if c.At.After(at) {
				at = c.At
			}
		}
	}
	var all []policy.CheckResult
	for _, c := range results {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b policy.CheckResult) int { return strings.Compare(a.Name, b.Name) })
	return policy.CISignal(all, at)
}

// people are the signals of what people did with the work of an attempt. They
// belong to the last attempt that had pushed to their pull request by then.
func (s State) people(i int) []policy.Signal {
	var out []policy.Signal
	for _, d := range s.People {
		if s.judgedBy(d) == i {
			out = append(out, policy.PeopleSignal(d.Kind, d.By, d.At))
		}
	}
	return out
}

// judgedBy is the index of the attempt that people judged; -1 for none. The
// receipt may come after the word: an attempt has pushed before its end.
func (s State) judgedBy(d Verdict) int {
	last := -1
	for i, a := range s.Attempts {
		same := d.Number == 0 || a.Pull == 0 || a.Pull == d.Number
		if a.Receipt.Pushed && same && a.At.Before(d.At) {
			last = i
		}
	}
	return last
}
