package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

func untriedDeliveriesAreCounted(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	want := func(untried int, oldest time.Time) {
		t.Helper()
		if n := must(s.Untried(ctx))(t); n != untried {
			t.Errorf("%d untried deliveries, want %d", n, untried)
		}
		if at := must(s.Oldest(ctx))(t); !at.Equal(oldest) {
			t.Errorf("the oldest arrived at %v, want %v", at, oldest)
		}
	}
	want(0, time.Time{})
	first := c.Now()
	for _, guid := range []string{"a", "b", "c"} {
		must(s.Receive(ctx, thread.Delivery{GUID: guid, Event: "ping", ReceivedAt: c.Now()}))(t)
		c.Advance(time.Minute)
	}
	want(3, first)
	check(t, s.FinishDelivery(ctx, "a", thread.Handled, ""))
	check(t, s.FinishDelivery(ctx, "b", thread.Failed, "GitHub is down"))
	want(1, first)
}

func givenUpDeliveriesWaitForTheOperator(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	for _, guid := range []string{"old", "older", "unread", "good"} {
		must(s.Receive(ctx, thread.Delivery{GUID: guid, Event: "ping", Payload: []byte(`{"zen": "` + guid + `"}`), ReceivedAt: c.Now()}))(t)
	}
	came := c.Now()
	check(t, s.FinishDelivery(ctx, "good", thread.Handled, ""))
	check(t, s.FinishDelivery(ctx, "unread", thread.Unparsable, "not JSON"))
	for _, guid := range []string{"old", "older"} {
		check(t, s.FinishDelivery(ctx, guid, thread.Failed, "GitHub is down"))
		must(rawDB(t, dsn).Exec("UPDATE deliveries SET tries = 1000 WHERE guid = '" + guid + "'"))(t)
	}
	c.Advance(4 * 24 * time.Hour)
	for _, d := range must(s.ClaimDeliveries(ctx, 10))(t) {
		check(t, s.FinishDelivery(ctx, d.GUID, d.State, d.Note))
	}
	states := func(want ...string) {
		t.Helper()
		var got []string
		for _, d := range must(s.UnhandledDeliveries(ctx, 10))(t) {
			got = append(got, fmt.Sprintf("%s %s again %t: %s", d.GUID, d.State, !d.RetryAt.IsZero(), d.Note))
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	states("old given_up again false: GitHub is down", "older given_up again false: GitHub is down", "unread unparsable again true: not JSON")
	if first := must(s.UnhandledDeliveries(ctx, 1))(t); len(first) != 1 || first[0].State != thread.GivenUp {
		t.Errorf("first is %+v, want one that was given up", first)
	}
	want := map[thread.DeliveryState]int{thread.GivenUp: 2, thread.Unparsable: 1, thread.Handled: 1}
	if diff := cmp.Diff(want, must(s.Stats(ctx))(t).Deliveries); diff != "" {
		t.Errorf("counted (-want +got)\n%s", diff)
	}
	// Clean removes only handled deliveries.
	c.Advance(400 * 24 * time.Hour)
	done := must(s.Clean(ctx, store.Retention{Deliveries: c.Now()}))(t)
	if done.Deliveries != 1 || done.Payloads != 0 {
		t.Errorf("cleaned %+v, want the one that was handled", done)
	}
	for _, guid := range []string{"none", "good"} {
		if n := must(s.RetryDelivery(ctx, guid))(t); n != 0 {
			t.Errorf("%d deliveries %s are retried", n, guid)
		}
	}
	if n := must(s.RetryDelivery(ctx, "old"))(t); n != 1 {
		t.Errorf("%d are retried, want 1", n)
	}
	claimed := must(s.ClaimDeliveries(ctx, 10))(t)
	if !slices.ContainsFunc(claimed, func(d thread.Delivery) bool { return d.GUID == "old" }) {
		t.Errorf("%+v are dispatched, want old among them", claimed)
	}
	check(t, s.FinishDelivery(ctx, "old", thread.Failed, "still down"))
	states("old failed again true: still down", "older given_up again false: GitHub is down", "unread unparsable again true: not JSON")
	if d := must(s.Delivery(ctx, "older"))(t); string(d.Payload) != `{"zen": "older"}` || !d.ReceivedAt.Equal(came) {
		t.Errorf("the payload is %q, received %v", d.Payload, d.ReceivedAt)
	}
	if n := must(s.DismissDelivery(ctx, "older"))(t); n != 1 {
		t.Errorf("%d were dismissed, want 1", n)
	}
	if d := must(s.Delivery(ctx, "older"))(t); d.State != thread.Handled || d.Note != "dismissed by the operator: GitHub is down" {
		t.Errorf("dismissed, it is %s: %s", d.State, d.Note)
	}
	command := must(store.Open(ctx, dsn, store.Options{Access: store.Writing}))(t)
	defer command.Close()
	if n := must(command.RetryDelivery(ctx, store.AllUnhandled))(t); n != 2 {
		t.Errorf("%d are retried, want the 2 that are left", n)
	}
	if _, err := command.Receive(ctx, thread.Delivery{GUID: "g"}); err == nil {
		t.Error("a store without a server stored a delivery")
	}
}
