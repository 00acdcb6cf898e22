package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

// mostAttempts is how many attempts a thread may have in a day by default
// (policy.restarts.max_per_thread_per_day).
const mostAttempts = 60

// invariants are what holds however often and wherever servers died.
func (l *lives) invariants(states map[string]solver.State, repos ...string) {
	l.t.Helper()
	l.acknowledged()
	for _, repo := range repos {
		l.onGitHub(repo)
	}
	for name, s := range states {
		// One try is lost with each life at most, and each asked for one that
		// worked: what was asked for is what the log took in.
		if most := min(len(l.died())+len(s.Feedback), mostAttempts); len(s.Attempts) > most {
			l.t.Errorf("%s: %d attempts for %d remarks in %d lives", name, len(s.Attempts), len(s.Feedback), len(l.died())+1)
		}
		for _, a := range s.Attempts {
			if a.EndedAt.IsZero() {
				l.t.Errorf("%s: attempt %d has no end", name, a.N)
			}
		}
		for key, act := range s.Acts {
			if !act.Done && !strings.HasPrefix(key, "push:") {
				l.t.Errorf("%s: %s was begun and never done", name, key)
			}
		}
	}
	if left := l.processes(); len(left) > 0 {
		l.t.Errorf("processes of agents are left: %q", left)
	}
}

// acknowledged checks that every delivery that was answered with 2xx is stored
// and was handled.
func (l *lives) acknowledged() {
	l.t.Helper()
	l.openDB(func(db *store.Store) {
		for _, d := range l.world.Deliveries() {
			if d.StatusCode/100 != 2 {
				continue
			}
			stored, err := db.Delivery(l.t.Context(), d.GUID)
			if err != nil || stored.State != solver.Handled {
				l.t.Errorf("delivery %s (%s %s) was answered with %d and is %q: %v", d.GUID, d.Event, d.Action, d.StatusCode, stored.State, err)
			}
		}
	})
}

// onGitHub checks that in a repository nothing is there twice and no check run
// goes on.
func (l *lives) onGitHub(repo string) {
	l.t.Helper()
	count := map[string]int{}
	for _, issue := range l.world.Issues(repo) {
		for _, reaction := range issue.Reactions {
			count[fmt.Sprintf("reaction %q on #%d", reaction, issue.Number)]++
		}
		for _, c := range l.world.Comments(repo, issue.Number) {
			if c.ViaApp {
				count[fmt.Sprintf("comment %s on #%d", mark(c.Body), issue.Number)]++
			}
			for _, reaction := range c.Reactions {
				count[fmt.Sprintf("reaction %q on comment %d", reaction, c.ID)]++
			}
		}
	}
	for _, p := range l.world.Pulls(repo) {
		count["pull request of "+p.Pull.Head]++
	}
	for _, c := range l.world.CheckRuns(repo) {
		count["check run "+c.Name+" on "+c.SHA]++
		if c.Status != "completed" {
			l.t.Errorf("%s: check run %s on %s is %s", repo, c.Name, c.SHA, c.Status)
		}
	}
	for what, n := range count {
		if n != 1 {
			l.t.Errorf("%s: %s is there %d times", repo, what, n)
		}
	}
	for _, p := range l.world.Pushes(repo) {
		if p.Forced {
			l.t.Errorf("%s: a force push: %+v", repo, p)
		}
	}
}

// mark is the marker of a comment by Pawl.
func mark(body string) string {
	_, rest, _ := strings.Cut(body, "<!-- pawl:")
	text, _, _ := strings.Cut(rest, "-->")
	return text
}

// processes are the command lines of what agents of this rig left running.
func (l *lives) processes() (left []string) {
	l.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	l.must(err)
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || !strings.Contains(string(env), "PAWL_THREAD=") || !strings.Contains(string(env), l.dir) {
			continue
		}
		line, _ := os.ReadFile(dir + "/cmdline")
		if len(line) > 0 { // a zombie has none
			left = append(left, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return left
}

// openDB opens the database for reading.
func (l *lives) openDB(f func(*store.Store)) {
	l.t.Helper()
	dsn := l.database
	if path, isFile := strings.CutPrefix(dsn, "sqlite:"); isFile {
		dsn = "sqlite:" + filepath.Join(l.dir, path)
	}
	db, err := store.OpenReadOnly(l.t.Context(), dsn, store.Options{Now: l.now})
	l.must(err)
	defer db.Close()
	f(db)
}

// byHead is the pull request of a branch; the zero value when there is none.
func (l *lives) byHead(repo, head string) fakegithub.Issue {
	for _, p := range l.world.Pulls(repo) {
		if p.Pull.Head == head {
			return p
		}
	}
	return fakegithub.Issue{}
}
