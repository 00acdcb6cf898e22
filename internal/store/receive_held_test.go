package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pawlbot/pawl/solver/thread"
)

// pour stores deliveries from 64 concurrent callers until ctx ends.
func pour(ctx context.Context, t *testing.T, receive func(context.Context, thread.Delivery) (bool, error)) (wait func()) {
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := receive(ctx, thread.Delivery{GUID: fmt.Sprint(n, "-", i), Event: "ping", Payload: []byte("{}")}); err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	return wg.Wait
}

func TestHandlingContinuesDuringADeliveryStorm(t *testing.T) {
	s, _, c := open(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	for n := range 10 {
		must(s.Receive(t.Context(), thread.Delivery{GUID: fmt.Sprint("handled", n), Event: "ping", ReceivedAt: c.Now()}))(t)
	}
	ctx, stop := context.WithCancel(t.Context())
	wait := pour(ctx, t, s.Receive)
	for n := range 10 {
		guid := fmt.Sprint("handled", n)
		check(t, s.FinishDelivery(t.Context(), guid, thread.Handled, "ignored"))
		if d := must(s.Delivery(t.Context(), guid))(t); d.State != thread.Handled || d.Note != "ignored" {
			t.Errorf("%s is %+v", guid, d)
		}
	}
	stop()
	wait()
}

func TestCloseFinishesOrRefusesPendingWrites(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "pawl.db")
	s, _, c := open(t, dsn)
	must(s.Receive(t.Context(), thread.Delivery{GUID: "g", Event: "ping", ReceivedAt: c.Now()}))(t)
	ctx, stop := context.WithCancel(t.Context())
	wait := pour(ctx, t, s.Receive)
	finished := make(chan error, 1)
	go func() { finished <- s.FinishDelivery(t.Context(), "g", thread.Handled, "") }()
	stop()
	check(t, s.Close())
	wait()
	err := <-finished
	again, _, _ := open(t, dsn)
	if d := must(again.Delivery(t.Context(), "g"))(t); (err == nil) != (d.State == thread.Handled) {
		t.Errorf("answered %v, but the delivery is %s", err, d.State)
	}
	if fresh := must(again.Receive(t.Context(), thread.Delivery{GUID: "g", Event: "ping", ReceivedAt: c.Now()}))(t); fresh {
		t.Error("a delivery was taken again after a restart")
	}
}
