package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

const wordySession = "ses_0199aaaa00007000"

// wordy makes an agent of kind opencode the only backend. Each call adds a line and reports a step of 6,100 tokens.
// Then the last call ends, and earlier calls run until they are killed.
func (r *rig) wordy(budget string, calls int) {
	r.T.Helper()
	r.Agent(fmt.Sprintf(`[ "$1" = --version ] && exit 0
n=$(ls "$CTRL" | grep -c ^args)
cat > /dev/null; echo "$@" > "$CTRL/args-$n"; cp a.txt "$CTRL/found-$n"
say() { echo '{"type":"'"$1"'","sessionID":"%s","part":{'"$2"'}}'; }
say step_start ''
echo "part $n" >> a.txt
if [ "$n" != %d ]; then
	say step_finish '"reason":"tool-calls","tokens":{"input":6000,"output":100,"cache":{}}'
	exec sleep 600
fi
say text '"text":"The line is there."'
say step_finish '"reason":"stop","tokens":{"input":60,"output":10,"cache":{}}'
`, wordySession, calls-1), "model: any/model")
	r.Config = strings.Replace(r.Config, "kind: command", "kind: opencode", 1) + "policy: {budget: {" + budget + "}}\n"
}

func (r *rig) outOfBudget(n int) bool {
	s := r.Thread(testrig.ThreadName(n))
	return s.State == "waiting" && s.Rule == policy.RuleBudget
}

// The branch keeps what an agent did within the thread's daily budget, and the next attempt continues its session.
func TestAttemptContinuesAfterBudgetEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.wordy("tokens_per_thread_per_day: 5000", 2)
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the pause", func() bool { return r.outOfBudget(n) })
	branch := func() string {
		text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt")
		r.Must(err)
		return text
	}
	if got := branch(); got != "one\npart 0\n" {
		t.Errorf("a.txt on the branch is %q, want what the agent wrote", got)
	}
	r.Writes(n, testrig.Writer, "/pawl raise")
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	a := r.State(n).Attempts
	if len(a) != 2 || !a[0].Receipt.Paused || a[0].Receipt.Tokens.Input != 6000 || a[1].Receipt.Ending != policy.Completed {
		t.Fatalf("attempts %+v, want one that the budget ended and one that completed", a)
	}
	if args := r.Left("args-1"); !strings.Contains(args, "--session="+wordySession) {
		t.Errorf("the second call was %q (%s), want the session continued", args, a[1].Continues)
	}
	if found, end := r.Left("found-1"), branch(); found != "one\npart 0\n" || end != found+"part 1\n" {
		t.Errorf("the second call found %q and left %q, want the work of both", found, end)
	}
}

// A budget shared by threads ends their attempts and makes them wait.
func TestSharedBudgetEndsAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.wordy("tokens_per_repository_per_day: 12000", -1)
	r.Start()
	threads := []int{r.Solve("A line", "Please add a line."), r.Solve("Another line", "Please add another line.")}
	r.Await("both threads to wait", func() bool { return r.outOfBudget(threads[0]) && r.outOfBudget(threads[1]) })
	for _, n := range threads {
		a := r.State(n).Attempts
		last := a[len(a)-1].Receipt
		const why = "12,200 tokens on this repository in 24 hours; its budget is"
		if len(a) != 1 || last.Ending != policy.TurnLimit || last.Limit != nil || !strings.Contains(last.Detail, why) {
			t.Errorf("%d attempts, the last %s (%s), limit %+v; want one that was ended by %q", len(a), last.Ending, last.Detail, last.Limit, why)
		}
	}
}
