package handlers

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pawlbot/pawl/solver/thread"
)

// A log is kept folded from longLog events on, for the keptLogs threads that were
// asked for last. Without that every remark would read all that came before it, and
// a few thousand of them on one thread would keep a processor busy for minutes.
const (
	longLog  = 100
	keptLogs = 64
)

// logs are folded logs. Its zero value is ready.
type logs struct {
	mu   sync.Mutex
	kept []*folded // the one asked for last comes first
}

// folded is a log up to state.Seq.
type folded struct {
	thread thread.ID

	mu    sync.Mutex
	state thread.State
	last  thread.Event // that was applied
}

// of returns the state of a thread by its log as it is now. The caller may keep and change it.
func (l *logs) of(ctx context.Context, store Store, t thread.ID) (thread.State, error) {
	f := l.entry(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	// The last event is read once more: a log that was removed and began anew has another one there, or none.
	after := max(f.state.Seq-1, 0)
	events, err := store.Events(ctx, t, after)
	if err != nil {
		return thread.State{}, err
	}
	if seq := f.state.Seq; seq > 0 {
		if len(events) > 0 && events[0].Seq == seq && events[0].At.Equal(f.last.At) && bytes.Equal(events[0].Data, f.last.Data) {
			events = events[1:]
		} else {
			f.state = thread.State{}
			if events, err = store.Events(ctx, t, 0); err != nil {
				return thread.State{}, err
			}
		}
	}
	if err := f.state.Apply(events); err != nil {
		f.state = thread.State{}
		return thread.State{}, fmt.Errorf("thread %s: %w", t, err)
	}
	if len(events) > 0 {
		f.last = events[len(events)-1]
	}
	state := f.state.Clone()
	if f.state.Seq < longLog {
		f.state = thread.State{}
	}
	return state, nil
}

// entry returns the thread's entry, for which the one that was asked for longest ago makes room.
func (l *logs) entry(t thread.ID) *folded {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &folded{thread: t}
	if i := slices.IndexFunc(l.kept, func(k *folded) bool { return k.thread == t }); i >= 0 {
		f = l.kept[i]
		l.kept = slices.Delete(l.kept, i, i+1)
	}
	l.kept = slices.Insert(l.kept[:min(len(l.kept), keptLogs-1)], 0, f)
	return f
}
