package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/status"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// What the tests look at in a rig: files of the agent, the database, and whether
// anything is left to be done.

// has reports whether the agent left a file of that name in $CTRL.
func (r *rig) has(name string) bool {
	_, err := os.Stat(filepath.Join(r.ctrl(), name))
	return err == nil
}

// touch makes a file in $CTRL, which the agent may wait for.
func (r *rig) touch(name string) {
	r.t.Helper()
	r.must(os.MkdirAll(r.ctrl(), 0o700))
	r.must(os.WriteFile(filepath.Join(r.ctrl(), name), nil, 0o600))
}

// program puts a program into $CTRL.
func (r *rig) program(name, text string) {
	r.t.Helper()
	r.must(os.WriteFile(filepath.Join(r.ctrl(), name), []byte(text), 0o700))
}

// left returns what the agent wrote into a file in $CTRL.
func (r *rig) left(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.ctrl(), name))
	r.must(err)
	return string(b)
}

// read gives the database to f: that of the server in this process, or one opened for reading beside the servers.
func (r *rig) read(f func(*store.Store)) {
	r.t.Helper()
	r.onDatabase(store.Reading, f)
}

// write gives it to f for writing.
func (r *rig) write(f func(*store.Store)) {
	r.t.Helper()
	r.onDatabase(store.Beside, f)
}

func (r *rig) onDatabase(access store.Access, f func(*store.Store)) {
	r.t.Helper()
	if r.node != nil {
		f(r.node.Store())
		return
	}
	dsn := r.dsn
	if path, isFile := strings.CutPrefix(dsn, "sqlite:"); isFile {
		dsn = "sqlite:" + filepath.Join(r.dir, path)
	}
	db, err := store.Open(r.t.Context(), dsn, store.Options{Now: r.dated, Access: access})
	r.must(err)
	defer db.Close()
	f(db)
}

func (r *rig) stats() (s store.Stats) {
	r.t.Helper()
	r.read(func(db *store.Store) {
		var err error
		s, err = db.Stats(r.t.Context())
		r.must(err)
	})
	return s
}

// database opens the server's file beside it, with patience for its writes.
func (r *rig) database() *sql.DB {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, "pawl.db")+"?_pragma=busy_timeout(30000)")
	r.must(err)
	r.t.Cleanup(func() { db.Close() })
	return db
}

func (r *rig) deliveries() (list []thread.Delivery) {
	r.t.Helper()
	r.read(func(db *store.Store) {
		var err error
		list, err = db.Deliveries(r.t.Context(), 1000)
		r.must(err)
	})
	return list
}

func (r *rig) deliveryOf(guid string) (d thread.Delivery) {
	r.t.Helper()
	r.read(func(db *store.Store) {
		var err error
		d, err = db.Delivery(r.t.Context(), guid)
		r.must(err)
	})
	return d
}

// events are a thread's log.
func (r *rig) events(n int) (events []thread.Event) {
	r.t.Helper()
	r.read(func(db *store.Store) {
		var err error
		events, err = db.Events(r.t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n}, 0)
		r.must(err)
	})
	return events
}

// state is the fold of a thread's log.
func (r *rig) state(n int) thread.State {
	r.t.Helper()
	s, err := thread.Fold(r.events(n))
	r.must(err)
	return s
}

// handled waits until everything that happened so far is delivered and judged.
func (r *rig) handled() {
	r.t.Helper()
	r.await("the deliveries to be handled", func() bool {
		r.must(r.world.WaitDelivered(r.t.Context()))
		return r.stats().Deliveries[thread.Received] == 0
	})
}

// settle waits until the server has nothing left to do: what its own acts made
// GitHub deliver is handled, too.
func (r *rig) settle() {
	r.t.Helper()
	before := -1
	r.await("the server to rest", func() bool {
		r.must(r.world.WaitDelivered(r.t.Context()))
		s := r.stats()
		sent := len(r.world.Deliveries())
		rests := sent == before && s.Deliveries[thread.Received] == 0 && s.Queued == 0 && s.Running == 0
		before = sent
		return rests && !r.gathers()
	})
}

// gathers reports whether a thread awaits more of the same feedback, or that the checks of its commit are over.
func (r *rig) gathers() bool {
	return slices.ContainsFunc(r.status().Threads, func(t status.Thread) bool {
		id, err := thread.Parse(t.Thread)
		if err != nil {
			return false
		}
		if t.State == "waiting" && t.Rule == "gather" {
			r.skip(t)
			return true
		}
		red := t.State != "stopped" && len(r.state(id.Number).Red().Names) > 0
		return red && !r.stillRuns(id.Number)
	})
}

// skip moves the clock of a server in this process to the end of a thread's wait, and has the server look for what is due.
func (r *rig) skip(t status.Thread) {
	r.t.Helper()
	if r.node == nil || r.clock == nil || t.Until == nil {
		return
	}
	r.clock.reach(*t.Until)
	r.must(r.node.Sweep(r.t.Context()))
}

// stillRuns reports whether a check of the thread's commit has not ended, for which Pawl waits.
func (r *rig) stillRuns(n int) bool {
	return slices.ContainsFunc(r.world.CheckRuns(rigRepo), func(c fakegithub.CheckRun) bool {
		return c.SHA == r.state(n).Head && c.App != "pawl" && c.Status != "completed"
	})
}

// ending waits until a thread's run has ended and the server rests, and returns
// how it ended.
func (r *rig) ending(n int) status.Thread {
	r.t.Helper()
	r.over(threadName(n))
	r.settle()
	return r.over(threadName(n))
}
