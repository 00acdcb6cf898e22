package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/commands"
	"github.com/pawlbot/pawl/internal/status"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// jsonColumns lists the columns that contain JSON: the rows to damage, and the resulting message in pawl status or the
// thread. Pawl decodes none of plainColumns.
var (
	jsonColumns = map[string]struct{ where, want string }{
		"events.data":        {"kind = 'decision'", "the log is damaged: event"},
		"threads.note":       {"true", ""},
		"breakers.state":     {"account = 'mine'", "account mine: its row in the table breakers cannot be read"},
		"cooldowns.state":    {"backend = 'mine'", "mine on acme/widgets: its row in the table cooldowns cannot be read"},
		"windows.state":      {"account = 'mine'", ""},
		"graded.data":        {"true", ""},
		"shared.data":        {"true", ""},
		"deliveries.payload": {"true", ""},
	}
	plainColumns = []string{
		"aliases.name", "aliases.owner", "attempts.account", "attempts.repo", "breakers.account", "cooldowns.backend", "cooldowns.effort", "cooldowns.model", "cooldowns.repo",
		"cooldowns.thread", "deliveries.event", "deliveries.guid", "deliveries.note", "deliveries.state", "events.key", "events.kind", "graded.backend", "graded.id",
		"graded.repo", "shared.key", "threads.account", "threads.lease_owner", "threads.name", "threads.owner", "threads.place", "windows.account", "windows.name",
	}
)

const elsewhere = "acme/gadgets"

// damage returns a server after work in a repository, with a row in each table.
func damage(t *testing.T) (r *rig, issue int) {
	t.Helper()
	r = newRig(t, nil)
	r.Must(r.World.AddRepo(t.Context(), elsewhere, map[string]string{"a.txt": "one\n", config.RepoFile: testrig.AllChecks}))
	r.Must(r.World.AddUser("mia", 1003, map[string]string{testrig.Repo: "maintain", elsewhere: "maintain"}))
	r.Must(r.World.Install(elsewhere))
	r.Agent(testrig.PlainAgent, "")
	_, backend, _ := strings.Cut(r.Config, "\n")
	r.Config += strings.Replace(backend, "name: mine", "name: other", 1)
	r.Start()
	issue, _ = r.Solved()
	r.Settle()
	for _, insert := range []string{
		"INSERT INTO breakers VALUES ('mine', '{}') ON CONFLICT DO NOTHING",
		"INSERT INTO windows VALUES ('mine', 'five_hour', 1, '{}')",
		"INSERT INTO cooldowns VALUES ('acme/widgets', 'mine', '', '', 9000000000000000, 0, '{}', 'acme/widgets#1')",
	} {
		r.change(insert)
	}
	r.change("UPDATE threads SET note = CAST('{}' AS BLOB)")
	return r, issue
}

func (r *rig) change(query string, args ...any) {
	r.T.Helper()
	_, err := r.Node.Store().DB().ExecContext(r.T.Context(), query, args...)
	r.Must(err)
}

// report returns the text of `pawl status`.
func (r *rig) report() string {
	r.T.Helper()
	report, err := status.Read(r.T.Context(), r.Node.Config(), r.Node.Store(), r.Clock.Now(), status.AllThreads)
	r.Must(err)
	var text strings.Builder
	report.Print(&text)
	return text.String()
}

// goesOn checks that the pages respond and that the server finishes work in another repository.
func (r *rig) goesOn() {
	r.T.Helper()
	for _, page := range []string{"/", "/accounts", "/backends", "/metrics", "/readyz", "/threads/acme/widgets/1", "/?repo=acme%2Fwidgets"} {
		if code, text := r.Get(page); code != http.StatusOK {
			r.T.Errorf("%s answers %d: %s", page, code, text)
		}
	}
	n, err := r.World.OpenIssue(elsewhere, "mia", "A line", "Please add a line to a.txt.")
	r.Must(err)
	_, err = r.World.Comment(elsewhere, n, "mia", "/pawl solve")
	r.Must(err)
	if s := r.Over(thread.ID{Owner: "acme", Name: "gadgets", Number: n}.String()); s.State != "done" {
		r.T.Errorf("a thread of another repository is %s (%s %v), want done", s.State, s.Rule, s.Reasons)
	}
}

func TestEveryJSONColumnHasARuleForDamage(t *testing.T) {
	t.Parallel()
	r, _ := damage(t)
	var got []string
	rows, err := r.Node.Store().DB().QueryContext(t.Context(), `SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name <> 'goose_db_version' AND c.type IN ('TEXT', 'BLOB')`)
	r.Must(err)
	defer rows.Close()
	for rows.Next() {
		var column string
		r.Must(rows.Scan(&column))
		got = append(got, column)
	}
	want := slices.Concat(plainColumns, slices.Collect(maps.Keys(jsonColumns)))
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("each column needs a rule for damage, or an entry in plain (-want +got):\n%s", diff)
	}
}

func TestDamagedRowAffectsOnlyItsSubject(t *testing.T) {
	t.Parallel()
	for column, c := range jsonColumns {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			r, _ := damage(t)
			table, name, _ := strings.Cut(column, ".")
			r.Get("/") // signs in
			r.change(fmt.Sprintf("UPDATE %s SET %s = CASE typeof(%[2]s) WHEN 'blob' THEN CAST('x{' AS BLOB) ELSE 'x{' END WHERE %[2]s IS NOT NULL AND %[3]s", table, name, c.where))
			r.goesOn()
			r.wantIn("pawl status", r.report(), c.want)
		})
	}
}

func TestDamagedPauseLogStopsItsRepositoryUntilItIsUnpaused(t *testing.T) {
	t.Parallel()
	r, _ := damage(t)
	by := commands.Actor{Login: "root", Where: "in the shell", At: r.Clock.Now()}
	r.Must(commands.Pause(t.Context(), r.Node.Store(), "acme", "widgets", by))
	r.change("UPDATE events SET data = 'x{' WHERE kind = 'operated'")
	r.goesOn()
	n := r.Solve("Another line", "Please add another line to a.txt.")
	s := r.Over(testrig.ThreadName(n))
	if s.Rule != "paused" {
		t.Fatalf("%s (%s %v), want paused", s.State, s.Rule, s.Reasons)
	}
	r.wantIn("the reasons", strings.Join(s.Reasons, " "), "the pause log of acme/widgets cannot be read (event 1: invalid character 'x' looking for beginning of value); pawl unpause or pawl pause decides")
	if resumed, err := commands.Unpause(t.Context(), r.Node.Store(), "acme", "widgets", by); err != nil || resumed != 1 {
		t.Errorf("%d threads continue (%v), want 1", resumed, err)
	}
	r.Await("the work", func() bool { return r.Thread(testrig.ThreadName(n)).State == "done" })
}

// An operator or a user replaces the row with the command that the message names.
func TestCommandRepairsADamagedAccount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table, rule, want string
		mend              func(r *rig, n int)
	}{
		"breaker": {"breakers", "no_backend", "run pawl close-breaker", func(r *rig, n int) {
			by := commands.Actor{Login: "root", Where: "in the shell", At: r.Clock.Now()}
			r.Must(commands.CloseBreaker(t.Context(), r.Node.Store(), "mine", by))
			r.Writes(n, testrig.Writer, "/pawl resume")
		}},
		"breaker, tried": {"breakers", "no_backend", "`/pawl resume` tries once", func(r *rig, n int) {
			r.Writes(n, testrig.Writer, "/pawl resume")
		}},
		"cooldown": {"cooldowns", "no_backend", "`/pawl resume` on a thread of this repository replaces the row", func(r *rig, n int) {
			r.Writes(n, testrig.Writer, "/pawl resume")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := damage(t)
			r.change("UPDATE " + c.table + " SET state = '[]'")
			n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "Another line", "Please add another line to a.txt.")
			r.Must(err)
			r.Writes(n, testrig.Writer, "/pawl use mine")
			r.Settle() // deliveries are handled in no fixed order
			r.Writes(n, testrig.Writer, "/pawl solve")
			s := r.Over(testrig.ThreadName(n))
			if string(s.Rule) != c.rule {
				t.Fatalf("%s (%s %v), want %s", s.State, s.Rule, s.Reasons, c.rule)
			}
			r.Await("the remedy on the thread", func() bool { return strings.Contains(r.StatusComment(n), c.want) })
			c.mend(r, n)
			r.Await("the work", func() bool { return r.Thread(testrig.ThreadName(n)).State == "done" })
			var left int
			r.Must(r.Node.Store().DB().QueryRowContext(t.Context(), "SELECT count(*) FROM "+c.table+" WHERE state = '[]'").Scan(&left))
			if left > 0 {
				t.Error("the damaged row still exists")
			}
		})
	}
}
