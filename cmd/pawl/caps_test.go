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
	"github.com/pawlbot/pawl/internal/testrig"
)

// Threads that start at the same time do not exceed the cap together. The other threads wait, report the reason, and
// continue after the operator raised the cap.
func TestDailyCapBoundsManyNewThreads(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	config := r.Config
	r.Config += "policy: {caps: {per_repository_per_day: 3}}\n"
	r.Start()
	for n := range 8 {
		r.Solve(fmt.Sprintf("Follow-up %d", n), "Please add a line to a.txt.")
	}
	in := func(state, rule string) (all []status.Thread) {
		for _, s := range r.Status().Threads {
			if s.State == state && string(s.Rule) == rule {
				all = append(all, s)
			}
		}
		return all
	}
	r.Await("five threads to wait", func() bool { return len(in("waiting", "cap")) == 5 && len(in("done", "done")) == 3 })
	one := in("waiting", "cap")[0]
	if why := strings.Join(one.Reasons, "; "); !strings.Contains(why, "3 attempts on this repository in 24 hours; its limit is 3; the oldest of its attempts leaves that window at ") {
		t.Errorf("the wait's reason is %q, want the cap and its end", why)
	}
	var n int
	fmt.Sscanf(one.Thread, testrig.Repo+"#%d", &n)
	r.Must(r.Commenting(n, testrig.Writer, "/pawl resume")())
	r.Settle()
	if got := r.Calls(); got != 3 {
		t.Errorf("%d attempts after /pawl resume, want 3", got)
	}
	// One comment and one check run tell users about the cap, and the log tells the operator.
	fmt.Sscanf(in("done", "done")[0].Thread, testrig.Repo+"#%d", &n)
	pull := r.PullOf(n)
	r.Must(r.Commenting(pull, testrig.Writer, "Please add another word to a.txt.")())
	r.Await("the check run", func() bool { return r.Check(r.Head(pull), "pawl").Title == "Waiting: the day's attempts are used up" })
	r.Settle()
	all := slices.DeleteFunc(r.World.Comments(testrig.Repo, n), func(c fakegithub.Comment) bool { return c.Author != "pawl[bot]" })
	if len(all) != 1 || !strings.Contains(all[0].Body, "its limit is 3") || !strings.Contains(all[0].Body, "Pawl continues as soon as it can") {
		t.Errorf("Pawl's comments on #%d are %+v, want one about the cap", n, all)
	}
	if log := r.Log.String(); !strings.Contains(log, `"rule":"cap"`) {
		t.Errorf("the log does not mention the cap\n%s", log)
	}
	if day := r.Status().Day; day.Attempts != 3 || day.MaxAttempts != 500 {
		t.Errorf("pawl status shows the day %+v, want 3 of 500 attempts", day)
	}
	var levels []string
	for _, l := range r.Status().Levels {
		levels = append(levels, l.Level+": "+l.String())
	}
	owner, _, _ := strings.Cut(testrig.Repo, "/")
	for i, want := range []string{"this server: 3 of 500 attempts (497 left)", "account mine: 3 of 500 attempts (497 left)", "installation 3000000005 of " + owner + ": 3 of 300 attempts (297 left)", testrig.Repo + ": 3 of 3 attempts (0 left)"} {
		if len(levels) != 4 || !strings.HasPrefix(levels[i], want) {
			t.Errorf("status lists %q, want %q", levels, want)
		}
		if _, out, _ := pawl(t, r.Dir, nil, "status", "--config", r.File()); !strings.Contains(out, "in the last 24 hours on "+want+", 0.00 of ") {
			t.Errorf("pawl status does not contain %q:\n%s", want, out)
		}
		name, used, _ := strings.Cut(want, ": ")
		if _, page := r.Get("/accounts"); !regexp.MustCompile(`<b>` + name + `</b>: <span class="\w*">` + regexp.QuoteMeta(used)).MatchString(page) {
			t.Errorf("the page does not contain %q:\n%s", want, page)
		}
	}
	if got := [2]float64{r.Metric(`pawl_day_used{what="attempts"}`), r.Metric(`pawl_day_bound{what="attempts"}`)}; got != [2]float64{3, 500} {
		t.Errorf("the metrics count %v attempts of the day and its limit, want 3 and 500", got)
	}

	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	r.Config = config
	// Wake the threads now, as if their timers had expired.
	_, err := r.Database().ExecContext(t.Context(), "UPDATE threads SET wake_at = 1 WHERE wake_at > 0")
	r.Must(err)
	r.Start()
	r.Await("all threads to be done", func() bool { return len(in("done", "done")) == 8 })
}
