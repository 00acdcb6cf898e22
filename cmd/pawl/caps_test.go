package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/status"
)

// Threads that are begun at once pass no cap together; those without room wait, say
// why, and go on when the operator has raised the cap.
func TestAWorkflowThatOpensThreadAfterThreadIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	config := r.config
	r.config += "policy: {caps: {per_repository_per_day: 3}}\n"
	r.start()
	for n := range 8 {
		r.solve(fmt.Sprintf("Follow-up %d", n), "Please add a line to a.txt.")
	}
	in := func(state, rule string) (all []status.Thread) {
		for _, s := range r.status().Threads {
			if s.State == state && string(s.Rule) == rule {
				all = append(all, s)
			}
		}
		return all
	}
	r.await("five threads to wait", func() bool { return len(in("waiting", "cap")) == 5 && len(in("done", "done")) == 3 })
	one := in("waiting", "cap")[0]
	if why := strings.Join(one.Reasons, "; "); !strings.Contains(why, "3 attempts on this repository in 24 hours; its limit is 3; the oldest of its attempts leaves that window at ") {
		t.Errorf("it waits because %s", why)
	}
	var n int
	fmt.Sscanf(one.Thread, rigRepo+"#%d", &n)
	r.must(r.says(n, writer, "/pawl resume")())
	r.settle()
	if got := r.calls(); got != 3 {
		t.Errorf("%d attempts after somebody asked to resume, want 3", got)
	}
	// One comment and one check run say so, and the log tells the operator.
	fmt.Sscanf(in("done", "done")[0].Thread, rigRepo+"#%d", &n)
	pull := r.pullOf(n)
	r.must(r.says(pull, writer, "Please add another word to a.txt.")())
	r.await("the check run", func() bool { return r.check(r.head(pull), "pawl").Title == "Waiting: the day's attempts are used up" })
	r.settle()
	all := slices.DeleteFunc(r.world.Comments(rigRepo, n), func(c fakegithub.Comment) bool { return c.Author != "pawl[bot]" })
	if len(all) != 1 || !strings.Contains(all[0].Body, "its limit is 3") || !strings.Contains(all[0].Body, "Pawl goes on by itself as soon as that is over") {
		t.Errorf("Pawl's comments on #%d are %+v, want one that says so", n, all)
	}
	if log := r.log.String(); !strings.Contains(log, `"rule":"cap"`) {
		t.Errorf("the log does not tell of the cap\n%s", log)
	}
	if day := r.status().Day; day.Attempts != 3 || day.MaxAttempts != 500 {
		t.Errorf("status says %+v", day)
	}
	var levels []string
	for _, l := range r.status().Levels {
		levels = append(levels, l.Level+": "+l.String())
	}
	owner, _, _ := strings.Cut(rigRepo, "/")
	for i, want := range []string{"this server: 3 of 500 attempts (497 left)", "account mine: 3 of 500 attempts (497 left)", "installation 3000000005 of " + owner + ": 3 of 300 attempts (297 left)", rigRepo + ": 3 of 3 attempts (0 left)"} {
		if len(levels) != 4 || !strings.HasPrefix(levels[i], want) {
			t.Errorf("status lists %q, want %q", levels, want)
		}
		if _, out, _ := pawl(t, r.dir, nil, "status", "--config", r.file()); !strings.Contains(out, "in the last 24 hours on "+want+", 0.00 of ") {
			t.Errorf("pawl status does not say %q:\n%s", want, out)
		}
		name, used, _ := strings.Cut(want, ": ")
		if _, page := r.get("/accounts"); !regexp.MustCompile(`<b>` + name + `</b>: <span class="\w*">` + regexp.QuoteMeta(used)).MatchString(page) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	if got := [2]float64{r.metric(`pawl_day_used{what="attempts"}`), r.metric(`pawl_day_bound{what="attempts"}`)}; got != [2]float64{3, 500} {
		t.Errorf("metrics say %v", got)
	}

	if code := r.stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	r.config = config
	// As if the time of their next look had come.
	_, err := r.database().ExecContext(t.Context(), "UPDATE threads SET wake_at = 1 WHERE wake_at > 0")
	r.must(err)
	r.start()
	r.await("all threads to be done", func() bool { return len(in("done", "done")) == 8 })
}

// Attempts on one repository use up the day of all those of its installation.
func TestTheDayOfAnInstallationIsThatOfAllItsRepositories(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const other = "acme/gadgets"
	r.must(r.world.AddRepo(t.Context(), other, map[string]string{"a.txt": "one\n"}))
	r.must(r.world.Install(other))
	r.must(r.world.AddUser("olga", 1003, map[string]string{rigRepo: "write", other: "write"}))
	r.agent(plainAgent, "")
	r.config += "policy: {caps: {per_installation_per_day: 2}}\n"
	r.start()
	r.solved()
	ask := func(repo string) (thread string) {
		n, err := r.world.OpenIssue(repo, "olga", "A line", "Please add a line to a.txt.")
		r.must(err)
		_, err = r.world.Comment(repo, n, "olga", "/pawl solve")
		r.must(err)
		return fmt.Sprintf("%s#%d", repo, n)
	}
	if s := r.over(ask(other)); s.State != "done" {
		t.Fatalf("%s is %s (%s %v), want done", s.Thread, s.State, s.Rule, s.Reasons)
	}
	for _, repo := range []string{rigRepo, other} {
		name := ask(repo)
		r.await(name+" to wait", func() bool { return r.thread(name).State == "waiting" })
		s := r.thread(name)
		if why := strings.Join(s.Reasons, "; "); s.Rule != "cap" || !strings.Contains(why, "2 attempts on this installation of the App in 24 hours; its limit is 2") {
			t.Errorf("%s waits by %s because %s", name, s.Rule, why)
		}
	}
	r.settle()
	if got := r.calls(); got != 2 {
		t.Errorf("%d attempts, want 2", got)
	}
}

// An account whose day is used up is left for another one; without one work waits.
func TestAnAccountsDayIsItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "account: free")
	argv := strings.Split(strings.Split(r.config, "argv: [")[1], "]")[0]
	r.config += fmt.Sprintf("  - {name: other, kind: command, argv: [%s], account: paid}\npolicy: {caps: {per_account_per_day: 1}}\n", argv)
	r.start()
	for i, want := range []string{"free", "paid"} {
		if s := r.ending(r.solve(fmt.Sprintf("Line %d", i), "Please add a line to a.txt.")); s.State != "done" {
			t.Fatalf("%+v, want it done on account %s", s, want)
		}
	}
	third := r.solve("Line 3", "Please add a line to a.txt.")
	name := fmt.Sprintf("%s#%d", rigRepo, third)
	r.await("the third to wait", func() bool { s := r.thread(name); return s.State == "waiting" && s.Rule == "cap" })
	why := strings.Join(r.thread(name).Reasons, "; ")
	var levels []string
	for _, l := range r.status().Levels {
		levels = append(levels, l.Level+": "+l.String())
	}
	for _, account := range []string{"free", "paid"} {
		if !strings.Contains(why, "1 attempt on account "+account+" in 24 hours; its limit is 1") {
			t.Errorf("it waits because %s", why)
		}
		if want := "account " + account + ": 1 of 1 attempt (0 left), "; !strings.Contains(strings.Join(levels, "\n"), want) {
			t.Errorf("status lists %q, want %q", levels, want)
		}
	}
}

// A workflow that opens an issue for each pull request of Pawl's, and labels it or orders it at once, goes on for
// ever. A person's comment begins a new chain.
func TestAChainOfPawlsOwnWorkEndsUntilAPersonAsks(t *testing.T) {
	t.Parallel()
	for how, asks := range map[string]func(r *rig, issue int) error{
		"by the label":          func(r *rig, n int) error { return r.world.AddLabel(rigRepo, n, writer, "pawl") },
		"in a comment, at once": func(r *rig, n int) error { return r.says(n, writer, "/pawl solve")() },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.agent(plainAgent, "")
			r.start()
			_, pull := r.solved()
			var last int
			for generation := 1; generation <= 3; generation++ {
				issue, err := r.world.OpenIssue(rigRepo, writer, "Follow-up", fmt.Sprintf("Please add a line to a.txt, as in #%d.", pull))
				r.must(err)
				r.must(asks(r, issue))
				last = issue
				s := r.ending(issue)
				if generation == 3 {
					if s.State != "stopped" || s.Rule != "generations" || !strings.Contains(strings.Join(s.Reasons, " "), "it refers to Pawl's own work on "+rigRepo) {
						t.Fatalf("generation 3: %s by %s because %s", s.State, s.Rule, s.Reasons)
					}
					break
				}
				if s.State != "done" {
					t.Fatalf("generation %d: %s by %s because %s", generation, s.State, s.Rule, s.Reasons)
				}
				pull = r.pullOf(issue)
			}
			if got := r.calls(); got != 3 {
				t.Errorf("%d attempts, want 3", got)
			}
			r.must(r.says(last, writer, "/pawl solve")())
			if s := r.ending(last); s.State != "done" {
				t.Errorf("after a person asked: %s by %s because %s", s.State, s.Rule, s.Reasons)
			}
		})
	}
}
