package store_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

func aGradeReplacesTheOneBefore(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	at := c.Now().UTC()
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 10 {
				if err := s.PutGraded(ctx, thread.GradeRow{ID: "octo/cat#1/1", At: at, Data: []byte(strconv.Itoa(n))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want := []thread.GradeRow{{ID: "octo/cat#1/1", At: at.Add(time.Second), Backend: "codex", Repo: "octo/cat", Data: []byte("80")}}
	for range 2 {
		check(t, s.PutGraded(ctx, want[0]))
		if diff := cmp.Diff(want, must(s.Graded(ctx, time.Time{}, 10))(t)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	if err := s.PutGraded(ctx, thread.GradeRow{At: at}); err == nil {
		t.Error("a grade of a missing attempt was accepted")
	}
}

func theNewestGradesComeOldestFirst(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	ctx := t.Context()
	for n := range 5 {
		check(t, s.PutGraded(ctx, thread.GradeRow{ID: fmt.Sprint("attempt ", n), At: c.Now().Add(time.Duration(n) * time.Hour), Data: []byte("\x00\xff not text")}))
	}
	ids := func(since time.Time, limit int) (ids []string) {
		for _, r := range must(s.Graded(ctx, since, limit))(t) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	for _, q := range []struct {
		since time.Time
		limit int
		want  []string
	}{
		{time.Time{}, 2, []string{"attempt 3", "attempt 4"}},
		{c.Now().Add(time.Hour), 10, []string{"attempt 1", "attempt 2", "attempt 3", "attempt 4"}},
		{c.Now().Add(time.Hour), 1, []string{"attempt 4"}},
		{c.Now().Add(5 * time.Hour), 10, nil},
	} {
		if diff := cmp.Diff(q.want, ids(q.since, q.limit)); diff != "" {
			t.Errorf("since %s, %d (-want +got)\n%s", q.since, q.limit, diff)
		}
	}
}

func sharedBlobsCountEveryUpdate(t *testing.T, dsn string) {
	s, _, _ := open(t, dsn)
	ctx := t.Context()
	value := func() (v string) {
		check(t, s.UpdateShared(ctx, "limits", func(_ time.Time, old []byte) []byte { v = string(old); return nil }))
		return v
	}
	if got := value(); got != "" {
		t.Errorf("a new key contains %q", got)
	}
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for range 25 {
				if err := s.UpdateShared(ctx, "limits", func(_ time.Time, old []byte) []byte {
					n, _ := strconv.Atoi(string(old))
					return []byte(strconv.Itoa(n + 1))
				}); err != nil {
					t.Error(err)
				}
				must(s.Append(ctx, issue(n+1), false, event("", "a write that waits for the disk")))(t)
			}
		})
	}
	wg.Wait()
	if got := value(); got != "200" {
		t.Errorf("counted %s, want 200", got)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.UpdateShared(ended, "limits", func(time.Time, []byte) []byte { return []byte("late") }); err == nil {
		t.Error("a cancelled caller changed the blob")
	}
	if got := value(); got != "200" {
		t.Errorf("%s after a cancelled caller, want 200", got)
	}
	if err := s.Ping(ctx); err != nil {
		t.Error(err)
	}
}

// Nodes with different clocks must agree on the time of the last request to GitHub.
func sharedBlobsAreDatedByTheDatabasesClock(t *testing.T, dsn string) {
	off := func() time.Time { return time.Now().Add(24 * time.Hour) }
	s := must(store.Open(t.Context(), dsn, store.Options{Now: off}))(t)
	defer s.Close()
	want := off()
	if s.Postgres() {
		want = time.Now()
	}
	check(t, s.UpdateShared(t.Context(), "limits", func(now time.Time, old []byte) []byte {
		if now.Sub(want).Abs() > time.Hour {
			t.Errorf("dated %v, want %v", now, want)
		}
		return []byte("1")
	}))
}
