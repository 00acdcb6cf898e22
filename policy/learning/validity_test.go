package learning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
)

// judgedBy returns the judged row with this ID.
func judgedBy(t *testing.T, l Learned, id string) Judged {
	t.Helper()
	for _, j := range l.Judged() {
		if j.ID == id {
			return j
		}
	}
	t.Fatalf("no row %s", id)
	return Judged{}
}

func TestImplausibleCombinationsAreQuarantined(t *testing.T) {
	at := gradeDay
	merged := PeopleSignal(Merged, "ann", at.Add(50*time.Hour))
	for _, c := range []struct {
		name     string
		change   func(*Graded)
		signals  []Signal
		check    ValidityRule // empty if no violation is expected
		rewarded bool
	}{
		{name: "judge's floor, commits pushed", signals: []Signal{signalOf(JudgeSource, 0.02, at)}, rewarded: true},
		{name: "judge's floor, verifier passed", signals: []Signal{signalOf(JudgeSource, 0.02, at), signalOf(VerifierSource, 1, at)}, check: FloorWithWork, rewarded: true},
		{name: "judge's floor, verifier failed", signals: []Signal{signalOf(JudgeSource, 0.02, at), signalOf(VerifierSource, 0.2, at)}, rewarded: true},
		{name: "judge's floor, checks passed", signals: []Signal{signalOf(JudgeSource, 0.02, at), signalOf(CISource, 1, at)}, check: FloorWithWork, rewarded: true},
		{name: "judge's floor, checks and verifier differ", signals: []Signal{signalOf(JudgeSource, 0.02, at), signalOf(CISource, 1, at), signalOf(VerifierSource, 0.2, at)}, rewarded: true},
		{name: "judge's floor, nothing pushed", signals: []Signal{signalOf(JudgeSource, 0.02, at)}, change: func(g *Graded) { g.Facts.Commits = 0 }, rewarded: true},
		{name: "judge's floor, merged", signals: []Signal{signalOf(JudgeSource, 0.02, at), merged}, check: FloorWithWork, rewarded: true},
		{name: "judge's floor, closed", signals: []Signal{signalOf(JudgeSource, 0.02, at), PeopleSignal(ClosedUnmerged, "ann", at)}, rewarded: true},
		{name: "edit loop with pushed commits", signals: []Signal{signalOf(SeveritySource, 0.08, at)}, rewarded: true},
		{name: "edit loop with a passed verification", signals: []Signal{signalOf(SeveritySource, 0.08, at), signalOf(VerifierSource, 1, at)}, check: FloorWithWork, rewarded: true},
		{name: "top grade without change", signals: []Signal{signalOf(JudgeSource, 0.95, at)}, change: func(g *Graded) { g.Facts.Commits, g.Facts.Changed = 0, false }, check: TopWithoutChange},
		{name: "top grade with change", signals: []Signal{signalOf(JudgeSource, 1, at)}, rewarded: true},
		{name: "merged without change", signals: []Signal{merged}, change: func(g *Graded) { g.Facts.Commits, g.Facts.Changed = 0, false }},
		{name: "a stub", signals: []Signal{signalOf(TrajectorySource, 0.7, at)}, change: func(g *Graded) { g.Facts.Transcript.Bytes = 511 }, check: StubTranscript},
		{name: "short because it crashed at once", signals: []Signal{signalOf(TrajectorySource, 0.1, at)}, change: func(g *Graded) {
			g.Facts.Transcript.Bytes, g.Facts.Changed, g.Facts.Commits, g.Facts.Outcome = 100, false, 0, policy.HasCrashed
		}, rewarded: true},
		{name: "no transcript", signals: []Signal{signalOf(VerifierSource, 1, at)}, change: func(g *Graded) { g.Facts.Transcript = nil }, rewarded: true},
		{name: "a transcript without metadata", signals: []Signal{signalOf(VerifierSource, 1, at)}, change: func(g *Graded) { g.Facts.Transcript = &Transcript{Bytes: 9000} }, rewarded: true},
		{name: "a usage limit is not judged", signals: []Signal{signalOf(JudgeSource, 0.02, at)}, change: func(g *Graded) { g.Facts.Outcome = policy.Outcome(policy.UsageLimit) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := endedAt(1, "a", c.signals...)
			if c.change != nil {
				c.change(&g)
			}
			l := Learn([]Graded{g}, later)
			j := judgedBy(t, l, g.ID)
			if j.Rewarded() != c.rewarded {
				t.Errorf("rewarded %v: %+v", j.Rewarded(), j)
			}
			if p := l.Arms(g.Context, []policy.Option{{Backend: "a"}})[0].Posterior; (p.N == 1) != c.rewarded {
				t.Errorf("the posterior is %+v", p)
			}
			found := l.Violations()
			if (c.check == "") != (len(found) == 0) || len(found) > 0 && (found[0].Check != c.check || found[0].Attempt != g.ID || found[0].Reason == "") {
				t.Errorf("found %+v, want %q", found, c.check)
			}
			if c.check != "" && !c.rewarded && !slices.Contains(j.Quarantine, found[0].Reason) {
				t.Errorf("the quarantine does not say %q: %q", found[0].Reason, j.Quarantine)
			}
		})
	}
}

// rowsOf returns n rows, an hour apart.
func rowsOf(n int, make func(i int) []Signal) []Graded {
	var rows []Graded
	for i := range n {
		rows = append(rows, endedAt(i, []string{"a", "b"}[i%2], make(i)...))
	}
	return rows
}

func TestConstantSourceIsStuck(t *testing.T) {
	at := gradeDay
	for _, c := range []struct {
		name  string
		n     int
		make  func(i int) []Signal
		stuck bool
	}{
		{"nine times", 9, func(int) []Signal { return []Signal{signalOf(JudgeSource, 0.5, at)} }, false},
		{"ten times", 10, func(int) []Signal { return []Signal{signalOf(JudgeSource, 0.5, at)} }, true},
		{"with gaps", 19, func(i int) []Signal {
			if i%2 == 1 {
				return []Signal{missing(JudgeSource, at, false, "not asked")}
			}
			return []Signal{signalOf(JudgeSource, 0.5, at)}
		}, true},
		{"only for one backend", 20, func(i int) []Signal {
			return []Signal{signalOf(JudgeSource, map[bool]float64{true: 0.5, false: 0.6 + float64(i)/100}[i%2 == 0], at)}
		}, true},
		{"another value between", 19, func(i int) []Signal {
			return []Signal{signalOf(JudgeSource, map[bool]float64{true: 0.6, false: 0.5}[i == 9 || i == 10], at)}
		}, false},
		{"the same from different counts", 15, func(i int) []Signal {
			return []Signal{signalOf(VerifierSource, 1, at), TrajectorySignal(policy.Receipt{ToolCalls: 5, Edits: policy.Edits{Operations: i}, StartTree: "1", EndTree: "2", Ending: policy.Completed}, at)}
		}, false},
		{"the same from the same counts", 10, func(int) []Signal {
			return []Signal{TrajectorySignal(policy.Receipt{ToolCalls: 5, Edits: policy.Edits{Operations: 2}, StartTree: "1", EndTree: "2", Ending: policy.Completed}, at)}
		}, true},
		{"a verifier that passes", 30, func(int) []Signal { return []Signal{signalOf(VerifierSource, 1, at)} }, false},
		{"a verifier that always fails", 10, func(int) []Signal { return []Signal{signalOf(VerifierSource, 0.2, at)} }, true},
		{"people", 30, func(int) []Signal { return []Signal{PeopleSignal(Merged, "ann", at)} }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := Learn(rowsOf(c.n, c.make), later)
			found := slices.ContainsFunc(l.Violations(), func(v Violation) bool { return v.Check == Stuck })
			if found != c.stuck {
				t.Fatalf("stuck %v, want %v: %+v", found, c.stuck, l.Violations())
			}
			for _, j := range l.Judged() {
				// If a source is stuck, it is stuck for backend a.
				if j.Rewarded() == c.stuck && (!c.stuck || j.Backend == "a") {
					t.Errorf("%s: %+v", j.ID, j)
				}
			}
		})
	}
	one := rowsOf(12, func(int) []Signal { return []Signal{signalOf(VerifierSource, 0.2, at)} })
	for i := range one {
		one[i].Backend = "a"
	}
	if l := Learn(one, later); len(l.Violations()) != 0 {
		t.Error("one backend that always fails was taken for a stuck verifier")
	}
}

func TestStuckSourceIsIgnored(t *testing.T) {
	l := Learn(rowsOf(12, func(int) []Signal {
		return []Signal{signalOf(JudgeSource, 0.3, gradeDay), signalOf(VerifierSource, 1, gradeDay)}
	}), later)
	for _, j := range l.Judged() {
		if !j.Rewarded() || j.Grade.Value != 1 {
			t.Errorf("%+v", j)
		}
	}
}

func TestUnavailableSourceIsFound(t *testing.T) {
	// The rows are an hour apart, so a day has 24. The source fails in the last n rows.
	failing := func(rows, n int) Learned {
		return Learn(rowsOf(rows, func(i int) []Signal {
			if i >= rows-n {
				return []Signal{missing(JudgeSource, gradeDay, true, "quota exhausted")}
			}
			return []Signal{signalOf(JudgeSource, 0.4+float64(i)/100, gradeDay)}
		}), later)
	}
	for _, c := range []struct {
		rows, failed int
		want         bool
	}{{9, 5, false}, {10, 2, false}, {10, 3, true}, {24, 4, false}, {24, 5, true}} {
		l := failing(c.rows, c.failed)
		v := l.Violations()
		if (len(v) == 1) != c.want {
			t.Errorf("%d of %d failed: %+v", c.failed, c.rows, v)
		}
		if c.want && (v[0].Check != Unavailable || !strings.Contains(v[0].Reason, "quota exhausted")) {
			t.Errorf("%+v", v[0])
		}
	}
	if v := failing(60, 30).Violations(); len(v) != 2 {
		t.Errorf("30 hours of failures are %d violations, want one per day", len(v))
	}
}

func TestMoreThanTwoViolationsInSevenDaysDegradeASource(t *testing.T) {
	floor := func(n int) Graded {
		return endedAt(n, "a", signalOf(JudgeSource, 0.02, gradeDay), signalOf(VerifierSource, 1, gradeDay))
	}
	rows := []Graded{floor(1), floor(2)}
	healthOf := func(now time.Time) SourceHealth { return Learn(rows, now).Health()[JudgeSource.place()] }
	at := func(hours int) time.Time { return gradeDay.Add(time.Duration(hours) * time.Hour) }
	if h := healthOf(at(3)); h.Degraded || len(h.Violations) != 2 || h.Coverage != 1 || h.Valid != 0 {
		t.Errorf("after two: %+v", h)
	}
	rows = append(rows, floor(3), endedAt(4, "a", signalOf(JudgeSource, 0.02, gradeDay), signalOf(VerifierSource, 1, gradeDay)))
	h := healthOf(at(4))
	if !h.Degraded || !strings.Contains(h.Reason, "o/r#3/1") {
		t.Errorf("after three: %+v", h)
	}
	l := Learn(rows, at(5))
	for _, j := range l.Judged() { // the verifier alone decides
		if !j.Rewarded() || j.Grade.Value != 1 {
			t.Errorf("%s: %+v", j.ID, j)
		}
	}
	if j := l.Judged()[3]; j.Grade.Value != 1 {
		t.Errorf("a degraded judge is still part of the grade: %+v", j.Grade)
	}
	if h := healthOf(at(4 + 7*24)); h.Degraded {
		t.Errorf("seven days later: %+v", h)
	}
}

func TestCoverageIsNotValidity(t *testing.T) {
	rows := rowsOf(12, func(i int) []Signal {
		signals := []Signal{signalOf(JudgeSource, 0.5, gradeDay)}
		if i < 3 {
			signals = append(signals, signalOf(VerifierSource, 1, gradeDay))
		}
		return signals
	})
	limited := endedAt(12, "a")
	limited.Facts.Outcome = policy.Outcome(policy.UsageLimit)
	health := Learn(append(rows, limited), gradeDay.Add(24*time.Hour)).Health()
	if len(health) != len(SignalSources()) {
		t.Fatalf("%d sources", len(health))
	}
	if j := health[JudgeSource.place()]; j.Attempts != 12 || j.Coverage != 1 || j.Valid != 0 || !j.Degraded {
		t.Errorf("stuck judge: %+v", j)
	}
	if v := health[VerifierSource.place()]; v.Coverage != 0.25 || v.Valid != 1 || v.Degraded {
		t.Errorf("rare verifier: %+v", v)
	}
	if p := health[0]; p.Coverage != 0 || p.Degraded || p.Attempts != 12 {
		t.Errorf("users: %+v", p)
	}
}

func TestQuarantinedRowMovesNoPosterior(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Learn(anyRows(t, 20), later)
		rewarded := map[string]int{}
		for _, j := range l.Judged() {
			if j.Rewarded() {
				rewarded[j.Backend]++
			} else if j.Grade.Missing == "" && len(j.Quarantine) == 0 {
				t.Fatalf("%s has no reward and no reason: %+v", j.ID, j)
			}
		}
		for _, a := range l.Arms(policy.Context{}, []policy.Option{{Backend: "a"}, {Backend: "b"}, {Backend: "c"}}) {
			if a.Rewards != rewarded[a.Backend] {
				t.Fatalf("%s has %d rewards in its posterior, %d attempts are rewarded", a.Backend, a.Rewards, rewarded[a.Backend])
			}
		}
	})
}

// An issue reported this incident. Two attempts ran concurrently on one host, and both pushed real commits. Both were
// graded with the log of a third session, which had only its first lines. The judge's quota was used up, so it gave no
// answer for one attempt and the lowest grade for the other.
func TestReportedGradingIncident(t *testing.T) {
	var rows []Graded
	for i := range 30 {
		rows = append(rows, endedAt(i, []string{"a", "b"}[i%2], signalOf(VerifierSource, 1, gradeDay), signalOf(JudgeSource, 0.7+float64(i)/200, gradeDay)))
	}
	before := Learn(rows, later)
	end := gradeDay.Add(40 * time.Hour)
	answers := []Signal{JudgeSignal(&policy.Judged{Error: "quota exhausted"}, end),
		{Source: JudgeSource, Value: 0.02, Known: true, Failed: true, Missing: "quota exhausted", At: end}}
	for i, answer := range answers {
		g := endedAt(40, []string{"a", "b"}[i], answer,
			TrajectorySignal(policy.Receipt{Trajectory: policy.Trajectory{Bytes: 200}, ToolCalls: 1, Ending: policy.Completed}, end),
			JournalSignal(policy.Receipt{Final: "I have fixed it."}, Signal{}, end))
		g.ID = fmt.Sprintf("o/r#%d/1", 40+i)
		g.Facts.Transcript.Bytes, g.Facts.Commits = 200, 2
		rows = append(rows, g)
	}
	after := Learn(rows, later)
	known := func(l Learned, backend string) Posterior {
		return l.Arms(rows[0].Context, []policy.Option{{Backend: backend}})[0].Posterior
	}
	for _, backend := range []string{"a", "b"} {
		was, is := known(before, backend), known(after, backend)
		if was != is {
			t.Errorf("the posterior of %s moved from %+v to %+v", backend, was, is)
		}
	}
	for _, id := range []string{"o/r#40/1", "o/r#41/1"} {
		why := strings.Join(judgedBy(t, after, id).Quarantine, "\n")
		for _, reason := range []string{"stub of 200 bytes", "quota exhausted"} {
			if !strings.Contains(why, reason) {
				t.Errorf("%s is not quarantined for %q:\n%s", id, reason, why)
			}
		}
	}
	for i := range 2 {
		g := &rows[30+i]
		g.Signals = append(g.Signals, PeopleSignal(Merged, "ann", end.Add(72*time.Hour)))
	}
	merged := Learn(rows, later)
	for i, backend := range []string{"a", "b"} {
		if j := judgedBy(t, merged, rows[30+i].ID); !j.Rewarded() || j.Grade.Value != 1 {
			t.Errorf("the merge did not reward %s: %+v", j.ID, j)
		}
		was, is := known(before, backend), known(merged, backend)
		if is.N != was.N+1 || is.Mean <= was.Mean {
			t.Errorf("after the merge %s has %+v, before the incident %+v", backend, is, was)
		}
	}
}
