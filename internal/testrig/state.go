package testrig

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

func (r *Rig) Has(name string) bool {
	_, err := os.Stat(filepath.Join(r.Ctrl(), name))
	return err == nil
}

// Touch creates a file in $CTRL that the agent may wait for.
func (r *Rig) Touch(name string) {
	r.T.Helper()
	r.Must(os.MkdirAll(r.Ctrl(), 0o700))
	r.Must(os.WriteFile(filepath.Join(r.Ctrl(), name), nil, 0o600))
}

func (r *Rig) Program(name, text string) {
	r.T.Helper()
	r.Must(os.WriteFile(filepath.Join(r.Ctrl(), name), []byte(text), 0o700))
}

func (r *Rig) Left(name string) string {
	r.T.Helper()
	b, err := os.ReadFile(filepath.Join(r.Ctrl(), name))
	r.Must(err)
	return string(b)
}

// Read passes f the database of the server in this process, or else one opened for reading.
func (r *Rig) Read(f func(*store.Store)) {
	r.T.Helper()
	r.onDatabase(store.Reading, f)
}

func (r *Rig) Write(f func(*store.Store)) {
	r.T.Helper()
	r.onDatabase(store.Writing, f)
}

func (r *Rig) onDatabase(access store.Access, f func(*store.Store)) {
	r.T.Helper()
	if r.Node != nil {
		f(r.Node.Store())
		return
	}
	dsn := r.DSN
	if path, isFile := strings.CutPrefix(dsn, "sqlite:"); isFile {
		dsn = "sqlite:" + filepath.Join(r.Dir, path)
	}
	db, err := store.Open(r.T.Context(), dsn, store.Options{Now: r.Dated, Access: access})
	r.Must(err)
	defer db.Close()
	f(db)
}

// Stats counts the threads and deliveries of the database.
func (r *Rig) Stats() (s store.Stats) {
	r.T.Helper()
	r.Read(func(db *store.Store) {
		var err error
		s, err = db.Stats(r.T.Context())
		r.Must(err)
	})
	return s
}

// Database opens the SQLite file of a running server and waits up to 30 s for locks.
func (r *Rig) Database() *sql.DB {
	r.T.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.Dir, "pawl.db")+"?_pragma=busy_timeout(30000)")
	r.Must(err)
	r.T.Cleanup(func() { db.Close() })
	return db
}

// Deliveries returns the newest thousand deliveries in the database.
func (r *Rig) Deliveries() (list []thread.Delivery) {
	r.T.Helper()
	r.Read(func(db *store.Store) {
		var err error
		list, err = db.Deliveries(r.T.Context(), 1000)
		r.Must(err)
	})
	return list
}

func (r *Rig) DeliveryOf(guid string) (d thread.Delivery) {
	r.T.Helper()
	r.Read(func(db *store.Store) {
		var err error
		d, err = db.Delivery(r.T.Context(), guid)
		r.Must(err)
	})
	return d
}

func (r *Rig) Events(n int) (events []thread.Event) {
	r.T.Helper()
	r.Read(func(db *store.Store) {
		var err error
		events, err = db.Events(r.T.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: n}, 0)
		r.Must(err)
	})
	return events
}

func (r *Rig) State(n int) thread.State {
	r.T.Helper()
	s, err := thread.Fold(r.Events(n))
	r.Must(err)
	return s
}

// Handled waits until all deliveries so far are handled.
func (r *Rig) Handled() {
	r.T.Helper()
	r.Await("the deliveries to be handled", func() bool {
		r.Must(r.World.WaitDelivered(r.T.Context()))
		return r.Stats().Deliveries[thread.Received] == 0
	})
}

// Settle waits until the server is idle and has handled all deliveries, including those caused by its own writes.
func (r *Rig) Settle() {
	r.T.Helper()
	before := -1
	r.Await("the server to be idle", func() bool {
		r.Must(r.World.WaitDelivered(r.T.Context()))
		s := r.Stats()
		sent := len(r.World.Deliveries())
		idle := sent == before && s.Deliveries[thread.Received]+s.Queued+s.Running == 0
		before = sent
		return idle && !r.gathers()
	})
}

// gathers reports whether a thread still waits for more feedback, or for other apps' checks on its commit. It moves the
// clock to end waits for feedback.
func (r *Rig) gathers() bool {
	return slices.ContainsFunc(r.Status().Threads, func(t status.Thread) bool {
		id, err := thread.Parse(t.Thread)
		if err != nil {
			return false
		}
		if t.State == "waiting" && t.Rule == "gather" {
			r.skip(t)
			return true
		}
		red := t.State != "stopped" && len(r.State(id.Number).Red().Names) > 0
		return red && !r.stillRuns(id.Number)
	})
}

// skip moves the clock of a server in this process to the end of a thread's wait, and makes the server look for due work.
func (r *Rig) skip(t status.Thread) {
	r.T.Helper()
	if r.Node == nil || r.Clock == nil || t.Until == nil {
		return
	}
	r.Clock.Reach(*t.Until)
	r.Must(r.Node.Sweep(r.T.Context()))
}

// stillRuns reports whether a check of another app still runs on the thread's commit.
func (r *Rig) stillRuns(n int) bool {
	return slices.ContainsFunc(r.World.CheckRuns(Repo), func(c fakegithub.CheckRun) bool {
		return c.SHA == r.State(n).Head && c.App != "pawl" && c.Status != "completed"
	})
}

// Ending waits until a thread's run has ended and the server is idle, and returns the thread's status.
func (r *Rig) Ending(n int) status.Thread {
	r.T.Helper()
	r.Over(ThreadName(n))
	r.Settle()
	return r.Over(ThreadName(n))
}
