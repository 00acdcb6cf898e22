package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/catchup"
	"github.com/pawlbot/pawl/internal/cluster"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// The size of the installation.
const (
	scaleOwners   = 500
	scaleRepos    = 10
	scaleThreads  = 10
	scaleAge      = 30 * 24 * time.Hour // time without events
	quietFor      = time.Minute         // the duration of the idle measurement
	looksAnHour   = 12                  // Pawl's looks at GitHub per hour
	firstLook     = 200                 // the maximum number of repositories that a look compares
	quietCallsAim = 60                  // limits an installation's requests in an hour without events
)

// scale is a bench whose GitHub has an installation of this size. Both databases are measured with it.
type scale struct {
	*bench
	offset atomic.Int64 // added to all clocks except the server's, in nanoseconds
}

func (s *scale) now() time.Time { return time.Now().Add(time.Duration(s.offset.Load())) }

// measureScale fills GitHub and the database directly and starts the server. Then it lets Pawl look at GitHub for two hours
// of virtual time.
func measureScale(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	s := &scale{}
	if s.bench, err = newBenchAt(ctx, s.now, bin, dir, limitAgent, "codex", "none", "policy: {usage_limit: {auto_continue_on_limit_reset: true}}\n"); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := s.Start(ctx); err != nil {
		return nil, nil, err
	}
	log, err := s.waitingLog(ctx)
	if err := errors.Join(err, s.Stop()); err != nil {
		return nil, nil, err
	}
	if err := s.fillGitHub(ctx); err != nil {
		return nil, nil, err
	}
	if rows, err = s.measure(ctx, "SQLite", log); err != nil {
		return nil, nil, err
	}
	pg, why, err := startPostgres(ctx)
	if err != nil {
		return nil, nil, err
	}
	if why != "" {
		return rows, []string{"PostgreSQL was not measured: " + why + "."}, nil
	}
	defer func() { err = errors.Join(err, pg.stop()) }()
	if err := s.onPostgres(ctx, pg, "scale"); err != nil {
		return nil, nil, err
	}
	more, err := s.measure(ctx, "PostgreSQL", log)
	return append(rows, more...), []string{fmt.Sprintf("%d installations with %d repositories each, and %d waiting threads in each repository; each thread has a log of %d events.",
		scaleOwners, scaleRepos, scaleThreads, len(log))}, err
}

func eachScaleRepo(do func(owner, name string) error) error {
	for o := range scaleOwners {
		for n := range scaleRepos {
			if err := do(fmt.Sprintf("team%d", o), fmt.Sprintf("app%d", n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillGitHub creates the repositories and their issues a month ago, without webhooks.
func (s *scale) fillGitHub(ctx context.Context) error {
	s.offset.Store(-int64(scaleAge))
	defer s.offset.Store(0)
	s.World.Lose("", scaleOwners*scaleRepos*(scaleThreads+1))
	return eachScaleRepo(func(owner, name string) error {
		if err := s.World.AddRepo(ctx, owner+"/"+name, nil); err != nil {
			return err
		}
		for range scaleThreads {
			if _, err := s.World.OpenIssue(owner+"/"+name, writer, "A second line", "Please add a second line to a.txt."); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *scale) fillDatabase(ctx context.Context, db *store.Store, log []thread.Event) error {
	state, err := thread.Fold(log)
	if err != nil {
		return err
	}
	is := state.Snapshot
	err = eachScaleRepo(func(owner, name string) error {
		installation, err := s.World.InstallationID(owner + "/" + name)
		if err != nil {
			return err
		}
		own := strings.NewReplacer(fmt.Sprintf(`"installation":%d`, is.Installation), fmt.Sprintf(`"installation":%d`, installation),
			fmt.Sprintf(`"repo_id":%d`, is.RepoID), fmt.Sprintf(`"repo_id":%d`, s.World.RepoID(owner+"/"+name)))
		var events []thread.NewEvent
		for _, e := range log {
			events = append(events, thread.NewEvent{Key: fmt.Sprint("copy:", e.Seq), Kind: e.Kind, At: e.At, Data: rawJSON(own.Replace(string(e.Data)))})
		}
		_, err = db.Append(ctx, thread.ID{Owner: owner, Name: name, Number: 1}, false, events...)
		return err
	})
	if err != nil {
		return err
	}
	return inTx(ctx, db.DB(), func(tx *sql.Tx) error {
		for _, query := range []string{
			fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n WHERE i < %d)
				INSERT INTO threads (owner, name, number, last_seq, lease_epoch, updated_at, active)
				SELECT owner, name, n.i, last_seq, lease_epoch, updated_at, active FROM threads, n WHERE owner LIKE 'team%%'`, scaleThreads),
			`INSERT INTO events (thread_id, seq, key, kind, at, data) SELECT t.id, e.seq, e.key, e.kind, e.at, e.data
				FROM threads t JOIN threads f ON f.owner = t.owner AND f.name = t.name AND f.number = 1 JOIN events e ON e.thread_id = f.id
				WHERE t.owner LIKE 'team%' AND t.number > 1`,
			fmt.Sprintf("UPDATE threads SET queued_at = 0, wake_at = %d WHERE owner LIKE 'team%%'", time.Now().Add(12*time.Hour).UnixMicro()),
		} {
			if _, err := tx.ExecContext(ctx, query); err != nil {
				return err
			}
		}
		return nil
	})
}

// rawJSON is data that is already encoded.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// measure fills a database. It measures the database, a server that uses it and, with SQLite, two hours of looks at GitHub.
func (s *scale) measure(ctx context.Context, engine string, log []thread.Event) (rows []row, err error) {
	add := func(what, measured string) { rows = append(rows, row{what: engine + ": " + what, measured: measured}) }
	err = s.withStore(ctx, func(db *store.Store) error {
		began := time.Now()
		if err := s.fillDatabase(ctx, db, log); err != nil {
			return err
		}
		add("time to fill the database", time.Since(began).Round(time.Second).String())
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.served(ctx, add); err != nil {
		return nil, err
	}
	err = s.withStore(ctx, func(db *store.Store) error {
		size, err := s.size(ctx, db.DB())
		if err != nil {
			return err
		}
		add("size of the database", fmt.Sprintf("%d MB", size>>20))
		for _, one := range []struct {
			what string
			do   func() error
		}{
			{"a sweep", func() error { _, err := db.Sweep(ctx); return err }},
			{"the counts of /metrics", func() error { _, err := db.Stats(ctx); return err }},
			{"listing all threads for a look", func() error { return db.EachThread(ctx, scaleOwners*scaleRepos*scaleThreads, func(thread.ID) {}) }},
		} {
			var took []time.Duration
			for range 20 {
				began := time.Now()
				if err := one.do(); err != nil {
					return err
				}
				took = append(took, time.Since(began))
			}
			add(one.what, spread(took))
		}
		if s.DSN != "" { // the requests to GitHub do not depend on the database
			return nil
		}
		more, err := s.looks(ctx, db)
		rows = append(rows, more...)
		return err
	})
	return rows, err
}

// size returns the database's size. It ignores SQLite's write-ahead log, which is empty while no process has the database
// open.
func (s *scale) size(ctx context.Context, db *sql.DB) (bytes int64, err error) {
	if s.DSN == "" {
		info, err := os.Stat(filepath.Join(s.Dir, "pawl.db"))
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	return bytes, db.QueryRowContext(ctx, "SELECT pg_database_size(current_database())").Scan(&bytes)
}

func (s *scale) served(ctx context.Context, add func(what, measured string)) error {
	s.World.ResetCalls()
	ready, err := s.Start(ctx)
	if err != nil {
		return err
	}
	add("start to ready", ms(ready))
	began := time.Now()
	err = s.Until(ctx, "the first look", func() (bool, error) {
		return s.World.Calls()["GET /repos/{owner}/{repo}/issues"] >= firstLook, nil
	})
	if err != nil {
		return err
	}
	add("start to the end of the first look", time.Since(began).Round(time.Second).String())
	pid := s.Server.Process.Pid
	used := cpuTime(pid)
	if err := wait.For(ctx, quietFor); err != nil {
		return err
	}
	used = cpuTime(pid) - used
	var u usage
	var most int
	for field, into := range map[string]*int{"VmRSS": &u.resident, "RssAnon": &u.anonymous, "VmHWM": &most} {
		if *into, err = kilobytes(pid, field); err != nil {
			return err
		}
	}
	add("resident memory after the first look", fmt.Sprintf("%s; at most %.1f MB", u, float64(most)/1024))
	add(fmt.Sprintf("processor time of the server in an idle %s", quietFor), ms(used))
	n, err := s.transactions(ctx, pid)
	if err != nil {
		return err
	}
	add(fmt.Sprintf("transactions in an idle %s, one node", quietFor), fmt.Sprint(n))
	return s.Stop()
}

// transactions counts an idle server's transactions. PostgreSQL counts them itself. For SQLite, strace counts the locks on
// the index of the write-ahead log: a transaction begins with a shared lock, unless the process already holds it.
func (s *scale) transactions(ctx context.Context, pid int) (n int64, err error) {
	if s.DSN == "" {
		seen := filepath.Join(s.Dir, "locks")
		minute, cancel := context.WithTimeout(ctx, quietFor)
		defer cancel()
		trace := exec.CommandContext(minute, "strace", "-f", "-e", "trace=fcntl", "-P", filepath.Join(s.Dir, "pawl.db-shm"), "-o", seen, "-p", fmt.Sprint(pid))
		trace.Cancel = func() error { return trace.Process.Signal(os.Interrupt) } // strace then detaches without a change to the server
		if err := trace.Run(); err != nil && minute.Err() == nil {
			return 0, fmt.Errorf("count SQLite's transactions with strace, which .ci/setup installs: %w", err)
		}
		locks, err := os.ReadFile(seen)
		return int64(strings.Count(string(locks), "F_RDLCK")), err
	}
	db, err := store.Open(ctx, s.Database(), store.Options{Access: store.Reading})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	count := func() (n int64, err error) {
		return n, db.DB().QueryRowContext(ctx, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()").Scan(&n)
	}
	before, err := count()
	if err == nil {
		err = wait.For(ctx, quietFor)
	}
	if err == nil {
		n, err = count()
	}
	return n - before, err
}

// looks counts Pawl's requests to GitHub in two hours without events, and the looks until every repository was compared.
// Waits for GitHub's limits only move the virtual clock.
func (s *scale) looks(ctx context.Context, db *store.Store) ([]row, error) {
	client, err := forge.New(forge.Config{WebURL: s.World.WebURL(), APIURL: s.World.APIURL(), AppID: 1, PrivateKey: s.World.PrivateKeyPEM(), Now: s.now,
		Sleep: func(ctx context.Context, d time.Duration) error { s.offset.Add(int64(d)); return ctx.Err() }})
	if err != nil {
		return nil, err
	}
	h := &handlers.Handlers{Store: db, Forge: client, Now: s.now, Solver: &solver.Solver{Env: attempt.Env{Store: db, Now: s.now}}}
	w := catchup.New(h, db, cluster.NewDuty(db, "catch-up", "bench", time.Hour/looksAnHour))
	var took []time.Duration
	most, app, all, whole := 0, 0, 0, 0
	hour, compared := map[string]int{}, map[string]bool{}
	for look := range 2*looksAnHour + 2 {
		if look%looksAnHour == 0 {
			clear(hour)
		}
		s.World.ResetCalls()
		began := s.now()
		if _, err := w.Missed(ctx); err != nil {
			return nil, err
		}
		if _, err := w.Reconcile(ctx); err != nil {
			return nil, err
		}
		took = append(took, s.now().Sub(began))
		for _, r := range s.World.Requests() {
			installation, own := strings.CutPrefix(r.Caller, "installation:")
			if mint, ok := strings.CutPrefix(r.Path, "/app/installations/"); ok {
				installation, _, own = strings.Cut(mint, "/")
			}
			if strings.HasSuffix(r.Path, "/issues") {
				compared[r.Path] = true
			}
			switch {
			case own:
				hour[installation]++
				most = max(most, hour[installation])
			case look < looksAnHour:
				app++
			}
			if look < looksAnHour {
				all++
			}
		}
		if whole == 0 && len(compared) >= scaleOwners*scaleRepos {
			whole = look + 1
		}
		s.offset.Add(int64(began.Add(time.Hour / looksAnHour).Sub(s.now())))
	}
	s.offset.Store(0)
	return []row{
		{"requests in an hour, the installation with most", fmt.Sprint(most), fmt.Sprint("≤ ", quietCallsAim), most <= quietCallsAim},
		{what: "requests in an hour, the App's own and all", measured: fmt.Sprintf("%d and %d", app, all)},
		{what: "looks until every repository was compared", measured: fmt.Sprintf("%d, of %s each", whole, spread(took))},
	}, nil
}
