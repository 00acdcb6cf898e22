package crashtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// Invariants checks what must hold after any deaths of this server.
func (l *Lives) Invariants(states map[string]thread.State, repos ...string) {
	l.T.Helper()
	l.InvariantsAfter(l.Died(), states, repos...)
}

// InvariantsAfter checks what must hold after the deaths of all servers on the database. states holds all threads' final
// states.
func (l *Lives) InvariantsAfter(deaths []Death, states map[string]thread.State, repos ...string) {
	l.T.Helper()
	l.delivered()
	for _, repo := range repos {
		l.onGitHub(repo)
		l.logged(repo)
	}
	// An orderly stop interrupts no attempt.
	cut := slices.DeleteFunc(slices.Clone(deaths), func(d Death) bool { return d.Point == Stopped })
	for name, s := range states {
		for _, wrong := range AttemptsWrong(s, cut) {
			l.T.Errorf("%s: %s", name, wrong)
		}
		for _, wrong := range LeftOver(s) {
			l.T.Errorf("%s: %s", name, wrong)
		}
	}
	if left := Processes(l.T, l.Dir); len(left) > 0 {
		l.T.Errorf("processes of agents are left: %q", left)
	}
	l.NoWork()
}

// NoWork checks that servers remove the files of attempts that another server continued. They look every 15 s.
func (l *Lives) NoWork() {
	l.T.Helper()
	var left []string
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(time.Second) {
		var err error
		left, err = filepath.Glob(filepath.Join(l.Dir, l.Data, "attempts", "*", "*", "*", "work"))
		if err != nil {
			l.T.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
	}
	l.T.Errorf("work folders are left: %q", left)
}

// LeftOver lists what a finished thread has left undone.
func LeftOver(s thread.State) (wrong []string) {
	for key, act := range s.Acts {
		if !act.Done && !strings.HasPrefix(key, "push:") {
			wrong = append(wrong, key+" was begun and never done")
		}
	}
	for _, q := range s.Questions {
		wrong = append(wrong, fmt.Sprintf("the question %q was not answered", q.Raw))
	}
	for _, f := range s.Feedback {
		// Only the limits of a run and of a day may leave a remark without an attempt.
		bounded := s.Decision != nil && (s.Decision.Rule == "daily_cap" || s.Decision.Rule == "restart_limit")
		if f.Taken == 0 && f.Withdrawn == "" && !bounded {
			wrong = append(wrong, fmt.Sprintf("no attempt took %q, and the run ended with %+v", f.Raw, s.Decision))
		}
	}
	return wrong
}

// delivered checks that every delivery was stored and handled, including the failed ones that Pawl fetched later.
func (l *Lives) delivered() {
	l.T.Helper()
	list := l.World.Deliveries()
	if len(list) > 0 && list[0].ID > l.checked+1 && l.checked > 0 {
		l.T.Errorf("deliveries %d to %d were not checked before GitHub forgot them", l.checked+1, list[0].ID-1)
	}
	l.Read(func(db *store.Store) {
		for _, d := range list {
			l.checked = d.ID
			if d.StatusCode/100 != 2 && !l.misses(d) {
				continue
			}
			stored, err := db.Delivery(l.T.Context(), d.GUID)
			if err != nil || stored.State != thread.Handled {
				l.T.Errorf("delivery %s (%s %s) was answered with %d and is %q: %v", d.GUID, d.Event, d.Action, d.StatusCode, stored.State, err)
			}
		}
	})
}

// misses reports whether Pawl must fetch a failed delivery from GitHub. Deliveries from before its first start and
// unused events do not count.
func (l *Lives) misses(d fakegithub.Delivery) bool {
	useless := []string{"ping", "create", "check_suite", "label", "status"}
	return d.Answered && d.StatusCode/100 != 2 && !d.At.Before(l.since) && !slices.Contains(useless, d.Event) &&
		(d.Event != "check_run" || d.Action != "created")
}

// Missed returns the failed deliveries that are not stored yet.
func (l *Lives) Missed() (guids []string) {
	l.T.Helper()
	for _, d := range l.World.Deliveries() {
		if l.misses(d) {
			guids = append(guids, d.GUID)
		}
	}
	l.Read(func(db *store.Store) {
		known, err := db.Known(l.T.Context(), guids)
		l.must(err)
		guids = slices.DeleteFunc(guids, func(guid string) bool { return known[guid] })
	})
	return guids
}

// logged checks that every user's comment is in its thread's log exactly once.
func (l *Lives) logged(repo string) {
	l.T.Helper()
	l.Read(func(db *store.Store) {
		for _, issue := range l.World.Issues(repo) {
			t, err := db.Resolve(l.T.Context(), threadOf(repo, issue.Number))
			l.must(err)
			events, err := db.Events(l.T.Context(), t, 0)
			l.must(err)
			times, known := judged(events), false
			for _, c := range l.World.Comments(repo, issue.Number) {
				if c.ViaApp {
					// Once Pawl reports work, the command for it is in the log.
					known = known || !strings.HasPrefix(mark(c.Body), "answer")
					continue
				}
				// Before the first command, other comments are not logged.
				n := times[thread.Target{Kind: "issue_comment", ID: c.ID}]
				if n != 1 && (n > 1 || strings.HasPrefix(c.Body, "/pawl") || known) {
					l.T.Errorf("%s: comment %d (%q) is in the log %d times", t, c.ID, c.Body, n)
				}
			}
		}
	})
}

// onGitHub checks that a repository has no duplicates and no unfinished check run.
func (l *Lives) onGitHub(repo string) {
	l.T.Helper()
	count := map[string]int{}
	for _, issue := range l.World.Issues(repo) {
		for _, reaction := range issue.Reactions {
			count[fmt.Sprintf("reaction %q on #%d", reaction, issue.Number)]++
		}
		for _, c := range l.World.Comments(repo, issue.Number) {
			if c.ViaApp {
				count[fmt.Sprintf("comment %s on #%d", mark(c.Body), issue.Number)]++
			}
			for _, reaction := range c.Reactions {
				count[fmt.Sprintf("reaction %q on comment %d", reaction, c.ID)]++
			}
		}
	}
	for _, p := range l.World.Pulls(repo) {
		count["pull request of "+p.Pull.Head]++
	}
	for _, c := range l.World.CheckRuns(repo) {
		count["check run "+c.Name+" on "+c.SHA]++
		if c.Status != "completed" {
			l.T.Errorf("%s: check run %s on %s is %s", repo, c.Name, c.SHA, c.Status)
		}
	}
	for what, n := range count {
		if n != 1 {
			l.T.Errorf("%s: %s exists %d times", repo, what, n)
		}
	}
	for _, p := range l.World.Pushes(repo) {
		if p.Forced {
			l.T.Errorf("%s: a force push: %+v", repo, p)
		}
	}
}

// mark returns the marker of Pawl's comment.
func mark(body string) string {
	_, rest, _ := strings.Cut(body, "<!-- pawl:")
	text, _, _ := strings.Cut(rest, "-->")
	return text
}

// Processes returns the command lines of processes left running by agents of servers in a folder.
func Processes(t testing.TB, dir string) (left []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range all {
		env, err := os.ReadFile(process + "/environ")
		if err != nil || !strings.Contains(string(env), "PAWL_THREAD=") || !strings.Contains(string(env), dir) {
			continue
		}
		line, _ := os.ReadFile(process + "/cmdline")
		if len(line) > 0 { // a zombie has none
			left = append(left, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return left
}

func threadOf(repo string, number int) thread.ID {
	owner, name, _ := strings.Cut(repo, "/")
	return thread.ID{Owner: owner, Name: name, Number: number}
}
