package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// asker is an agent that asks its model three times, stops while $CTRL/hold is
// there, and then asks until it is refused.
const asker = `cat > /dev/null
n=0
ask() {
	n=$((n+1))
	code=$(curl -sS -o /dev/null -w '%{http_code}' "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" \
		-H 'Content-Type: application/json' -d '{"model":"mock-model","max_tokens":1000,"messages":[{"role":"user","content":"What is '$n' times 7?"}]}')
	echo "$PAWL_ATTEMPT $code" >> "$CTRL/codes"
	[ "$code" = 200 ]
}
ask; ask; ask
touch "$CTRL/ready"
while [ -f "$CTRL/hold" ]; do sleep 0.05; done
i=0
while [ $i -lt 100 ] && ask; do i=$((i+1)); done
echo refused >&2
exit 1
`

// aCall is what one answer of the fake provider uses, in tokens.
const aCall = 1234

// spending is a cluster whose agent reaches a provider through the gateway, with a
// budget of a day.
type spending struct {
	*cluster
	provider *fakeprovider.Server
	thread   thread.ID
	budget   int64
}

func newSpending(t *testing.T, budget int64) *spending {
	t.Helper()
	s := &spending{cluster: newCluster(t, startPostgres(t)), budget: budget}
	var err error
	s.provider, err = fakeprovider.Start(fakeprovider.Options{Key: testrig.ProviderKey})
	s.Must(err)
	t.Cleanup(func() { s.provider.Close() })
	s.Agent(asker, "provider: fake, model: mock-model")
	s.Config += fmt.Sprintf("providers: [{name: fake, protocol: openai, base_url: %q, key: %q}]\n", s.provider.URL("no-edit")+"/v1", testrig.ProviderKey)
	s.Config += fmt.Sprintf("policy: {budget: {tokens_per_thread_per_day: %d}}\n", budget)
	return s
}

// used is what the provider counted. A server that starts asks for the models, which costs nothing.
func (s *spending) used() (n int64) {
	for _, q := range s.provider.Requests() {
		if q.Method == http.MethodPost {
			n += aCall
		}
	}
	return n
}

// noted is what the nodes know of the attempt at work.
func (s *spending) noted() (tokens int64) {
	s.T.Helper()
	s.Read(func(db *store.Store) {
		note, err := db.Noted(s.T.Context(), s.thread)
		s.Must(err)
		var w struct{ Tokens policy.Tokens }
		if note != nil {
			s.Must(json.Unmarshal(note, &w))
		}
		tokens = w.Tokens.Input + w.Tokens.Output
	})
	return tokens
}

// killWorker kills the node that runs the thread's attempt.
func (s *spending) killWorker() {
	s.T.Helper()
	for _, m := range s.nodes {
		if m.Began(s.thread.String()) {
			s.leave(m, syscall.SIGKILL)
			s.to(s.nodes[0])
			return
		}
	}
	s.T.Fatal("no node says that it started the attempt")
}

// What an attempt used is known to the node that takes it over, in the receipt and
// in the budget of the day.
func TestABudgetOfADayHoldsOverTheKillOfANode(t *testing.T) {
	t.Parallel()
	s := newSpending(t, 6000)
	s.Touch("hold")
	s.join()
	s.join()
	s.thread = s.issue(testrig.Repo, "A question")
	s.Await("three answers, noted", func() bool { return s.Has("ready") && s.noted() == 3*aCall })
	s.killWorker()
	s.Must(os.Remove(filepath.Join(s.Ctrl(), "hold")))
	now := func() thread.State { return s.states([]thread.ID{s.thread})[0] }
	paused := func() bool {
		d := now().Decision
		return d != nil && d.Action == policy.DoWait && d.Rule == policy.RuleBudget
	}
	s.Await("the pause", paused)
	// Nobody can ask past it.
	_, err := s.World.Comment(testrig.Repo, s.thread.Number, testrig.Writer, "/pawl retry")
	s.Must(err)
	s.Await("the order", func() bool { return len(now().Feedback) == 2 })
	state := now()
	if !paused() || len(state.Attempts) != 2 || !state.Attempts[1].Receipt.Paused {
		t.Errorf("%s by %s after %d attempts, want a pause after two", state.Decision.Action, state.Decision.Rule, len(state.Attempts))
	}
	var told int64
	for i, want := range []policy.Outcome{policy.Interrupted, policy.Outcome(policy.TurnLimit)} {
		r := state.Attempts[i].Receipt
		told += r.Tokens.Input + r.Tokens.Output
		if r.Outcome != want {
			t.Errorf("attempt %d ended %s, want %s", i+1, r.Outcome, want)
		}
	}
	used := s.used()
	if told != used || used < s.budget || used >= s.budget+aCall {
		t.Errorf("the receipts tell of %d tokens, the provider of %d; want the same, and less than a call beyond the budget of %d\n%s",
			told, used, s.budget, s.Left("codes"))
	}
	// But a person may allow as much once more.
	_, err = s.World.Comment(testrig.Repo, s.thread.Number, testrig.Writer, "/pawl raise")
	s.Must(err)
	s.Await("the next pause", func() bool { a := now().Attempts; return len(a) == 3 && !a[2].EndedAt.IsZero() && paused() })
	if last := now(); last.Attempts[2].At.Before(last.Feedback[2].At) {
		t.Error("an attempt began before a person allowed it")
	}
	if more := s.used() - used; more < s.budget || more >= s.budget+aCall {
		t.Errorf("the provider counted %d more tokens, want less than a call beyond the budget of %d", more, s.budget)
	}
}

// What threads use together ends the attempts of all of them, and is a pause: nobody
// has to ask again, and nobody can ask past it.
func TestABudgetAboveTheThreadsEndsTheirAttempts(t *testing.T) {
	t.Parallel()
	const budget = 8 * aCall
	s := newSpending(t, 0)
	s.Config = strings.Replace(s.Config, "tokens_per_thread_per_day: 0", fmt.Sprintf("tokens_per_repository_per_day: %d", budget), 1)
	s.Touch("hold")
	s.join()
	s.join()
	threads := []thread.ID{s.issue(testrig.Repo, "A question"), s.issue(testrig.Repo, "Another question")}
	s.Await("six answers", func() bool { return s.used() == 6*aCall })
	s.Must(os.Remove(filepath.Join(s.Ctrl(), "hold")))
	s.Await("both threads to wait", func() bool {
		waiting := 0
		for _, state := range s.states(threads) {
			if d := state.Decision; d != nil && d.Action == policy.DoWait && d.Rule == policy.RuleBudget && state.Open() {
				waiting++
			}
		}
		return waiting == 2
	})
	// Each attempt may have had one call under way that was not counted yet.
	if used := s.used(); used < budget || used > budget+2*aCall {
		t.Errorf("the provider counted %d tokens, the budget is %d", used, budget)
	}
	for _, state := range s.states(threads) {
		if r := state.Attempts[0].Receipt; len(state.Attempts) != 1 || r.Ending != policy.TurnLimit || r.Limit != nil || !strings.Contains(r.Detail, "tokens on this repository in 24 hours; its budget is") {
			t.Errorf("%d attempts, the first %s (%s), limit %+v", len(state.Attempts), r.Ending, r.Detail, r.Limit)
		}
	}
}

// A node that is killed while its agent calls the model loses the call in flight,
// and at most the one before, whose answer the agent had a moment before it was
// counted.
func TestAKillLosesTheLastCallsAtMost(t *testing.T) {
	t.Parallel()
	s := newSpending(t, 300*aCall)
	s.join()
	s.join()
	s.thread = s.issue(testrig.Repo, "A question")
	s.Await("the agent at its calls", func() bool { return s.Has("ready") && strings.Count(s.Left("codes"), "200") > 20 })
	s.Touch("hold")
	s.killWorker()
	before := s.used()
	s.Await("the receipt of the interrupted attempt", func() bool {
		state := s.states([]thread.ID{s.thread})[0]
		return len(state.Attempts) > 0 && !state.Attempts[0].EndedAt.IsZero()
	})
	r := s.states([]thread.ID{s.thread})[0].Attempts[0].Receipt
	if told := r.Tokens.Input + r.Tokens.Output; told > before || told < before-2*aCall {
		t.Errorf("the receipt tells of %d tokens, the provider of %d; want all but the last calls", told, before)
	}
}

// What an agent did before the thread's day was used up stands on the branch, and the
// attempt that goes on has its session.
func TestAnAttemptGoesOnWithTheWorkAndTheSessionThatABudgetEnded(t *testing.T) {
	t.Parallel()
	const session = "ses_0199aaaa00007000"
	r := newRig(t, nil)
	r.Agent(`[ "$1" = --version ] && exit 0
n=$(ls "$CTRL" | grep -c ^args)
cat > "$CTRL/prompt-$n"; echo "$@" > "$CTRL/args-$n"; cp a.txt "$CTRL/found-$n"
say() { echo '{"type":"'"$1"'","sessionID":"`+session+`","part":{'"$2"'}}'; }
say step_start ''
if [ "$n" = 0 ]; then
	echo "part 1" >> a.txt
	say step_finish '"reason":"tool-calls","tokens":{"input":6000,"output":100,"cache":{}}'
	exec sleep 600
fi
echo two >> a.txt
say text '"text":"The line is there."'
say step_finish '"reason":"stop","tokens":{"input":60,"output":10,"cache":{}}'
`, "model: any/model")
	r.Config = strings.Replace(r.Config, "kind: command", "kind: opencode", 1) + "policy: {budget: {tokens_per_thread_per_day: 5000}}\n"
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the pause", func() bool { s := r.Thread(testrig.ThreadName(n)); return s.State == "waiting" && s.Rule == "budget" })
	branch := func() string {
		text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt")
		r.Must(err)
		return text
	}
	if got := branch(); got != "one\npart 1\n" {
		t.Errorf("a.txt on the branch is %q, want what the agent wrote", got)
	}
	r.Must(r.Says(n, testrig.Writer, "/pawl raise")())
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	a := r.State(n).Attempts
	if len(a) != 2 || !a[0].Receipt.Paused || a[0].Receipt.Ending != policy.TurnLimit || a[1].Receipt.Ending != policy.Completed {
		t.Fatalf("attempts %+v, want one that the budget ended and one that completed", a)
	}
	if args := r.Left("args-1"); !strings.Contains(args, "--session="+session) {
		t.Errorf("the second call was %q (%s), want the session continued", args, a[1].Continues)
	}
	if found, end := r.Left("found-1"), branch(); found != "one\npart 1\n" || end != found+"two\n" {
		t.Errorf("the second call found %q and left %q, want the work of both", found, end)
	}
}
