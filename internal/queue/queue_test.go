package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.uber.org/goleak"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTheBellStartsJobs pins what the queue knows of River's inside: a River
// that does not hear the bell would not poll within this test.
func TestTheBellStartsJobs(t *testing.T) {
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	started := make(chan string, 100)
	q, err := newQueue(Options{
		DB: s.DB(), Due: s.Due,
		Step: func(ctx context.Context, th solver.Thread) error { started <- th.String(); return nil },
		HandleDelivery: func(ctx context.Context, d solver.Delivery) error {
			started <- d.GUID
			return s.FinishDelivery(ctx, d.GUID, solver.Handled, "")
		},
		Sweep: func(context.Context) error { return nil },
	}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s.UseQueue(q)
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer q.Stop(context.Background())
	for n := range 10 {
		th := solver.Thread{Owner: "octo", Name: "cat", Number: n + 1}
		if _, err := s.Append(t.Context(), th, true); err != nil {
			t.Fatal(err)
		}
		expect(t, started, th.String())
		guid := fmt.Sprint("guid-", n)
		if _, err := s.Receive(t.Context(), solver.Delivery{GUID: guid, Event: "ping", ReceivedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		expect(t, started, guid)
	}
}

func expect(t *testing.T, started <-chan string, want string) {
	t.Helper()
	select {
	case got := <-started:
		if got != want {
			t.Fatalf("%s started, want %s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("%s did not start", want)
	}
}

func TestTwoRingsAreOneNotification(t *testing.T) {
	b := newBell()
	b.ring()
	b.ring()
	n, err := listener{bell: b}.WaitForNotification(t.Context())
	if err != nil || n.Topic != "river_insert" || n.Payload != `{"queue": "steps"}` {
		t.Errorf("%+v, %v", n, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := (listener{bell: b}).WaitForNotification(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a second notification: %+v, %v", n, err)
	}
}

func TestTheSweepRunsAtOnceAndEveryFiveSecondsAlsoAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, sweeps := time.Now(), []time.Duration{}
		q := &Queue{logger: slog.New(slog.DiscardHandler), sweep: func(context.Context) error {
			sweeps = append(sweeps, time.Since(began))
			return errors.New("the disk is on fire")
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		q.sweepEvery(ctx, SweepInterval)
		if want := []time.Duration{0, 5 * time.Second, 10 * time.Second}; fmt.Sprint(sweeps) != fmt.Sprint(want) {
			t.Errorf("swept after %v, want %v", sweeps, want)
		}
	})
}

func TestAStepJob(t *testing.T) {
	held := fmt.Errorf("acquire: %w", &solver.HeldError{Owner: "other"})
	broken := errors.New("GitHub is down")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	const older = 300
	for name, c := range map[string]struct {
		ctx                context.Context
		job                rivertype.JobRow
		due                bool
		dueErr, stepErr    error
		wantStep, wantText bool
	}{
		"that is due is worked":                 {due: true, wantStep: true},
		"that is not due is a duplicate":        {},
		"that cannot be asked about says so":    {due: true, dueErr: broken, wantText: true},
		"of an older version is always worked":  {job: rivertype.JobRow{MaxAttempts: older}, wantStep: true},
		"whose thread is held says nothing":     {due: true, stepErr: held, wantStep: true},
		"that fails says so":                    {due: true, stepErr: broken, wantStep: true, wantText: true},
		"that is cut off by Stop says nothing":  {ctx: cancelled, due: true, stepErr: context.Canceled, wantStep: true},
		"that ends well while it is cut off":    {ctx: cancelled, due: true, wantStep: true},
		"of an older version that fails is one": {job: rivertype.JobRow{MaxAttempts: older}, stepErr: broken, wantStep: true, wantText: true},
	} {
		t.Run(name, func(t *testing.T) {
			stepped := false
			var said bytes.Buffer
			w := &stepWorker{
				due:    func(context.Context, solver.Thread) (bool, error) { return c.due, c.dueErr },
				step:   func(context.Context, solver.Thread) error { stepped = true; return c.stepErr },
				logger: slog.New(slog.NewTextHandler(&said, nil)),
			}
			if c.job.MaxAttempts == 0 {
				c.job.MaxAttempts = stepArgs{}.InsertOpts().MaxAttempts
			}
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			// River never has anything left to do for it.
			if err := w.Work(c.ctx, &river.Job[stepArgs]{JobRow: &c.job}); err != nil || stepped != c.wantStep {
				t.Errorf("stepped %t, %v; want %t and no error", stepped, err, c.wantStep)
			}
			if got := bytes.Contains(said.Bytes(), []byte(broken.Error())); got != c.wantText {
				t.Errorf("it said %q", &said)
			}
		})
	}
}

func TestAQueueNeedsItsParts(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("a queue without parts was made")
	}
}
