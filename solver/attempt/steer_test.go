package attempt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// steered runs an attempt and returns its receipt. The agent creates the file ready in $CTRL. After the given time it
// gets a text from each user at once.
func (s *stage) steered(after time.Duration, logins ...string) policy.Receipt {
	s.t.Helper()
	s.log(thread.NewEvent{Kind: thread.KindAttemptStarted, Data: thread.Started{N: 1, Run: 1, Decision: policy.Decision{Purpose: policy.ToChange}}})
	steering := make(chan struct{})
	go func() {
		defer close(steering)
		for deadline := time.Now().Add(time.Minute); s.left("ready") == "" && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(after)
		var texts []thread.NewEvent
		for _, login := range logins {
			texts = append(texts, steerBy(login))
		}
		s.log(texts...)
	}()
	r := s.attempt(1)
	<-steering
	return r
}

func steerBy(login string) thread.NewEvent {
	f := thread.Feedback{Source: policy.FromComment, Command: "steer", Text: "left", By: feedback.Actor{Login: login, Type: "User"}}
	return thread.NewEvent{Kind: thread.KindFeedback, Data: f}
}

// log appends events to the log of issue 1.
func (s *stage) log(events ...thread.NewEvent) {
	for _, e := range events {
		e.At = time.Now()
		_, err := s.env.Store.Append(context.Background(), thread.ID{Owner: "acme", Name: "widgets", Number: 1}, false, e)
		if err != nil {
			s.t.Error(err)
		}
	}
}

// In each call the agent does work, then waits to be interrupted. The second call ends the attempt only because the
// first one counts.
func TestLimitsContinueAcrossAnInterruption(t *testing.T) {
	t.Parallel()
	const (
		call = `call() { printf '{"type":"item.started","item":{"id":"%s","type":"command_execution","command":"make"}}\n' $1
printf '{"type":"item.completed","item":{"id":"%s","type":"command_execution","command":"make","aggregated_output":"no","exit_code":2,"status":"failed"}}\n' $1; }
`
		begun = `printf '{"type":"thread.started","thread_id":"019a"}\n{"type":"turn.started"}\n'` + "\n"
		ready = "echo x >> $CTRL/ready\n"
		ask   = `ask() { curl -sS -o /dev/null "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" \
	-H 'Content-Type: application/json' -d '{"model":"mock-model","messages":[{"role":"user","content":"'"$1"'"}]}'; }
`
	)
	for name, c := range map[string]struct {
		agent, more string
		after       time.Duration
		ending      policy.Ending
		why         string
		most        time.Duration
		requests    int
	}{
		"the time limit": {
			agent: ready + "exec sleep 60\n", more: ", timeout: 4s, startup_timeout: 4s", after: 3 * time.Second,
			ending: policy.TimedOut, why: "killed after 4s, the limit for a run", most: 6500 * time.Millisecond,
		},
		"the loop window": {
			agent: call + begun + ready + fmt.Sprintf("for n in $(seq 1 %d); do call $n; done\n", policy.MaxCalls-8) +
				"while [ ! -e $CTRL/told ]; do sleep 0.1; done\nsleep 1; call last; exec sleep 60\n", more: ", stream: codex",
			ending: policy.SelfLoop, why: "make", most: time.Minute,
		},
		"the token budget": {
			agent: ask + "ask \"What is $$ times 7?\"\n" + ready + "[ $(wc -l < $CTRL/ready) = 1 ] && exec sleep 60\nfor n in 1 2 3 4; do ask \"What is $n times 8?\"; done\n",
			more:  ", provider: fake, model: mock-model\npolicy: {budget: {tokens_per_attempt: 2000}}\n", ending: policy.Completed, why: "tokens of its budget of 2000", most: time.Minute, requests: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, map[string]string{"a.txt": "one\n"})
			provider := s.provider("openai", "no-edit")
			s.agent(c.agent, c.more)
			go func() { // the loop's agent continues once the text arrived
				for s.left("ready") == "" {
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(c.after + time.Second)
				_ = os.WriteFile(filepath.Join(s.ctrl, "told"), nil, 0o600)
			}()
			r := s.steered(c.after, "ada")
			why := strings.Join(r.Reasons, "; ") + r.Detail + r.Budget
			if r.Ending != c.ending || !strings.Contains(why, c.why) || len(r.Steered) != 0 {
				t.Errorf("ended %s, %q; want %s, %q", r.Ending, why, c.ending, c.why)
			}
			if calls := strings.Count(s.left("ready"), "x"); calls != 2 {
				t.Errorf("the agent ran %d times, want 2", calls)
			}
			if took := time.Duration(r.AgentMS) * time.Millisecond; took > c.most {
				t.Errorf("the agent ran for %s, want at most %s", took, c.most)
			}
			if got := len(provider.Requests()); got != c.requests {
				t.Errorf("the provider was asked %d times, want %d", got, c.requests)
			}
		})
	}
}

// Whatever an interrupted agent does, it ends, and a second run gets the text.
func TestUnusualAgentsAreSteered(t *testing.T) {
	t.Parallel()
	const codex = `printf '{"type":"thread.started","thread_id":"019a"}\n{"type":"turn.started"}\n'` + "\n"
	const again = "[ $(wc -l < $CTRL/ready) = 2 ] && { echo two >> a.txt; "
	const done = `echo '{"type":"item.completed","item":{"id":"2","type":"agent_message","text":"done"}}'; echo '{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":5}}'; `
	for name, c := range map[string]struct{ agent, more string }{
		"ignores signals":       {agent: again + "exit 0; }\ntrap '' TERM INT HUP\nwhile true; do sleep 1; done\n"},
		"has children":          {agent: again + "exit 0; }\n(trap '' TERM; sleep 60) & setsid sleep 60 &\nsleep 60 & wait\n"},
		"prints a line of 32 M": {agent: codex + again + done + "exit 0; }\n" + `head -c 33554432 /dev/zero | tr '\0' x; echo` + "\n" + interruptible, more: ", stream: codex"},
		"prints half a line":    {agent: again + "exit 0; }\nprintf half; sleep 60\n"},
		"left a broken tree":    {agent: again + "rm -rf dir; exit 0; }\nmkdir dir; mkfifo dir/pipe; chmod 0 dir; sleep 60\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, map[string]string{"a.txt": "one\n"})
			s.agent("echo x >> $CTRL/ready\n"+c.agent, c.more)
			r := s.steered(0, "ada")
			if r.Ending != policy.Completed || s.left("ready") != "x\nx\n" || s.on(1, "a.txt") != "one\ntwo\n" {
				t.Errorf("ended %s, %q, after calls %q; want the second call's work", r.Ending, r.Reasons, s.left("ready"))
			}
			out, err := os.ReadFile(r.Transcript)
			if err != nil || !strings.Contains(string(out), "\n[pawl: steered by ada (1 time)]\n") {
				t.Errorf("%v: the note is missing in %d bytes", err, len(out))
			}
		})
	}
}

// interruptible makes one call after another.
const interruptible = `while true; do printf '{"type":"item.started","item":{"id":"1","type":"command_execution","command":"make"}}\n'
printf '{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"make","exit_code":0,"status":"completed"}}\n'; sleep 1; done
`

// An agent that ends on its own receives the text in a second run or not at all. The log agrees.
func TestAgentMayEndAsTheTextArrives(t *testing.T) {
	t.Parallel()
	for _, wait := range []string{"0.1", "0.4", "0.5", "0.6", "0.8"} {
		t.Run(wait, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, map[string]string{"a.txt": "one\n"})
			s.agent("echo x >> $CTRL/ready\nsleep "+wait+"; echo two >> a.txt\n", "")
			r := s.steered(0, "ada")
			events, err := s.env.Store.Events(t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: 1}, 0)
			s.must(err)
			taken := 0
			for _, e := range events {
				if e.Kind == thread.KindSteered {
					taken++
				}
			}
			if calls := strings.Count(s.left("ready"), "x"); r.Ending != policy.Completed || calls != taken+1 {
				t.Errorf("ended %s after %d calls, and the log has %d taken texts: %q", r.Ending, calls, taken, r.Reasons)
			}
		})
	}
}

func TestNoteInTheOutputNamesEachUserOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]string{"a.txt": "one\n"})
	s.agent("echo x >> $CTRL/ready\n[ $(wc -l < $CTRL/ready) = 1 ] && exec sleep 60\necho two >> a.txt\n", "")
	r := s.steered(0, "ada", "grace", "ada")
	out, err := os.ReadFile(r.Transcript)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(out); got != "\n[pawl: steered by ada (2 times), grace (1 time)]\n" {
		t.Errorf("the output is %q", got)
	}
	if got := noteOf(nil); got != "\n[pawl: interrupted by a text that was withdrawn]\n" {
		t.Errorf("without a text: %q", got)
	}
}

// overspent is a store whose budget is used up once the attempt takes a text. The log answers only after the budget cut.
type overspent struct {
	thread.Store
	taken atomic.Bool
}

func (o *overspent) AppendLeased(ctx context.Context, l thread.Lease, b thread.Batch) error {
	if len(b.Events) == 1 && b.Events[0].Kind == thread.KindSteered {
		o.taken.Store(true)
		<-ctx.Done()
		return ctx.Err()
	}
	return o.Store.AppendLeased(ctx, l, b)
}

func (o *overspent) Usage(ctx context.Context, repo string, installation int64, since time.Time) (policy.Usage, error) {
	u, err := o.Store.Usage(ctx, repo, installation, since)
	if o.taken.Load() {
		u.Repository.Tokens = 1 << 40
	}
	return u, err
}

func TestBudgetCutDuringAnInterruption(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]string{"a.txt": "one\n"})
	s.env.Store = &overspent{Store: s.env.Store}
	s.agent("echo two >> a.txt\necho x >> $CTRL/ready\nexec sleep 60\n", "\npolicy: {budget: {tokens_per_repository_per_day: 1000}}\n")
	r := s.steered(0, "ada")
	why := strings.Join(r.Reasons, "; ")
	ended := fmt.Sprintf("%s, ended %s, paused %t", r.Outcome, r.Ending, r.Paused)
	if want := fmt.Sprintf("%s, ended %s, paused true", policy.OutOfBudget, policy.TurnLimit); ended != want {
		t.Errorf("%s: %q; want %s", ended, why, want)
	}
	if strings.Contains(why, "could not complete") {
		t.Errorf("the reason is %q; want the budget's end", why)
	}
	if got := s.on(1, "a.txt"); got != "one\ntwo\n" {
		t.Errorf("a.txt is %q, want the interrupted run's work", got)
	}
}

// While a probe's agent runs, the lease is impatient. Between its runs an outage must not end the attempt.
func TestSteeredProbeOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		id := thread.ID{Owner: "acme", Name: "widgets", Number: 1}
		ctx, h := lease.Hold(t.Context(), j, thread.Lease{Thread: id}, time.Now(), time.Now)
		defer h.Release(nil)
		a := &Attempt{Env: &Env{Store: j, Now: time.Now}, Lease: h, Thread: id, Log: zerolog.Nop(), Started: thread.Started{N: 1}, Ground: &Ground{Effective: config.Effective{Triggers: config.Triggers()}}}
		started := thread.NewEvent{Kind: thread.KindAttemptStarted, At: time.Now(), Data: thread.Started{N: 1}}
		if err := j.AppendLeased(ctx, thread.Lease{}, thread.Batch{Events: []thread.NewEvent{started, steerBy("ada")}}); err != nil {
			t.Fatal(err)
		}
		for _, patient := range []bool{false, true} {
			h.Patient(patient)
			a.steering = steering{}
			j.events, j.back = j.events[:2], time.Now().Add(time.Minute)
			texts, err := a.takeSteers(ctx)
			if err != nil || len(texts) != 1 || len(j.events) != 3 {
				t.Errorf("%d texts, %d events, %v; want the text after the outage", len(texts), len(j.events), err)
			}
			if h.Patient(false) != patient {
				t.Errorf("the lease's patience is not %t again", patient)
			}
		}
	})
}
