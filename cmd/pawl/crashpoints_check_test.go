package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// invariants are what holds however often and wherever this server died.
func (l *lives) invariants(states map[string]thread.State, repos ...string) {
	l.t.Helper()
	l.invariantsAfter(l.died(), states, repos...)
}

// invariantsAfter are those after the deaths of all servers on the database.
func (l *lives) invariantsAfter(deaths []death, states map[string]thread.State, repos ...string) {
	l.t.Helper()
	l.delivered()
	for _, repo := range repos {
		l.onGitHub(repo)
		l.heard(repo)
	}
	for name, s := range states {
		cut := deaths // that may cut an attempt off
		if l.orderly {
			cut = nil
		}
		for _, wrong := range attemptsWrong(s, cut) {
			l.t.Errorf("%s: %s", name, wrong)
		}
		for _, wrong := range leftOver(s) {
			l.t.Errorf("%s: %s", name, wrong)
		}
	}
	if left := l.processes(); len(left) > 0 {
		l.t.Errorf("processes of agents are left: %q", left)
	}
	if left, err := filepath.Glob(filepath.Join(l.dir, l.data, "attempts", "*", "*", "*", "work")); err != nil || len(left) > 0 {
		l.t.Errorf("work folders are left: %q, %v", left, err)
	}
}

// leftOver is what a thread that rests has not done.
func leftOver(s thread.State) (wrong []string) {
	for key, act := range s.Acts {
		if !act.Done && !strings.HasPrefix(key, "push:") {
			wrong = append(wrong, key+" was begun and never done")
		}
	}
	for _, q := range s.Questions {
		wrong = append(wrong, fmt.Sprintf("the question %q was not answered", q.Raw))
	}
	for _, f := range s.Feedback {
		// Only the bounds of a run and of a day leave somebody's words aside.
		bounded := s.Decision != nil && (s.Decision.Rule == "daily_cap" || s.Decision.Rule == "restart_limit")
		if f.Taken == 0 && f.Withdrawn == "" && !bounded {
			wrong = append(wrong, fmt.Sprintf("no attempt took %q, and the run ended with %+v", f.Raw, s.Decision))
		}
	}
	return wrong
}

// delivered checks that every delivery that was answered with 2xx is stored and
// was handled, and that the others were taken in by the catching up.
func (l *lives) delivered() {
	l.t.Helper()
	list := l.world.Deliveries()
	if len(list) > 0 && list[0].ID > l.checked+1 && l.checked > 0 {
		l.t.Errorf("deliveries %d to %d were not checked before GitHub forgot them", l.checked+1, list[0].ID-1)
	}
	l.read(func(db *store.Store) {
		for _, d := range list {
			l.checked = d.ID
			if d.StatusCode/100 != 2 && !l.misses(d) {
				continue
			}
			stored, err := db.Delivery(l.t.Context(), d.GUID)
			if err != nil || stored.State != thread.Handled {
				l.t.Errorf("delivery %s (%s %s) was answered with %d and is %q: %v", d.GUID, d.Event, d.Action, d.StatusCode, stored.State, err)
			}
		}
	})
}

// misses reports whether Pawl has to ask GitHub for a delivery that failed. What
// came before its first start was sent to nobody, and much is of no use to it.
func (l *lives) misses(d fakegithub.Delivery) bool {
	useless := []string{"ping", "create", "check_suite", "label", "status"}
	return d.Answered && d.StatusCode/100 != 2 && !d.At.Before(l.since) && !slices.Contains(useless, d.Event) &&
		(d.Event != "check_run" || d.Action != "created")
}

// missed are the deliveries that failed and are not stored yet.
func (l *lives) missed() (guids []string) {
	l.t.Helper()
	for _, d := range l.world.Deliveries() {
		if l.misses(d) {
			guids = append(guids, d.GUID)
		}
	}
	l.read(func(db *store.Store) {
		known, err := db.Known(l.t.Context(), guids)
		l.must(err)
		guids = slices.DeleteFunc(guids, func(guid string) bool { return known[guid] })
	})
	return guids
}

// heard checks that every comment that a person wrote is in its thread's log,
// once.
func (l *lives) heard(repo string) {
	l.t.Helper()
	l.read(func(db *store.Store) {
		for _, issue := range l.world.Issues(repo) {
			t, err := db.Resolve(l.t.Context(), threadOf(repo, issue.Number))
			l.must(err)
			events, err := db.Events(l.t.Context(), t, 0)
			l.must(err)
			times, known := judged(events), false
			for _, c := range l.world.Comments(repo, issue.Number) {
				if c.ViaApp {
					// Once Pawl tells of its work, the order for it is in the log.
					known = known || !strings.HasPrefix(mark(c.Body), "answer")
					continue
				}
				// Before anybody asked for work, chatter is not kept.
				n := times[thread.Target{Kind: "issue_comment", ID: c.ID}]
				if n != 1 && (n > 1 || strings.HasPrefix(c.Body, "/pawl") || known) {
					l.t.Errorf("%s: comment %d (%q) is in the log %d times", t, c.ID, c.Body, n)
				}
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
func (r *rig) processes() (left []string) {
	r.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	r.must(err)
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || !strings.Contains(string(env), "PAWL_THREAD=") || !strings.Contains(string(env), r.dir) {
			continue
		}
		line, _ := os.ReadFile(dir + "/cmdline")
		if len(line) > 0 { // a zombie has none
			left = append(left, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return left
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

// threadOf is the thread of an issue.
func threadOf(repo string, number int) thread.ID {
	owner, name, _ := strings.Cut(repo, "/")
	return thread.ID{Owner: owner, Name: name, Number: number}
}
