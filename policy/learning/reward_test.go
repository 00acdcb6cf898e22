package learning

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
)

// gradeDay is the time of the first attempts in these tests.
var gradeDay = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func signalOf(source SignalSource, value float64, at time.Time) Signal {
	return Signal{Source: source, Value: value, Known: true, At: at}
}

// endedAt is an ordinary attempt with pushed commits that ended n hours after gradeDay.
func endedAt(n int, backend string, signals ...Signal) Graded {
	end := gradeDay.Add(time.Duration(n) * time.Hour)
	return Graded{ID: fmt.Sprintf("o/r#%d/1", n), At: end, Backend: backend, Signals: signals,
		Context: policy.Context{Repo: "o/r", Category: policy.Bug, Size: policy.Small},
		Facts:   AttemptFacts{Outcome: policy.WorkVerified, Changed: true, Commits: 1, Transcript: &Transcript{Bytes: 40_000}}}
}

func TestRewardsAreCountedByBackendAndWeek(t *testing.T) {
	at := gradeDay
	weeks := LearnUnchecked([]Graded{
		endedAt(1, "codex", signalOf(VerifierSource, 1, at)), endedAt(2, "codex", signalOf(VerifierSource, 0, at)), endedAt(3, "claude", signalOf(VerifierSource, 1, at)), endedAt(4, "gemini"),
		endedAt(-200, "codex", signalOf(VerifierSource, 1, at)),
	}, gradeDay.Add(5*time.Hour)).Weeks()
	want := [][]Earned{{{Backend: "claude", Rewards: 1, Mean: 1}, {Backend: "codex", Rewards: 2, Mean: 0.5}}, {{Backend: "codex", Rewards: 1, Mean: 1}}}
	if len(weeks) != len(want) || !slices.Equal(weeks[0].Arms, want[0]) || !slices.Equal(weeks[1].Arms, want[1]) {
		t.Errorf("%+v", weeks)
	}
}

func TestMoreTrustedSourcesOutweighOthers(t *testing.T) {
	sources := SignalSources()
	for i, s := range sources {
		below := 0.0
		for _, other := range sources[i+1:] {
			below += other.Weight()
		}
		// Verifier and CI have the same level of trust.
		if w := s.Weight(); w > 0 && s != VerifierSource && w <= below {
			t.Errorf("%s weighs %v, all below it together %v", s, w, below)
		}
		if s.place() != i {
			t.Errorf("%s is at position %d, want %d", s, i, s.place())
		}
	}
	if VerifierSource.Weight() <= JudgeSource.Weight()+TrajectorySource.Weight()+JournalSource.Weight() {
		t.Error("the sources below the verifier can outvote it")
	}
}

func TestGradeIgnoresDisbelievedSources(t *testing.T) {
	g := endedAt(1, "a", signalOf(VerifierSource, 1, gradeDay), signalOf(JudgeSource, 0.2, gradeDay), signalOf(JournalSource, 0.1, gradeDay), signalOf(TrajectorySource, 0.3, gradeDay))
	set, believed := g.signals(), fullTrust
	believed[JudgeSource.place()], believed[JournalSource.place()] = 0, 0
	r, trusted := g.grade(&set, &aside{}, &believed)
	if want := (8 + 2*0.3) / 10; math.Abs(r.Value-want) > 1e-12 || math.Abs(trusted-8.0/12) > 1e-12 || !slices.Equal(r.From, []SignalSource{VerifierSource, TrajectorySource}) {
		t.Errorf("%+v, trusted %v", r, trusted)
	}
}

func TestGradesOfAttempts(t *testing.T) {
	at := gradeDay
	for _, c := range []struct {
		name    string
		change  func(*Graded)
		signals []Signal
		want    float64
		missing string
	}{
		{name: "verifier alone", signals: []Signal{signalOf(VerifierSource, 1, at)}, want: 1},
		{name: "weighted mean", signals: []Signal{signalOf(VerifierSource, 1, at), signalOf(JudgeSource, 0.4, at)}, want: (8 + 4*0.4) / 12},
		{name: "a missing source does not count", signals: []Signal{signalOf(VerifierSource, 1, at), missing(JudgeSource, at, true, "quota exhausted")}, want: 1},
		{name: "users decide alone", signals: []Signal{signalOf(VerifierSource, 0.2, at), PeopleSignal(Merged, "ann", at.Add(time.Hour))}, want: 1},
		{name: "an edit loop decides", signals: []Signal{signalOf(VerifierSource, 1, at), SeveritySignal(policy.Severity{Class: policy.Moderate, Grade: 0.05}, at)}, want: 0.05},
		{name: "users outrank an edit loop", signals: []Signal{SeveritySignal(policy.Severity{Class: policy.Severe, Grade: 0.02}, at), PeopleSignal(Approved, "ann", at)}, want: 0.9},
		{name: "a source's newest signal", signals: []Signal{signalOf(CISource, 0.2, at), signalOf(CISource, 1, at.Add(time.Minute))}, want: 1},
		{name: "only the agent's claims", signals: []Signal{signalOf(JournalSource, 0.9, at)}, missing: "there is only what the agent wrote itself"},
		{name: "nothing", missing: "no source gave a value that is believed"},
		{name: "the zero signal is not a low grade", signals: []Signal{{Source: JudgeSource}}, missing: "no source gave a value that is believed"},
		{name: "not a number", signals: []Signal{signalOf(JudgeSource, math.NaN(), at)}, missing: "no source gave a value that is believed"},
		{name: "outside the scale", signals: []Signal{signalOf(JudgeSource, -1, at), signalOf(VerifierSource, 7, at)}, missing: "no source gave a value that is believed"},
		{name: "a fallback of a failed source", signals: []Signal{{Source: JudgeSource, Value: 0.02, Known: true, Failed: true}}, missing: "no source gave a value that is believed"},
		{name: "an unknown source", signals: []Signal{signalOf("oracle", 0, at)}, missing: "no source gave a value that is believed"},
		{name: "usage limit, even if merged", signals: []Signal{PeopleSignal(Merged, "ann", at)}, change: func(g *Graded) { g.Facts.Outcome = policy.Outcome(policy.UsageLimit) },
			missing: "the attempt ended usage limit, which says nothing of the work"},
		{name: "cancelled", signals: []Signal{signalOf(VerifierSource, 0.2, at)}, change: func(g *Graded) { g.Facts.Outcome = policy.Cancelled }, missing: "the attempt was cancelled"},
		{name: "interrupted", signals: []Signal{signalOf(VerifierSource, 0.2, at)}, change: func(g *Graded) { g.Facts.Outcome = policy.Interrupted }, missing: "the attempt was interrupted"},
		{name: "declined", signals: []Signal{signalOf(VerifierSource, 0.2, at)}, change: func(g *Graded) { g.Facts.Outcome = policy.Declined },
			missing: "the agent declined the task"},
		{name: "silent", signals: []Signal{signalOf(VerifierSource, 0.2, at)}, change: func(g *Graded) { g.Facts.Outcome = policy.FellSilent },
			missing: "the agent fell silent, which says nothing of the work"},
		{name: "Pawl failed", signals: []Signal{signalOf(VerifierSource, 0.2, at)}, change: func(g *Graded) { g.Facts.OwnFailure = "the disk is full" }, missing: "Pawl itself failed: the disk is full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := endedAt(1, "a", c.signals...)
			if c.change != nil {
				c.change(&g)
			}
			got := g.Grade()
			if got.Known != (c.missing == "") || got.Missing != c.missing || math.Abs(got.Value-c.want) > 1e-12 {
				t.Errorf("%+v, want %v %q", got, c.want, c.missing)
			}
			if got.Known != (len(got.From) > 0) {
				t.Errorf("it is based on %v", got.From)
			}
		})
	}
}

func TestBlamelessOutcomesGiveNoReward(t *testing.T) {
	none := []policy.Outcome{
		policy.WasUsageLimit, policy.WasRate, policy.WasOverload, policy.WasLost, policy.WasAuth, policy.WasConfig, policy.FellSilent,
		policy.Interrupted, policy.Cancelled, policy.NotPermitted, policy.Asked, policy.Declined, policy.Answered, policy.Planned,
	}
	for _, o := range policy.Outcomes() {
		g := endedAt(1, "a", signalOf(VerifierSource, 0.2, gradeDay))
		g.Facts.Outcome = o
		if want := !slices.Contains(none, o); g.Grade().Known != want {
			t.Errorf("%s: graded %v, want %v", o, g.Grade().Known, want)
		}
	}
}

func TestUsersDecidingSignal(t *testing.T) {
	at := func(h int) time.Time { return gradeDay.Add(time.Duration(h) * time.Hour) }
	for _, c := range []struct {
		name  string
		words []Signal
		want  float64
	}{
		{"merged", []Signal{PeopleSignal(Merged, "a", at(1))}, 1},
		{"reported twice", []Signal{PeopleSignal(Merged, "a", at(1)), PeopleSignal(Merged, "a", at(1))}, 1},
		{"reverted later", []Signal{PeopleSignal(Merged, "a", at(1)), PeopleSignal(Reverted, "b", at(90))}, 0},
		{"a merge reported again after the revert", []Signal{PeopleSignal(Merged, "a", at(1)), PeopleSignal(Reverted, "b", at(90)), PeopleSignal(Merged, "a", at(95))}, 0},
		{"closed, reopened and merged", []Signal{PeopleSignal(ClosedUnmerged, "a", at(1)), PeopleSignal(Merged, "b", at(5))}, 1},
		{"the end outranks a review", []Signal{PeopleSignal(Merged, "a", at(1)), PeopleSignal(ChangesRequested, "b", at(2))}, 1},
		{"the newest review", []Signal{PeopleSignal(ChangesRequested, "a", at(1)), PeopleSignal(Approved, "a", at(2)), PeopleSignal(ChangesRequested, "b", at(3))}, 0.3},
	} {
		t.Run(c.name, func(t *testing.T) {
			slices.Reverse(c.words)
			reversed := endedAt(0, "x", c.words...).Grade()
			slices.Reverse(c.words)
			if got := endedAt(0, "x", c.words...).Grade(); got.Value != c.want || reversed.Value != c.want || !slices.Equal(got.From, []SignalSource{PeopleSource}) {
				t.Errorf("%v by %v, in another order %v; want %v", got.Value, got.From, reversed.Value, c.want)
			}
		})
	}
	if s := PeopleSignal("starred", "a", at(1)); s.usable() || s.Missing == "" {
		t.Errorf("an event without a grade gives %+v", s)
	}
}

func TestRowSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, g := range anyRows(t, 3) {
			b, err := json.Marshal(g)
			if err != nil {
				t.Fatal(err)
			}
			var back Graded
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(g, back); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
	})
}
