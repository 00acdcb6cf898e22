package handlers

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestAgentsRemarkNeedsARunningAttempt(t *testing.T) {
	began := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	var events []thread.Event
	add := func(k thread.Kind, after time.Duration, data any) {
		text, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, thread.Event{Seq: int64(len(events) + 1), Kind: k, At: began.Add(after), Data: text})
	}
	wrote := func(n int, text string) thread.Authored {
		var w feedback.Authored
		w.Add(text, false)
		return thread.Authored{N: n, Runs: w.Fresh()}
	}
	add(thread.KindAttemptStarted, 0, thread.Started{N: 1})
	add(thread.KindAuthored, time.Minute, wrote(1, "the first half of what it"))
	add(thread.KindAuthored, 2*time.Minute, wrote(1, "half of what it said there"))
	add(thread.KindAttemptEnded, 10*time.Minute, policy.Receipt{N: 1})
	add(thread.KindAttemptStarted, time.Hour, thread.Started{N: 2})
	add(thread.KindAuthored, time.Hour+time.Minute, wrote(2, "another attempt said this instead"))
	state, err := thread.Fold(events)
	if err != nil {
		t.Fatal(err)
	}
	const first, second = "The first half of what it said there.", "Another attempt said this instead."
	for _, c := range []struct {
		remark string
		after  time.Duration
		want   bool
	}{
		{first, 5 * time.Minute, true},
		{first, 10*time.Minute + ownAfter, true},
		{first, -ownAfter - time.Second, false},
		{first, 10*time.Minute + ownAfter + time.Second, false},
		{first, 2 * time.Hour, false},
		{second, 5 * time.Minute, false},
		{second, 24 * time.Hour, true}, // it still runs
		{first + " " + second, 5 * time.Minute, false},
	} {
		agents, err := writings(events, state, began.Add(c.after))
		if err != nil {
			t.Fatal(err)
		}
		if got := feedback.WroteAll([]string{c.remark}, agents...); got != c.want {
			t.Errorf("%q %v after the start is the agent's: %t, want %t", c.remark, c.after, got, c.want)
		}
	}
}
