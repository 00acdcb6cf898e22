package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver/thread"
)

// codexAgent begins a script that prints Codex's stream: change PATH says that
// a file was changed, as Codex does, without what it holds now.
const codexAgent = `cat > /dev/null; echo $$ > "$CTRL/pid"
n=0
count() { n=$((n+1)); echo $n > "$CTRL/edits.new"; mv "$CTRL/edits.new" "$CTRL/edits"; }
change() { count
  printf '{"type":"item.started","item":{"id":"i%d","type":"file_change","changes":[{"path":"%s/%s","kind":"update"}],"status":"in_progress"}}\n' $n "$PWD" "$1"
  printf '{"type":"item.completed","item":{"id":"i%d","type":"file_change","changes":[{"path":"%s/%s","kind":"update"}],"status":"completed"}}\n' $n "$PWD" "$1"; }
command() { count
  printf '{"type":"item.completed","item":{"id":"i%d","type":"command_execution","command":"%s","aggregated_output":"","exit_code":0,"status":"completed"}}\n' $n "$1"; }
printf '{"type":"thread.started","thread_id":"0199-aaaa-bbbb"}\n{"type":"turn.started"}\n'
`

// codexEnd ends it.
const codexEnd = `
printf '{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"Done."}}\n{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}\n'
`

// edited is how many edits the agent had made when it ended.
func (r *rig) edited() int {
	n, err := strconv.Atoi(strings.TrimSpace(r.left("edits")))
	r.must(err)
	return n
}

// pullToWorkOn opens a pull request of a person and asks for work on it.
func (r *rig) pullToWorkOn() (n int, head string) {
	r.t.Helper()
	_, err := r.world.PushCommit(r.t.Context(), rigRepo, writer, fakegithub.Commit{Branch: "feature", Message: "Start", Files: map[string]string{"f.txt": "start\n"}})
	r.must(err)
	n, err = r.world.OpenPull(r.t.Context(), rigRepo, writer, fakegithub.PullRequest{Title: "Feature", Body: "A feature.", Head: "feature"})
	r.must(err)
	head = r.head(n)
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl solve")
	r.must(err)
	return n, head
}

// Which edits are a loop is tested in policy and solver/attempt; this is that the
// stream and the files of an agent at work get there.
func TestALoopIsCutOffWhileItRunsAndItsWorkIsKept(t *testing.T) {
	t.Parallel()
	for name, round := range map[string]string{
		"A to B to A":       `if [ $((i%2)) = 0 ]; then echo 'value: A' > f.txt; else echo 'value: B' > f.txt; fi; change f.txt`,
		"sed -i":            `[ -s f.txt ] || echo 'value: 9' > f.txt; sed -i "s/.*/value: $((i%2))/" f.txt; command 'sed -i s/value/x/ f.txt'`,
		"through the shell": `echo "value: $((i%2))" > f.txt; command 'echo value > f.txt'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.agent(codexAgent+"echo kept > work.txt\nfor i in $(seq 1 600); do "+round+"; sleep 0.01; done\n"+codexEnd, "stream: codex")
			r.start()
			n, head := r.pullToWorkOn()
			r.await("the verdict", func() bool { return r.check(head, "pawl/severity").Conclusion == "failure" })
			if got := r.edited(); got < 40 || got > 200 {
				t.Errorf("the agent made %d edits; want it cut off soon after 40", got)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(r.left("pid")))
			r.must(err)
			if err := syscall.Kill(pid, 0); err == nil {
				t.Error("the agent still runs")
			}
			c := r.check(head, "pawl/severity")
			kept := fmt.Sprintf("pawl/kept-%d-1", n)
			if !strings.Contains(c.Title+c.Summary, "severe") || !strings.Contains(c.Summary+c.Text, "in circles") {
				t.Errorf("check run %s\n%s\n%s\nwant a severe loop in circles", c.Title, c.Summary, c.Text)
			}
			a := r.state(n).Attempts[0].Receipt
			if a.Outcome != "loop" || a.Ending != "killed" || a.Pushed || !strings.Contains(strings.Join(a.Reasons, "; "), kept) {
				t.Errorf("outcome %s, ending %s, pushed %v, reasons %q; want a killed loop that names %s", a.Outcome, a.Ending, a.Pushed, a.Reasons, kept)
			}
			if text, err := r.world.File(t.Context(), rigRepo, kept, "work.txt"); err != nil || text != "kept\n" {
				t.Errorf("work.txt on %s: %q, %v", kept, text, err)
			}
			if got := r.world.Branches(rigRepo)["feature"]; got != head || len(r.world.Pulls(rigRepo)) != 1 {
				t.Errorf("the pull request's branch went from %s to %s, %d pull requests; want both untouched", head, got, len(r.world.Pulls(rigRepo)))
			}
			if cools := r.status().Cooldowns; len(cools) != 1 || cools[0].Class != "severe" {
				t.Errorf("cooldowns %+v, want one for a severe loop", cools)
			}
		})
	}
}

// A verified success is never cooled down, however much of it went in circles.
func TestALoopWhoseWorkIsVerifiedIsNone(t *testing.T) {
	t.Parallel()
	const passes, fails = "test -f work.txt", "test -f nothing.txt"
	for _, c := range []struct {
		verify           string
		rounds           int // of an edit of each of five files
		class, concluded string
	}{{passes, 9, "", "success"}, {fails, 9, "mild", "neutral"}, {passes, 13, "", "success"}, {fails, 13, "moderate", "failure"}} {
		t.Run(fmt.Sprint(c.verify, " ", c.rounds), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{".github/pawl.yml": "verify: [\"" + c.verify + "\"]\nchecks: {severity: always}\n"})
			r.agent(codexAgent+fmt.Sprintf(`for i in $(seq 1 %d); do for f in 1 2 3 4 5; do echo "value: $((i%%2))" > f$f.txt; change f$f.txt; sleep 0.02; done; done
echo done > work.txt
`, c.rounds)+codexEnd, "stream: codex")
			r.start()
			n, _ := r.pullToWorkOn()
			r.await("the end of the first attempt", func() bool { a := r.state(n).Attempts; return len(a) > 0 && a[0].Receipt.Outcome != "" })
			a, cools := r.state(n).Attempts[0].Receipt, r.status().Cooldowns
			if loop := c.class != ""; (a.Outcome == "loop") != loop || (len(cools) == 1) != loop || loop && string(cools[0].Class) != c.class {
				t.Errorf("outcome %s, cooldowns %+v after %+v; want the loop %q", a.Outcome, cools, a.Edits, c.class)
			}
			r.await("the verdict", func() bool { return r.check(r.head(n), "pawl/severity").Conclusion == c.concluded })
		})
	}
}

// Nothing verifies the work here, so that it is the edits alone that are judged.
func TestADebugPrintPutInAndOutFiveTimesCostsNothing(t *testing.T) {
	t.Parallel()
	const prints = `for i in 1 2 3 4 5; do printf 'start\ndump(%d)\n' $i > f.txt; change f.txt; sleep 0.02; echo start > f.txt; change f.txt; sleep 0.02; done
`
	for name, work := range map[string]string{
		"and the mend":        "echo mended >> f.txt; change f.txt\n",
		"within 45 edits":     "for i in $(seq 1 35); do echo \"line $i\" >> f.txt; change f.txt; sleep 0.02; done\n",
		"and nothing besides": "echo done > work.txt\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{".github/pawl.yml": "checks: {severity: always}\n"})
			r.agent(codexAgent+prints+work+codexEnd, "stream: codex")
			r.start()
			n, head := r.pullToWorkOn()
			if s := r.over(threadName(n)); s.State != "done" || r.head(n) == head {
				t.Errorf("state %s (%s %q), want done with a push", s.State, s.Rule, s.Reasons)
			}
			a := r.state(n).Attempts[0].Receipt
			if a.Outcome != "edited" || a.Edits.Operations < 10 || len(r.status().Cooldowns) != 0 {
				t.Errorf("outcome %s of %+v, cooldowns %+v; want work without a cooldown", a.Outcome, a.Edits, r.status().Cooldowns)
			}
			r.await("the verdict", func() bool { return r.check(r.head(n), "pawl/severity").Conclusion == "success" })
		})
	}
}

func TestSteadyWorkOnOneFileIsNoLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(codexAgent+"for i in $(seq 1 60); do echo line $i >> f.txt; change f.txt; sleep 0.02; done\n"+codexEnd, "stream: codex")
	r.start()
	n, head := r.pullToWorkOn()
	if s := r.over(threadName(n)); s.State != "done" || r.head(n) == head {
		t.Errorf("state %s (%s %v), want done with a push", s.State, s.Rule, s.Reasons)
	}
	r.await("the verdict", func() bool { return r.check(r.head(n), "pawl/severity").Conclusion == "success" })
}

// A formatter leaves a file as it was but for white space, which is no edit that leads back.
func TestAFormatterAfterEachEditIsNoLoop(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(codexAgent+`for i in $(seq 1 45); do
  printf '\tline %d\n' $i >> f.txt; change f.txt; sleep 0.02; sed 's/\t/  /' f.txt > neat; cat neat > f.txt; command 'tidy -w f.txt'; sleep 0.02
done; rm neat
`+codexEnd, "stream: codex")
	r.start()
	n, head := r.pullToWorkOn()
	if s := r.over(threadName(n)); s.State != "done" || r.head(n) == head {
		t.Errorf("state %s (%s %q), want done with a push", s.State, s.Rule, s.Reasons)
	}
	if a := r.state(n).Attempts[0].Receipt; a.Outcome != "edited" || a.Edits.Operations < 40 || len(r.status().Cooldowns) != 0 {
		t.Errorf("outcome %s of %+v, want no loop", a.Outcome, a.Edits)
	}
}

func TestCountsDecideWhereNothingElseIsKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edits, repeats    int
		conclusion, class string
	}{
		"mild":            {41, 8, "neutral", "mild"},
		"severe by edits": {105, 10, "failure", "severe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.agent(codexAgent+fmt.Sprintf("echo done >> f.txt\nfor i in $(seq 1 %d); do change hot.go; done\nfor i in $(seq 1 %d); do change other$i.go; done\n",
				c.repeats, c.edits-c.repeats)+codexEnd, "stream: codex")
			r.start()
			n, head := r.pullToWorkOn()
			r.await("the push", func() bool { return r.head(n) != head })
			r.await("the verdict", func() bool { return r.check(r.head(n), "pawl/severity").Conclusion == c.conclusion })
			if got := r.check(r.head(n), "pawl/severity"); !strings.Contains(got.Title+got.Summary, c.class) {
				t.Errorf("check run %s\n%s\nwant %s", got.Title, got.Summary, c.class)
			}
		})
	}
}

func TestALookAtTheFilesFollowsNoLinkAndWaitsForNoPipe(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	secret := r.dir + "/secret"
	r.must(os.WriteFile(secret, []byte("secret\n"), 0o600))
	r.agent(codexAgent+"ln -s '"+secret+"' link.txt; mkfifo pipe\nfor i in $(seq 1 20); do change link.txt; change pipe; change ../../../secret; done; rm pipe link.txt; echo done > f.txt\n"+codexEnd, "stream: codex")
	r.start()
	n, _ := r.pullToWorkOn()
	s := r.over(threadName(n))
	if e := r.state(n).Attempts[0].Receipt.Edits; s.State == "" || e.Seen != 0 || e.Operations != 60 {
		t.Errorf("state %s, edits %+v; want 60 edits of which nothing is known", s.State, e)
	}
}

func TestALoopOnAnIssueShowsItsVerdictOnTheKeptWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(codexAgent+"echo kept > work.txt\nfor i in $(seq 1 600); do echo \"value: $((i%2))\" > f.txt; change f.txt; sleep 0.01; done\n"+codexEnd, "stream: codex")
	r.start()
	n := r.solve("A value", "Please set the value.")
	kept := fmt.Sprintf("pawl/kept-%d-1", n)
	r.await("the verdict", func() bool { return r.check(r.world.Branches(rigRepo)[kept], "pawl/severity").Conclusion == "failure" })
	if len(r.world.Pulls(rigRepo)) != 0 {
		t.Errorf("%d pull requests, want none for the work of a loop", len(r.world.Pulls(rigRepo)))
	}
	r.await("the status comment", func() bool {
		comments := r.world.Comments(rigRepo, n)
		return strings.Contains(comments[len(comments)-1].Body, kept)
	})
}

// The third severe loop within a week of one arm on one repository: nothing but a person's order lets it work there again.
func TestTheThirdSevereLoopOfAWeekNeedsAPerson(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(codexAgent+`for i in $(seq 1 600); do if [ $((i%2)) = 0 ]; then echo 'value: A' > f.txt; else echo 'value: B' > f.txt; fi; change f.txt; sleep 0.01; done
`+codexEnd, "stream: codex")
	r.start()
	say := func(n int, text string) {
		_, err := r.world.Comment(rigRepo, n, writer, text)
		r.must(err)
	}
	loops := func(n, attempts int) {
		r.await(fmt.Sprintf("loop %d of #%d", attempts, n), func() bool {
			a := r.state(n).Attempts
			return len(a) == attempts && a[attempts-1].Receipt.Outcome == "loop"
		})
	}
	var last int
	for i := range 3 {
		last = r.solve(fmt.Sprintf("Task %d", i), fmt.Sprintf("Please write the value of task %d.", i))
		if i > 0 { // it rests after the loop before
			r.await("the wait", func() bool { return r.thread(threadName(last)).Rule == "cooldown" })
			say(last, "/pawl resume")
		}
		loops(last, 1)
	}
	r.await("the stop", func() bool { s := r.thread(threadName(last)); return s.Rule == "runaway" && s.State == "stopped" })
	cools := r.status().Cooldowns
	if len(cools) != 1 || cools[0].Class != "runaway" || len(cools[0].Severe) != 3 {
		t.Errorf("cooldowns %+v, want one that needs a person", cools)
	}
	r.await("the check run of the kept work", func() bool {
		return strings.Contains(r.check(r.world.Branches(rigRepo)[fmt.Sprintf("pawl/kept-%d-1", last)], "pawl/severity").Summary,
			"**Next:** this was the third severe edit loop of this backend here within a week, so it rests here until a person orders an attempt")
	})
	_, out, _ := pawl(t, r.dir, nil, "status", "--config", filepath.Join(r.dir, "pawl.yml"))
	if want := "mine on acme/widgets: 3 severe edit loops in a week; it rests until a person comments /pawl resume"; !strings.Contains(out, want) {
		t.Errorf("pawl status does not say %q:\n%s", want, out)
	}
	if _, page := r.get("/accounts"); !strings.Contains(page, "it rests until a person comments /pawl resume") {
		t.Errorf("the page of accounts does not say that a person is needed:\n%s", page)
	}
	decided := func() (n int) {
		for _, e := range r.events(last) {
			if e.Kind == thread.KindDecision {
				n++
			}
		}
		return n
	}
	before := decided()
	say(last, "/pawl solve it in another way")
	r.await("the wish to be decided", func() bool { return decided() > before })
	if n := len(r.state(last).Attempts); n != 1 || r.thread(threadName(last)).Rule != "runaway" {
		t.Fatalf("%d attempts after a wish that is no order, want the one", n)
	}
	say(last, "/pawl resume")
	loops(last, 2)
	r.settle()
	if cools := r.status().Cooldowns; len(cools) != 1 || cools[0].Class != "severe" || len(cools[0].Severe) != 1 {
		t.Errorf("cooldowns %+v, want the one loop since the order", cools)
	}
	if d := r.state(last).Attempts[1].Decision; !d.Lifts || !strings.Contains(d.Reasons.String(), "a person's order ends the rest") {
		t.Errorf("decision %+v, want one that says that the order ended the rest", d)
	}
}
