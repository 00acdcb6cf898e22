package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

func delivery(n, size int) thread.Delivery {
	return thread.Delivery{GUID: fmt.Sprint("guid-", n), Payload: make([]byte, size)}
}

func TestQueuedDeliveryIsNotTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handled, proceed := 0, make(chan struct{})
		in := newInbox(func(context.Context, thread.Delivery) error { handled++; <-proceed; return nil }, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		go in.work(ctx)
		in.put([]thread.Delivery{delivery(1, 2), delivery(1, 2)})
		synctest.Wait()
		in.put([]thread.Delivery{delivery(1, 2)}) // while it is being handled
		close(proceed)
		synctest.Wait()
		if handled != 1 {
			t.Errorf("handled %d times, want once", handled)
		}
		in.put([]thread.Delivery{delivery(1, 2)}) // its handling failed, and it is due again
		synctest.Wait()
		if handled != 2 || len(in.here) != 0 || in.bytes != 0 {
			t.Errorf("handled %d times; left: %v, %d bytes", handled, in.here, in.bytes)
		}
		stop()
	})
}

func TestUserEventsComeBeforeMachineResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		in := newInbox(func(_ context.Context, d thread.Delivery) error { got = append(got, d.GUID); return nil }, slog.New(slog.DiscardHandler))
		for n := range 100 {
			in.put([]thread.Delivery{{GUID: fmt.Sprint("noise-", n)}})
		}
		in.put([]thread.Delivery{{GUID: "words", Urgent: true}, {GUID: "button", Urgent: true}})
		ctx, stop := context.WithCancel(t.Context())
		go in.work(ctx)
		synctest.Wait()
		stop()
		if len(got) != 102 || !slices.Equal(got[:3], []string{"words", "button", "noise-0"}) {
			t.Errorf("%d handled, first %q", len(got), got[:min(3, len(got))])
		}
	})
}

func TestInboxSizeIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]int{}
		in := newInbox(func(_ context.Context, d thread.Delivery) error { seen[d.GUID] = len(d.Payload); return nil }, slog.New(slog.DiscardHandler))
		for n := range inboxDeliveries + 10 {
			in.put([]thread.Delivery{delivery(n, 1<<10)})
		}
		if len(in.waiting) != inboxDeliveries || len(in.here) != inboxDeliveries || in.bytes > inboxBytes {
			t.Fatalf("%d are waiting, %d known, %d bytes", len(in.waiting), len(in.here), in.bytes)
		}
		ctx, stop := context.WithCancel(t.Context())
		go in.work(ctx)
		synctest.Wait()
		stop()
		if len(seen) != inboxDeliveries || seen["guid-0"] != 1<<10 || seen[fmt.Sprint("guid-", inboxDeliveries-1)] != 0 {
			t.Errorf("%d handled; the first with %d bytes, the last with %d, want its payload left in its row", len(seen), seen["guid-0"], seen[fmt.Sprint("guid-", inboxDeliveries-1)])
		}
	})
}

func TestHangingDeliveryDoesNotStopTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		in := newInbox(func(ctx context.Context, d thread.Delivery) error {
			at = append(at, time.Since(began))
			if d.GUID == "guid-1" {
				<-ctx.Done()
				return ctx.Err()
			}
			return errors.New("GitHub is down")
		}, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		in.put([]thread.Delivery{delivery(1, 0), delivery(2, 0), delivery(3, 0)})
		go in.work(ctx)
		time.Sleep(2 * DeliveryTimeout)
		stop()
		synctest.Wait()
		if want := []time.Duration{0, DeliveryTimeout, DeliveryTimeout}; fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("handled after %v, want %v", at, want)
		}
	})
}
