package policy

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// marks is a review with these numbers of blocking and other findings.
func marks(blocking, others int) Review {
	return Review{Findings: blocking + others, Blocking: blocking, Weight: 3*blocking + 2*others}
}

// round is an attempt that handled a review. After it, the work adds this number of lines.
func round(r Review, added int) Attempt {
	a := finished()
	a.NewInput, a.Review, a.Added, a.Typed = true, r, added, true
	return a
}

// ordered is an attempt that a user's command started.
func ordered(added int) Attempt { return round(Review{Ordered: true}, added) }

// reviewed returns facts with these attempts, each in its own run, and a review after them.
func reviewed(next Review, all ...Attempt) Facts {
	f := given(all...).asked("")
	for i := range f.Attempts {
		f.Attempts[i].Run = i + 1
	}
	f.Fresh[0].Typed = next.Ordered
	f.Run, f.Review = len(all)+1, next
	return f
}

func TestDivergingRoundsStop(t *testing.T) {
	begins := Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}
	stops := func(reason string) Decision {
		return Decision{Action: DoStop, Rule: "not_converging", Reasons: wanted(reason)}
	}
	waits := Decision{Action: DoStop, Rule: "not_blocking", Reasons: wanted("3 rounds of review ran since a user's command; 2 of 5 are for remarks that are marked as blocking, and none of 1 is")}
	small := []Attempt{ordered(40), round(marks(1, 0), 50), round(marks(1, 0), 60), round(marks(1, 0), 70), round(marks(1, 0), 80), round(marks(1, 0), 90)}
	fruitless, late := round(marks(1, 0), 0), finished()
	fruitless.Outcome, fruitless.EndTree = NoChange, fruitless.StartTree
	late.Added = 100
	cut := fruitless
	cut.Ending, cut.Outcome = UsageLimit, Outcome(UsageLimit)
	lost := round(marks(1, 0), 200)
	lost.Outcome = Interrupted
	grown := func(added ...int) []Attempt {
		all := []Attempt{ordered(added[0])}
		for _, n := range added[1:] {
			all = append(all, round(marks(1, 0), n))
		}
		return all
	}
	found := func(each ...Review) []Attempt {
		all := []Attempt{ordered(400)}
		for i, r := range each {
			all = append(all, round(r, 420+20*i))
		}
		return all
	}
	read(t, []sentence{
		{"the third round needs no blocking remark", reviewed(marks(0, 1), small[:3]...), begins},
		{"the fourth round needs one", reviewed(marks(0, 1), small[:4]...), waits},
		{"the fourth round runs with a blocking remark", reviewed(marks(1, 1), small[:4]...), begins},
		{"the fifth round runs with a blocking remark", reviewed(marks(1, 0), small[:5]...), begins},
		{"the sixth round does not run", reviewed(marks(1, 0), small...), stops("rounds: 5 rounds of review ran since a user's command; the limit is 5")},
		{"a user's command runs after the limit", reviewed(Review{Findings: 1, Ordered: true}, small...), begins},
		{"a user's command restarts the count", reviewed(marks(0, 1), append(small[:6:6], ordered(95), round(marks(0, 1), 99), round(marks(0, 1), 99))...), begins},
		{"feedback that is not a review is not limited", reviewed(Review{}, small...), begins},
		{"a round without changes does not count", reviewed(marks(0, 1), append(small[:3:3], fruitless, fruitless)...), begins},
		{"a round with lost work does not count", reviewed(marks(0, 1), append(small[:3:3], lost)...), begins},
		{"a round of two attempts counts once", reviewed(marks(0, 1), append(small[:2:2], cut, late, late)...), begins},
		{"a fourth round of two attempts counts", reviewed(marks(0, 1), append(small[:3:3], cut, late, late)...), waits},
		{"the work grows", reviewed(marks(1, 0), grown(218, 446, 674, 902)...), stops("growth: the work adds 902 lines, 4.1 times the 218 that were reviewed first; the limit is 3 times")},
		{"the work grows in only two rounds", reviewed(marks(1, 0), grown(218, 600, 902)...), begins},
		{"short work grows", reviewed(marks(1, 0), grown(10, 60, 120, 200)...), begins},
		{"work that was long at first grows", reviewed(marks(1, 0), grown(600, 900, 1300, 1700)...), begins},
		{"growth counts from the last command", reviewed(marks(1, 0), append(grown(218, 600), grown(1000, 1100, 1200, 1300)...)...), begins},
		{"growth counts from the first round if the size before it is unknown", reviewed(marks(1, 0), grown(0, 200, 500, 700)...), stops("growth: the work adds 700 lines, 3.5 times the 200")},
		{"the number of findings does not fall", reviewed(marks(2, 4), found(marks(3, 3), marks(2, 4), marks(1, 5))...),
			stops("findings: 6 of weight 14 (1.3 in 100 added lines), after 18 of weight 42 in 3 rounds: they become neither fewer nor lighter")},
		{"the number of findings grows", reviewed(marks(3, 5), found(marks(3, 3), marks(3, 2), marks(3, 3))...), stops("findings: 8 of weight 19")},
		{"the findings become more severe", reviewed(marks(6, 0), found(marks(1, 5), marks(1, 5), marks(1, 5))...), stops("findings: 6 of weight 18")},
		{"fewer findings continue", reviewed(marks(2, 1), found(marks(3, 5), marks(3, 3), marks(2, 2))...), begins},
		{"lighter findings continue", reviewed(Review{Findings: 6, Blocking: 1, Weight: 8}, found(marks(4, 2), marks(3, 3), marks(2, 4))...), begins},
		{"few findings continue", reviewed(marks(2, 0), found(marks(1, 0), marks(1, 0), marks(1, 0))...), begins},
		{"growth and findings together", reviewed(marks(6, 0), grown(218, 446, 674, 902)...), stops("growth")},
		{"the rest of a review is awaited first", reviewed(marks(0, 1), small[:4]...).with(func(f *Facts) { f.Fresh[0].Source = FromReview }),
			Decision{Action: DoWait, Rule: "gather", Until: noon.Add(gatherReview)}},
	})
}

// The review rounds of real pull requests (docs/verdicts.md): 40 that were merged, and some that were never merged.
func TestRecordedPullRequestsStopOnlyIfDiverging(t *testing.T) {
	play := func(first int, rounds ...Attempt) (ran int, rule Rule) {
		all := []Attempt{ordered(first)}
		for _, r := range rounds {
			if d := Next(reviewed(r.Review, all...)); d.Action != DoAttempt {
				return len(all) - 1, d.Rule
			}
			all = append(all, r)
		}
		return len(all) - 1, ""
	}
	merged := []Attempt{round(marks(2, 3), 150), round(marks(1, 3), 170), round(marks(1, 2), 190), round(marks(1, 1), 195), round(marks(1, 0), 200)}
	for rounds, pulls := range []int{17, 12, 4, 3, 1, 3} {
		for range pulls {
			if ran, rule := play(120, merged[:rounds]...); ran != rounds {
				t.Errorf("a pull request merged after %d rounds stops after %d by %s", rounds, ran, rule)
			}
		}
	}
	if ran, rule := play(120, append(merged, merged[4])...); ran != 5 || rule != RuleNotConverging {
		t.Errorf("the sixth round: %d ran, then %s", ran, rule)
	}
	// Never merged: a pull request whose findings do not decrease, then three that grow with one finding per round.
	var findings []Attempt
	for _, n := range []int{9, 8, 16, 11, 7, 6, 4, 6, 2, 6} {
		findings = append(findings, round(marks(n, 0), 300))
	}
	if ran, rule := play(300, findings...); ran != 3 || rule != RuleNotConverging {
		t.Errorf("findings: %d rounds, then %q", ran, rule)
	}
	for _, first := range []int{218, 251, 272} {
		var grows []Attempt
		for i := range 16 {
			grows = append(grows, round(marks(1, 0), first+228*(i+1)))
		}
		if ran, rule := play(first, grows...); ran != 3 || rule != RuleNotConverging {
			t.Errorf("from %d lines: %d rounds, then %q", first, ran, rule)
		}
	}
}

func TestDecreasingReviewsContinueToTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, added := rapid.IntRange(5, 40).Draw(t, "findings"), rapid.IntRange(1, 5000).Draw(t, "lines")
		all, most := []Attempt{ordered(added)}, max(3*added, added+fewLines-1)
		for i := range 5 {
			n = rapid.IntRange(1, max(1, n-1)).Draw(t, "findings")
			r := marks(rapid.IntRange(1, n).Draw(t, "blocking"), 0)
			r.Findings, r.Weight = n, 2*n+r.Blocking
			if i > 0 {
				r.Weight = min(r.Weight, max(3, all[i].Review.Weight-1))
			}
			if d := Next(reviewed(r, all...)); d.Action != DoAttempt {
				t.Fatalf("round %d: %s %q", i+1, d.Rule, d.Reasons)
			}
			added = rapid.IntRange(added, most).Draw(t, "lines after")
			all = append(all, round(r, added))
		}
		if d := Next(reviewed(marks(1, 0), all...)); d.Rule != RuleNotConverging || !slices.Contains(d.Reasons.Texts(), "rounds: 5 rounds of review ran since a user's command; the limit is 5") {
			t.Fatalf("the sixth round: %+v", d)
		}
	})
}
