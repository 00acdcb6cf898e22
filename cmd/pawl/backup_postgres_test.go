package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/testrig"
)

// tool is a program of PostgreSQL, of the newest version that is installed.
func pgTool(t *testing.T, name string) string {
	t.Helper()
	// The pattern is well formed, so there is no error to look at.
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[len(found)-1]
	}
	return needs.Program(t, name)
}

// The commands are those of docs/operations.md.
func TestADumpOfPostgreSQLThatIsMadeWhileServingGoesOnInANewDatabase(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	dump, restore := pgTool(t, "pg_dump"), pgTool(t, "pg_restore")
	c := newCluster(t, db)
	c.Agent(testrig.GatedAgent, "")
	node := c.join()
	first := c.issue(testrig.Repo, "A second line")
	if s := c.Over(first.String()); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	c.Gate()
	second := c.issue(testrig.Repo, "A third line")
	c.Await("the second agent", func() bool { return c.Calls() == 2 })

	archive := filepath.Join(t.TempDir(), "pawl.dump")
	if out, err := exec.Command(dump, "-Fc", "-f", archive, c.DSN).CombinedOutput(); err != nil {
		t.Fatalf("pg_dump: %v\n%s", err, out)
	}
	c.Open()
	if s := c.Over(second.String()); s.State != "done" {
		t.Fatalf("%s (%s %q) while the dump was made, want done", s.State, s.Rule, s.Reasons)
	}
	c.leave(node, syscall.SIGTERM)

	c.DSN = db.newDatabase(t)
	if out, err := exec.Command(restore, "--no-owner", "-d", c.DSN, archive).CombinedOutput(); err != nil {
		t.Fatalf("pg_restore: %v\n%s", err, out)
	}
	node = c.join()
	c.Await("the thread that the dump holds half of", func() bool {
		s := c.Thread(second.String())
		return s.State == "done" && s.Attempts == 2
	})
	third := c.issue(testrig.Repo, "A fourth line")
	if s := c.Over(third.String()); s.State != "done" {
		t.Errorf("%s (%s %q) after the restore, want done", s.State, s.Rule, s.Reasons)
	}
	c.leave(node, syscall.SIGTERM)
	for _, n := range []int{first.Number, second.Number, third.Number} {
		c.OneOfEach(n)
	}
	if strings.Contains(node.Log.String(), `"level":"error"`) {
		t.Errorf("the restored node logged errors:\n%s", node.Log)
	}
}
