package queue

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// work runs a job of deliveries from the arguments in its row.
func work(ctx context.Context, t *testing.T, args string, handle func(guid string) error) (handled []string, err error) {
	t.Helper()
	job := river.Job[deliveryArgs]{JobRow: &rivertype.JobRow{}}
	if err := json.Unmarshal([]byte(args), &job.Args); err != nil {
		t.Fatal(err)
	}
	w := &deliveryWorker{handle: func(_ context.Context, guid string) error {
		handled = append(handled, guid)
		return handle(guid)
	}}
	err = w.Work(ctx, &job)
	return handled, err
}

func TestOneDeliveryThatFailsDoesNotStopTheOthersOfItsJob(t *testing.T) {
	broken := errors.New("GitHub is down")
	handled, err := work(t.Context(), t, `{"guids": ["a", "b", "c"]}`, func(guid string) error {
		if guid == "b" {
			return broken
		}
		return nil
	})
	if diff := cmp.Diff([]string{"a", "b", "c"}, handled); diff != "" || !errors.Is(err, broken) {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestAJobOfDeliveriesThatStopCutsOffIsFreeAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	handled, err := work(ctx, t, `{"guids": ["a", "b", "c"]}`, func(string) error { cancel(); return nil })
	if diff := cmp.Diff([]string{"a"}, handled); diff != "" || !errors.Is(err, river.JobSnooze(0)) {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestAJobFromBeforeTheyNamedSeveralDeliveriesIsWorked(t *testing.T) {
	handled, err := work(t.Context(), t, `{"guid": "a"}`, func(string) error { return nil })
	if diff := cmp.Diff([]string{"a"}, handled); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestAJobOfDeliveriesHasTheTimeOfAllOfThem(t *testing.T) {
	w := &deliveryWorker{}
	for times, args := range map[time.Duration]deliveryArgs{1: {GUID: "a"}, 3: {GUIDs: []string{"a", "b", "c"}}} {
		if got := w.Timeout(&river.Job[deliveryArgs]{Args: args}); got != times*deliveryTimeout {
			t.Errorf("%+v has %s", args, got)
		}
	}
}
