package store_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestOperatorWritesWhileServerIsBusy(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "pawl.db")
	server, _, c := open(t, dsn)
	stop, done := make(chan struct{}), make(chan struct{})
	var wrote atomic.Int64
	go func() {
		defer close(done)
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := server.Append(t.Context(), issue(n%50+1), false, thread.NewEvent{Kind: thread.KindIgnored, At: c.Now(), Data: thread.Feedback{}}); err != nil {
				t.Error(err)
				return
			}
			wrote.Add(1)
		}
	}()
	db, err := store.Open(t.Context(), dsn, store.Options{Access: store.Writing})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 100 {
		if _, err := db.Append(t.Context(), issue(99), true, thread.NewEvent{Kind: thread.KindControl, At: c.Now(), Data: thread.Feedback{}}); err != nil {
			t.Fatal(err)
		}
		if err := db.UpdateShared(t.Context(), "x", func(_ time.Time, old []byte) []byte { return append(old, 'x') }); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-done
	if wrote.Load() == 0 {
		t.Error("the server wrote nothing meanwhile")
	}
}
