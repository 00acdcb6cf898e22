package handlers

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// long appends events to a thread's log, every tenth of them found by the
// reconciliation.
func (w *house) long(t solver.Thread, from, to int) {
	w.t.Helper()
	for i := from; i < to; i++ {
		f := solver.Feedback{Source: policy.FromComment, Command: "solve", Text: fmt.Sprint("remark ", i), Snapshot: &solver.Snapshot{Title: "T"}}
		if i%10 == 0 {
			f.Delivery = Reconciled
		}
		_, err := w.store.Append(w.t.Context(), t, false, solver.NewEvent{Kind: solver.KindFeedback, At: w.now(), Data: f})
		w.must(err)
	}
}

// wantLog compares what is kept of a log with the log.
func (w *house) wantLog(l *logs, t solver.Thread, reconciled int) {
	w.t.Helper()
	got, found, err := l.of(w.t.Context(), w.store, t)
	w.must(err)
	events, err := w.store.Events(w.t.Context(), t, 0)
	w.must(err)
	want, err := solver.Fold(events)
	w.must(err)
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()); diff != "" {
		w.t.Errorf("the state (-log +kept)\n%s", diff)
	}
	if len(found) != reconciled {
		w.t.Errorf("%d events of the reconciliation, want %d", len(found), reconciled)
	}
}

func TestAKeptLogIsTheLog(t *testing.T) {
	w := newHouse(t)
	var l logs
	long, short := solver.Thread{Owner: "acme", Name: "widgets", Number: 1}, solver.Thread{Owner: "acme", Name: "widgets", Number: 2}
	w.wantLog(&l, long, 0)
	w.long(long, 0, 3*longLog)
	w.long(short, 0, 3)
	w.wantLog(&l, long, 30)
	w.wantLog(&l, short, 1)
	w.wantLog(&l, long, 30)
	w.long(long, 300, 310)
	w.wantLog(&l, long, 31)
	if l.entry(long).state.Seq != 310 || l.entry(short).state.Seq != 0 {
		t.Errorf("kept up to %d and %d; want the long one only", l.entry(long).state.Seq, l.entry(short).state.Seq)
	}
}

func TestALogThatWasRemovedAndBeganAnewIsReadAnew(t *testing.T) {
	w := newHouse(t)
	var l logs
	long := solver.Thread{Owner: "acme", Name: "widgets", Number: 1}
	w.long(long, 0, 2*longLog)
	w.wantLog(&l, long, 20)
	_, err := w.store.DB().Exec("DELETE FROM threads WHERE number = 1") // as the cleaning does with a thread that is closed
	w.must(err)
	w.wantLog(&l, long, 0)
	w.long(long, 0, 5)
	w.wantLog(&l, long, 1)
}

func TestOnlySomeLogsAreKept(t *testing.T) {
	w := newHouse(t)
	var l logs
	for n := range 2 * keptLogs {
		w.wantLog(&l, solver.Thread{Owner: "acme", Name: "widgets", Number: n + 1}, 0)
	}
	if len(l.kept) != keptLogs {
		t.Errorf("%d logs are kept, want %d", len(l.kept), keptLogs)
	}
}

func TestManyMayAskForALogThatGrows(t *testing.T) {
	w := newHouse(t)
	var l logs
	long := solver.Thread{Owner: "acme", Name: "widgets", Number: 1}
	w.long(long, 0, longLog)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				s, _, err := l.of(t.Context(), w.store, long)
				if err != nil {
					t.Error(err)
				}
				s.Acts["mine"] = solver.ActState{} // the caller's own
				for _, f := range s.Feedback {
					_ = f.Taken
				}
			}
		})
	}
	w.long(long, longLog, longLog+100)
	wg.Wait()
	w.wantLog(&l, long, 20)
}
