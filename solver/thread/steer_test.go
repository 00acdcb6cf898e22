package thread

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

func steer(by, text string) happened {
	return happened{KindFeedback, Feedback{Source: policy.FromComment, Command: "steer", Text: text, By: feedback.Actor{Login: by, Type: "User"}}}
}

func took(n int, seqs ...int64) happened { return happened{KindSteered, Steered{N: n, Seqs: seqs}} }

// asked returns the texts and words of a thread's questions.
func asked(s State) (out []string) {
	for _, q := range s.Questions {
		out = append(out, q.Text+": "+q.Word)
	}
	return out
}

func TestSteersOfARunningAttempt(t *testing.T) {
	interrupted := policy.Receipt{Ending: policy.Killed, Outcome: policy.Interrupted}
	for name, c := range map[string]struct {
		log     []happened
		steers  []string // for the agent, taken or not
		pending []string // feedback that no attempt took
		work    []string // in the next prompt
		replies []string
		by      []policy.Steerer // the last attempt's
	}{
		"before an attempt": {
			log: []happened{solve("one"), steer("ada", "left")}, pending: []string{"one", "left"}, work: []string{"one", "left"},
		},
		"in the first prompt": {
			log: []happened{solve("one"), steer("ada", "left"), start(1, 1, 2)}, work: []string{"one", "left"},
		},
		"during an attempt": {
			log:    []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), steer("grace", "right")},
			steers: []string{"left", "right"}, pending: []string{"left", "right"}, work: []string{"one", "left", "right"},
		},
		"between the decision and the attempt's start": {
			log: []happened{solve("one"), steer("ada", "left"), start(1, 1, 1), steer("ada", "right")},
			// The first text is feedback like any other: no attempt ran.
			steers: []string{"right"}, pending: []string{"left", "right"}, work: []string{"one", "left", "right"},
		},
		"taken": {
			log:    []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), took(1, 3), steer("ada", "right"), took(1, 5)},
			steers: []string{"left", "right"}, work: []string{"one", "left", "right"}, by: []policy.Steerer{{By: "ada", Times: 2}},
		},
		"taken, then the node is killed": {
			log:  []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), took(1, 3), end(1, interrupted)},
			work: []string{"one", "left"}, by: []policy.Steerer{{By: "ada", Times: 1}},
		},
		"the node is killed before the agent takes it": {
			log:     []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), end(1, interrupted)},
			pending: []string{"left"}, work: []string{"one", "left"}, replies: []string{"left: missed"},
		},
		"taken, then the attempt completes": {
			log: []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), took(1, 3), end(1, edited("c1"))},
			by:  []policy.Steerer{{By: "ada", Times: 1}},
		},
		"the attempt ends before the agent takes it": {
			log:     []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), end(1, edited("c1"))},
			pending: []string{"left"}, work: []string{"left"}, replies: []string{"left: missed"},
		},
		"the same, but the agent wrote the text": {
			log:     []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), end(1, edited("c1")), {KindWithdrawn, Withdrawn{Seqs: []int64{3}, Reason: "the agent's"}}},
			replies: nil,
		},
		"withdrawn without a reason": {
			log: []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), {KindWithdrawn, Withdrawn{Seqs: []int64{3}}}, took(1, 3)},
			// The text still counts.
			steers: []string{"left"}, work: []string{"one", "left"}, by: []policy.Steerer{{By: "ada", Times: 1}},
		},
		"taken twice": {
			log:    []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), took(1, 3), took(1, 3)},
			steers: []string{"left"}, work: []string{"one", "left"}, by: []policy.Steerer{{By: "ada", Times: 1}},
		},
		"taken in another attempt's name": {
			log:    []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), took(2, 3)},
			steers: []string{"left"}, pending: []string{"left"}, work: []string{"one", "left"},
		},
		"handed over after it was taken": {
			log:     []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), took(1, 3), handoverOf(1, 5)},
			pending: []string{"one", "left"}, work: []string{"one", "left"},
		},
		"handed over and continued": {
			log:    []happened{solve("one"), start(1, 1, 1), steer("ada", "left"), took(1, 3), handoverOf(1, 5), start(1, 1, 5), steer("ada", "right")},
			steers: []string{"right"}, pending: []string{"right"}, work: []string{"one", "left", "right"}, by: []policy.Steerer{{By: "ada", Times: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fold(t, c.log...)
			for what, d := range map[string]string{
				"steers":  cmp.Diff(c.steers, textsOf(s.Steers())),
				"pending": cmp.Diff(c.pending, textsOf(s.Pending())),
				"work":    cmp.Diff(c.work, textsOf(s.Work(policy.ToChange))),
				"replies": cmp.Diff(c.replies, asked(s)),
			} {
				if d != "" {
					t.Errorf("%s (-want +got)\n%s", what, d)
				}
			}
			var by []policy.Steerer
			if n := len(s.Attempts); n > 0 {
				by = s.Fact(s.Attempts[n-1]).Steered
			}
			if d := cmp.Diff(c.by, by); d != "" {
				t.Errorf("steered by (-want +got)\n%s", d)
			}
		})
	}
}

func TestEleventhSteerIsFeedbackForTheNextAttempt(t *testing.T) {
	log := []happened{solve("one"), start(1, 1, 1)}
	for range 5 {
		log = append(log, steer("ada", "more"), took(1, int64(len(log)+1)))
	}
	// The next attempt of the same number continues the count.
	log = append(log, handoverOf(1, 5), start(1, 1, int64(len(log)+1)))
	for range 5 {
		log = append(log, steer("ada", "more"))
	}
	last := int64(len(log) + 1)
	log = append(log, steer("ada", "too much"))
	s := fold(t, log...)
	if got := s.Steers(); len(got) != 5 {
		t.Errorf("%d texts for the agent, want 5 after the handover: %q", len(got), textsOf(got))
	}
	if d := cmp.Diff([]string{"too much: full"}, asked(s)); d != "" {
		t.Errorf("told (-want +got)\n%s", d)
	}
	answer := happened{KindActDone, Act{Key: AnswerKey(last)}}
	s = fold(t, append(slices.Clone(log), answer, end(1, edited("c1")), start(2, 1, last+2), steer("ada", "again"))...)
	if got := textsOf(s.takenBy(2)); !slices.Contains(got, "too much") || len(s.Steers()) != 1 {
		t.Errorf("the next attempt took %q and has %d new texts for its agent, want 1", got, len(s.Steers()))
	}
	if d := cmp.Diff(slices.Repeat([]string{"more: missed"}, 5), asked(s)); d != "" {
		t.Errorf("told after the attempt (-want +got)\n%s", d)
	}
}

func TestEditedSteerReplacesAWaitingOne(t *testing.T) {
	version := func(comment int64, text string) happened {
		h := steer("ada", text)
		f := h.data.(Feedback)
		f.Target = Target{Kind: "issue_comment", ID: comment}
		h.data = f
		return h
	}
	s := fold(t, solve("one"), start(1, 1, 1), version(7, "left"), version(8, "up"), version(7, "right"))
	if got := textsOf(s.Steers()); !slices.Equal(got, []string{"up", "right"}) {
		t.Errorf("the agent gets %q, want each comment's last version", got)
	}
	s = fold(t, solve("one"), start(1, 1, 1), version(7, "left"), took(1, 3), version(7, "right"))
	if got := textsOf(s.Steers()); !slices.Equal(got, []string{"left", "right"}) {
		t.Errorf("the agent gets %q, want both: it had received the first", got)
	}
}

// An attempt that only merges the base has no agent to interrupt.
func TestSteerOfAnAttemptWithoutAgentIsFeedback(t *testing.T) {
	merge := happened{KindAttemptStarted, Started{N: 1, Run: 1, NoAgent: true, Seen: 1}}
	s := fold(t, solve("one"), merge, steer("ada", "left"), end(1, edited("c1")))
	if got := s.Feedback[1].Steer; got != policy.SteerIdle || len(s.Pending()) != 1 || len(s.Questions) != 0 {
		t.Errorf("%q, %d pending and %d answers; want feedback without an answer", got, len(s.Pending()), len(s.Questions))
	}
}

func TestSteerHasThePurposeOfTheRunningAttempt(t *testing.T) {
	ask := happened{KindFeedback, Feedback{Source: policy.FromComment, Command: "ask", Text: "where?"}}
	begin := happened{KindAttemptStarted, Started{N: 1, Run: 1, Seen: 1, Decision: policy.Decision{Purpose: policy.ToAnswer}}}
	s := fold(t, ask, begin, steer("ada", "in the folder a"))
	if got := s.Feedback[1].Purpose; got != policy.ToAnswer || len(s.Steers()) != 1 {
		t.Errorf("purpose %q with %d texts for the agent, want the question's and 1", got, len(s.Steers()))
	}
}

func textsOf(all []Request) (out []string) {
	for _, r := range all {
		out = append(out, r.Text)
	}
	return out
}
