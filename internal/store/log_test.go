package store_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/solver/thread"
)

func seqIsGaplessUnderConcurrentAppends(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				// Two writers use every key; only one of them appends it.
				key := fmt.Sprintf("%d-%d", w/2, i)
				if _, err := s.Append(t.Context(), issue(1), i%3 == 0, event(key, w), event("", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	events := must(s.Events(t.Context(), issue(1), 0))(t)
	if want := writers*each + writers/2*each; len(events) != want {
		t.Errorf("%d events, want %d", len(events), want)
	}
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has seq %d", i, e.Seq)
		}
	}
}

func aRepeatedKeyIsNotAppendedAgain(t *testing.T, dsn string) {
	s, r, _ := open(t, dsn)
	ctx := t.Context()
	if n := must(s.Append(ctx, issue(1), true, event("a", 1), event("a", 2), event("", 3)))(t); n != 2 {
		t.Errorf("%d events were new, want 2", n)
	}
	must(s.Acquire(ctx, issue(1), "node"))(t) // clears the wake-up
	r.take()
	if n := must(s.Append(ctx, issue(1), true, event("a", 4)))(t); n != 0 {
		t.Errorf("%d events were new, want none", n)
	}
	wantWakes(t, r, 0)
	if n := must(s.Append(ctx, issue(2), false, event("a", 5)))(t); n != 1 {
		t.Error("a key of one thread kept an event out of another")
	}
	if n := must(s.Append(ctx, issue(1), false, event("b", 6)))(t); n != 1 {
		t.Error("a new key was not appended")
	}
	if got := must(s.Events(ctx, issue(1), 2))(t); len(got) != 1 || got[0].Seq != 3 {
		t.Errorf("the log continues with %v", got)
	}
}

func eventsComeBackAsTheyWereAppended(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	ctx := t.Context()
	at := time.Date(2026, 11, 21, 8, 0, 0, 123456000, time.FixedZone("X", 3600))
	hostile := "quote ' \x00 \u2028 😀 \\u0000"
	must(s.Append(ctx, issue(1), false,
		thread.NewEvent{Kind: thread.KindFeedback, At: at, Data: map[string]string{"text": hostile}},
		thread.NewEvent{Kind: thread.KindDecision}))(t)
	got := must(s.Events(ctx, issue(1), 0))(t)
	data, _ := json.Marshal(map[string]string{"text": hostile})
	want := []thread.Event{
		{Seq: 1, Kind: thread.KindFeedback, At: at.UTC(), Data: data},
		{Seq: 2, Kind: thread.KindDecision, Data: json.RawMessage("null")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := must(s.Events(ctx, issue(2), 0))(t); len(got) != 0 {
		t.Errorf("an unknown thread has the log %v", got)
	}
}

func anAliasBelongsToItsThread(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	ctx := t.Context()
	l := must(s.Acquire(ctx, issue(1), "node"))(t)
	check(t, s.AppendLeased(ctx, l, thread.Batch{Alias: 7}))
	check(t, s.AppendLeased(ctx, l, thread.Batch{Alias: 7}))
	other := thread.ID{Owner: "octo", Name: "dog", Number: 7}
	for in, want := range map[thread.ID]thread.ID{issue(7): issue(1), issue(1): issue(1), issue(8): issue(8), other: other} {
		if got := must(s.Resolve(ctx, in))(t); got != want {
			t.Errorf("%s belongs to %s, want %s", in, got, want)
		}
	}
}
