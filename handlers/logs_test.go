package handlers

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// long appends events to a thread's log.
func (w *house) long(t thread.ID, from, to int) {
	w.T.Helper()
	for i := from; i < to; i++ {
		f := thread.Feedback{Source: policy.FromComment, Command: "solve", Text: fmt.Sprint("remark ", i), Snapshot: &thread.Details{Title: "T"}}
		_, err := w.Store.Append(w.T.Context(), t, false, thread.NewEvent{Kind: thread.KindFeedback, At: w.Now(), Data: f})
		w.Must(err)
	}
}

// wantLog compares what is kept of a log with the log.
func (w *house) wantLog(l *logs, t thread.ID) {
	w.T.Helper()
	got, err := l.of(w.T.Context(), w.Store, t)
	w.Must(err)
	events, err := w.Store.Events(w.T.Context(), t, 0)
	w.Must(err)
	want, err := thread.Fold(events)
	w.Must(err)
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()); diff != "" {
		w.T.Errorf("the state (-log +kept)\n%s", diff)
	}
}

func TestAKeptLogIsTheLog(t *testing.T) {
	w := newHouse(t)
	var l logs
	long, short := thread.ID{Owner: "acme", Name: "widgets", Number: 1}, thread.ID{Owner: "acme", Name: "widgets", Number: 2}
	w.wantLog(&l, long)
	w.long(long, 0, 3*longLog)
	w.long(short, 0, 3)
	w.wantLog(&l, long)
	w.wantLog(&l, short)
	w.wantLog(&l, long)
	w.long(long, 300, 310)
	w.wantLog(&l, long)
	if l.entry(long).state.Seq != 310 || l.entry(short).state.Seq != 0 {
		t.Errorf("kept up to %d and %d; want the long one only", l.entry(long).state.Seq, l.entry(short).state.Seq)
	}
}

func TestALogThatWasRemovedAndBeganAnewIsReadAnew(t *testing.T) {
	w := newHouse(t)
	var l logs
	long := thread.ID{Owner: "acme", Name: "widgets", Number: 1}
	w.long(long, 0, 2*longLog)
	w.wantLog(&l, long)
	_, err := w.Store.DB().Exec("DELETE FROM threads WHERE number = 1") // as the cleaning does with a thread that is closed
	w.Must(err)
	w.wantLog(&l, long)
	w.long(long, 0, 5)
	w.wantLog(&l, long)
}

func TestOnlySomeLogsAreKept(t *testing.T) {
	w := newHouse(t)
	var l logs
	for n := range 2 * keptLogs {
		w.wantLog(&l, thread.ID{Owner: "acme", Name: "widgets", Number: n + 1})
	}
	if len(l.kept) != keptLogs {
		t.Errorf("%d logs are kept, want %d", len(l.kept), keptLogs)
	}
}

func TestManyMayAskForALogThatGrows(t *testing.T) {
	w := newHouse(t)
	var l logs
	long := thread.ID{Owner: "acme", Name: "widgets", Number: 1}
	w.long(long, 0, longLog)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				s, err := l.of(t.Context(), w.Store, long)
				if err != nil {
					t.Error(err)
				}
				s.Acts["mine"] = thread.ActState{} // the caller's own
				for _, f := range s.Feedback {
					_ = f.Taken
				}
			}
		})
	}
	w.long(long, longLog, longLog+100)
	wg.Wait()
	w.wantLog(&l, long)
}
