package simulate

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/policy"
)

func ran(t *testing.T, o Options) Report {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestLearningPays runs fewer seeds and numbers of arms than pawl simulate does,
// which make eval runs in full.
func TestLearningPays(t *testing.T) {
	r := ran(t, Options{Attempts: 500, Arms: []int{2, 5}, Seeds: 5, Scenarios: Scenarios()})
	for _, missed := range r.Missed() {
		t.Error(missed)
	}
	for _, c := range r.Cells {
		if c.Unchecked != nil && c.Unchecked.Mean <= c.Regret.Mean {
			t.Errorf("%s with %d arms: validation brings nothing: regret %v with, %v without", c.Scenario, c.Arms, c.Regret.Mean, c.Unchecked.Mean)
		}
	}
}

func TestTheSameOptionsGiveTheSameReport(t *testing.T) {
	o := Options{Attempts: 60, Arms: []int{2, 3}, Seeds: 4, Scenarios: Scenarios()}
	first := ran(t, o)
	if diff := cmp.Diff(first, ran(t, o)); diff != "" {
		t.Error(diff)
	}
	if _, err := json.Marshal(first); err != nil {
		t.Error(err)
	}
	var text strings.Builder
	if err := first.Text(&text); err != nil || strings.Count(text.String(), "targeted") != 4 {
		t.Errorf("%v\n%s", err, text.String())
	}
	d := xml.NewDecoder(strings.NewReader(first.SVG()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(first.SVG(), "NaN") {
		t.Error("the picture holds what is no number")
	}
}

func TestOneAttemptInFiveIsCorrupted(t *testing.T) {
	count := func(s Scenario, arm, bestArm int) float64 {
		hit, all := 0.0, 0.0
		for seed := range 40 {
			w := newWorld(task{s, 3, seed + 1}, 500)
			for i := range 500 {
				all++
				if w.faultOf(i, arm, bestArm) != none {
					hit++
				}
			}
		}
		return hit / all
	}
	for _, c := range []struct {
		scenario     Scenario
		arm, bestArm int
		want         float64
	}{{Stationary, 0, 0, 0}, {Drifting, 0, 0, 0}, {Corrupted, 0, 1, 0.2}, {Corrupted, 1, 1, 0.2}, {Targeted, 1, 1, 0.4}, {Targeted, 0, 1, 0}} {
		if got := count(c.scenario, c.arm, c.bestArm); math.Abs(got-c.want) > 0.02 {
			t.Errorf("%s, arm %d of best %d: %.3f, want %.1f", c.scenario, c.arm, c.bestArm, got, c.want)
		}
	}
}

func TestEachFaultIsFoundByItsRule(t *testing.T) {
	w := newWorld(task{Corrupted, 2, 1}, 40)
	for f, want := range map[fault]policy.Check{failingJudge: policy.FloorWithWork, stub: policy.StubTranscript, race: policy.ForeignTranscript, stuckJudge: policy.Stuck} {
		var rows []policy.Graded
		for i := range 30 {
			row, _ := w.attempt(i, i%2)
			w.corrupt(&row, f, i, w.chance(i, 0, 6))
			rows = append(rows, row)
		}
		found := map[policy.Check]bool{}
		for _, v := range policy.Learn(rows, rows[29].At).Violations() {
			found[v.Check] = true
		}
		if !found[want] {
			t.Errorf("fault %d is not found as %s: %v", f, want, found)
		}
	}
}

func TestHonestSignalsAreSeldomSuspected(t *testing.T) {
	found, all := 0, 0
	for seed := range 20 {
		w := newWorld(task{Stationary, 3, seed + 1}, 500)
		var rows []policy.Graded
		for i := range 500 {
			row, said := w.attempt(i, i%3)
			if said != nil {
				row.Signals = append(row.Signals, *said)
			}
			rows = append(rows, row)
		}
		all += len(rows)
		found += len(policy.Learn(rows, rows[499].At).Violations())
	}
	if share := float64(found) / float64(all); share > 0.02 {
		t.Errorf("%d violations in %d attempts with honest signals", found, all)
	} else {
		t.Logf("%d violations in %d attempts with honest signals", found, all)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	good := Options{Attempts: 100, Arms: []int{2}, Seeds: 2, Scenarios: []Scenario{Stationary}}
	for _, change := range []func(*Options){
		func(o *Options) { o.Attempts = 5 }, func(o *Options) { o.Attempts = 1 << 30 }, func(o *Options) { o.Seeds = 1 },
		func(o *Options) { o.Arms = nil }, func(o *Options) { o.Arms = []int{1} }, func(o *Options) { o.Arms = []int{2, 50} },
		func(o *Options) { o.Scenarios = nil }, func(o *Options) { o.Scenarios = []Scenario{"stormy"} },
	} {
		o := good
		change(&o)
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Run(ctx, good); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
