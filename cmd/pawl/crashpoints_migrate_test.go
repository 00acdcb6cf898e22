package main

import (
	"compress/gzip"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver/thread"
)

// The older databases are those of the store's own test: what the pawl of commit
// dc0d258 wrote. They hold one thread that waits, with its pull request, one whose
// step was killed, two deliveries, a breaker and a cooldown.
const (
	oldFolder = "../../internal/store/testdata/"
	oldRepo   = "octo/cat"
	oldPull   = 7
)

// oldTime is soon after the older databases were written and what they wait for.
var oldTime = time.Date(2026, 11, 20, 13, 5, 0, 0, time.UTC)

func TestAMigrationThatIsKilledLosesNothingOfAnOlderDatabase(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	points := []string{"migrating", "migrated"}
	t.Run("sqlite", func(t *testing.T) {
		for _, point := range points {
			t.Run(point, func(t *testing.T) { t.Parallel(); newOld(t, nil).killed(point) })
		}
		// The database's log is written by each migration's commit.
		t.Run("at each write", func(t *testing.T) { t.Parallel(); newOld(t, nil).killedAtWrites(12) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db := startPostgres(t)
		for _, point := range points {
			t.Run(point, func(t *testing.T) { newOld(t, db).killed(point) })
		}
		// Tables that a migration has to wait for, once it has changed others.
		for _, table := range []string{"threads", "aliases", "deliveries"} {
			t.Run("at "+table, func(t *testing.T) { newOld(t, db).killedAtTable(table) })
		}
	})
}

// old is a server to come on an older database.
type old struct {
	*lives
	db   *sql.DB
	path string   // of the SQLite file; empty for PostgreSQL
	rows []string // of the older database
}

func newOld(t *testing.T, pg *pgServer) *old {
	t.Helper()
	o := &old{lives: newLives(t, nil)}
	o.ahead.Store(int64(time.Until(oldTime)))
	o.must(o.world.AddRepo(t.Context(), oldRepo, map[string]string{"a.txt": "one\n"}))
	o.must(o.world.SetRole(oldRepo, writer, "write"))
	o.must(o.world.Install(oldRepo))
	for i := range oldPull - 1 {
		_, err := o.world.OpenIssue(oldRepo, writer, fmt.Sprintf("Issue %d", i+1), "Please add a line to a.txt.")
		o.must(err)
	}
	_, err := o.world.PushCommit(t.Context(), oldRepo, writer, fakegithub.Commit{Branch: "pawl/issue-1", Files: map[string]string{"a.txt": "one\ntwo\n"}})
	o.must(err)
	pull, err := o.world.OpenPull(t.Context(), oldRepo, writer, fakegithub.PullRequest{Title: "Issue 1", Head: "pawl/issue-1", Draft: true})
	o.must(err)
	if pull != oldPull {
		t.Fatalf("the pull request is #%d, the database says #%d", pull, oldPull)
	}
	o.agent("cat > /dev/null\necho \"line $(wc -l < a.txt)\" >> a.txt\n", "")
	if pg != nil {
		o.dsn = pg.newDatabase(t)
		dump, err := os.ReadFile(oldFolder + "dc0d258.sql")
		o.must(err)
		o.db = pg.Open(t, strings.Split(strings.TrimPrefix(o.dsn, "postgres://pawl@/"), "?")[0])
		_, err = o.db.ExecContext(t.Context(), string(dump))
		o.must(err)
		_, err = o.db.ExecContext(t.Context(), "SET search_path TO public") // which the dump took away from this connection
		o.must(err)
	} else {
		o.unpack()
	}
	o.rows = o.content()
	return o
}

func (o *old) unpack() {
	o.t.Helper()
	packed, err := os.Open(oldFolder + "dc0d258.db.gz")
	o.must(err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	o.must(err)
	data, err := io.ReadAll(unpacked)
	o.must(err)
	o.path = filepath.Join(o.dir, "pawl.db")
	o.must(os.WriteFile(o.path, data, 0o600))
	o.db, err = sql.Open("sqlite", "file:"+o.path+"?mode=ro&_pragma=busy_timeout(5000)")
	o.must(err)
	o.t.Cleanup(func() { o.db.Close() })
}

// content is what an upgrade must not change.
func (o *old) content() (rows []string) {
	o.t.Helper()
	for _, query := range []string{
		"SELECT id, owner, name, number FROM threads WHERE id <= 2 ORDER BY id",
		"SELECT seq, coalesce(key, ''), kind, at, data FROM events WHERE thread_id = 1 AND seq <= 3 ORDER BY seq",
		"SELECT owner, name, number, thread_id FROM aliases ORDER BY number",
		"SELECT account, state FROM breakers WHERE account = 'main'",
		"SELECT backend, repo, until, thread FROM cooldowns", // the class moves; the store's test of the upgrade reads it
		"SELECT guid, event, received_at FROM deliveries WHERE guid IN ('open', 'done') ORDER BY guid",
	} {
		rows = append(rows, o.list(query)...)
	}
	return rows
}

func (o *old) list(query string) (list []string) {
	o.t.Helper()
	rows, err := o.db.QueryContext(o.t.Context(), query)
	o.must(err)
	defer rows.Close()
	columns, err := rows.Columns()
	o.must(err)
	for rows.Next() {
		values := make([]string, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		o.must(rows.Scan(into...))
		list = append(list, strings.Join(values, "|"))
	}
	o.must(rows.Err())
	return list
}

// killed kills the first life at a point.
func (o *old) killed(point string) {
	o.t.Helper()
	o.env = func(life int) []string {
		if life == 0 {
			return []string{"PAWL_CRASH_AT=" + point}
		}
		return nil
	}
	o.begin()
	o.goesOn(1)
}

// killedAtWrites kills one life after the other when it has written to the file
// for the first time, the second and so on.
func (o *old) killedAtWrites(most int) {
	o.t.Helper()
	o.begin()
	for life := range most {
		before, _ := os.Stat(o.path + "-wal") // there is none at first
		for writes := 0; writes <= life && !o.serves(); {
			now, err := os.Stat(o.path + "-wal")
			if err == nil && (before == nil || now.Size() != before.Size() || now.ModTime() != before.ModTime()) {
				before = now
				writes++
			}
			o.must(o.failed())
		}
		o.kill()
		o.await("the death", func() bool { return len(o.died()) == life+1 })
		o.t.Logf("killed with the schema at %v", o.list("SELECT version_id FROM goose_db_version ORDER BY id"))
	}
	o.goesOn(most)
}

// killedAtTable kills the first life while a migration waits for a table that
// somebody else uses.
func (o *old) killedAtTable(table string) {
	o.t.Helper()
	ctx := o.t.Context()
	tx, err := o.db.BeginTx(ctx, nil)
	o.must(err)
	defer tx.Rollback() // it may be over
	_, err = tx.ExecContext(ctx, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
	o.must(err)
	o.begin()
	o.await("the migration to wait", func() bool {
		return len(o.list("SELECT pid FROM pg_locks WHERE NOT granted AND relation = '"+table+"'::regclass")) > 0
	})
	o.kill()
	o.await("the death", func() bool { return len(o.died()) == 1 })
	o.must(tx.Rollback())
	o.goesOn(1)
}

// goesOn checks that after so many deaths the next life has the whole schema and
// all that was there, and works on what was waiting and on what is new.
func (o *old) goesOn(deaths int) {
	t := o.t
	t.Helper()
	o.serving()
	if n := len(o.died()); n != deaths {
		t.Fatalf("%d lives ended at %v, want %d", n, o.died(), deaths)
	}
	if diff := cmp.Diff(o.rows, o.content()); diff != "" {
		t.Errorf("what the older database held (-before +after)\n%s", diff)
	}
	files, err := filepath.Glob("../../internal/store/migrations/sqlite/*.sql")
	o.must(err)
	if v := o.list("SELECT version_id, count(*) FROM goose_db_version WHERE is_applied GROUP BY version_id HAVING count(*) = 1"); len(v) != len(files)+1 {
		t.Errorf("applied once are %q, want 0 to %d", v, len(files))
	}
	_, err = o.world.Comment(oldRepo, 1, writer, "/pawl solve one more line")
	o.must(err)
	_, err = o.world.Comment(oldRepo, 3, writer, "/pawl solve")
	o.must(err)
	states := o.settled("the work on old and new threads", patience, func(states map[string]thread.State) bool {
		return worked(states[oldRepo+"#1"]) > 0 && worked(states[oldRepo+"#3"]) > 0
	})
	o.invariants(states, oldRepo)
	for _, row := range o.list("SELECT guid, state FROM deliveries WHERE guid IN ('open', 'done')") {
		if !strings.HasSuffix(row, "|handled") {
			t.Errorf("a delivery of before: %s", row)
		}
	}
	if s := states[oldRepo+"#1"]; s.Pull != oldPull || len(o.world.Pulls(oldRepo)) != 2 {
		t.Errorf("the older thread goes on in #%d, and %d pull requests are there, want #%d and two", s.Pull, len(o.world.Pulls(oldRepo)), oldPull)
	}
}
