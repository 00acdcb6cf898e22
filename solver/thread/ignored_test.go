package thread

import (
	"testing"

	"github.com/pawlbot/pawl/policy"
)

func TestNewestIgnoredRemarksAndRevertsAreKept(t *testing.T) {
	var log arrivals
	log.add(t, KindFeedback, Feedback{Source: policy.FromComment, Command: "solve", MadeAt: second(1), Snapshot: text("a")})
	log.add(t, KindAttemptStarted, Started{N: 1, Run: 1, Seen: 1})
	log.add(t, KindIgnored, editOf(3, "b", "a"))
	for range 3 * maxIgnored {
		log.add(t, KindIgnored, Feedback{Source: policy.FromComment, MadeAt: second(3)})
	}
	s := log.fold(t)
	if len(s.Ignored) != maxIgnored || s.Ignored[0].Description != "a" || s.Ignored[maxIgnored-1].Seq != s.Seq {
		t.Errorf("%d are remembered, from %+v to event %d; want %d, from the revert to event %d",
			len(s.Ignored), s.Ignored[0], s.Ignored[len(s.Ignored)-1].Seq, maxIgnored, s.Seq)
	}
	// The reverted edit arrives late.
	log.add(t, KindFeedback, editOf(2, "a", "b"))
	if p := log.fold(t).Pending(); len(p) != 0 {
		t.Errorf("%+v are pending, want none: strangers' remarks must not restore an edit", p)
	}
}
