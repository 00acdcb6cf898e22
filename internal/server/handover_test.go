package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func (r *rig) wantOnBranch(n int, file, want string) {
	r.T.Helper()
	text, err := r.World.File(r.T.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), file)
	if err != nil || text != want {
		r.T.Errorf("%s on the branch is %q, %v; want %q", file, text, err, want)
	}
}

func TestStopHandsOverFilesAndSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stops  int
		data   string // data directory of the next server
		pushed bool   // a user pushes to the branch in between
	}{
		"to the next server":                      {stops: 1, data: "data"},
		"in three deploys":                        {stops: 3, data: "data"},
		"to another machine":                      {stops: 1, data: "other"},
		"to a branch that a user pushed to since": {stops: 1, data: "data", pushed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.CutOff(c.stops)
			r.Config += "policy: {caps: {per_repository_per_day: 1}}\n" // the attempt already counts
			r.Start()
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			for call := 1; call <= c.stops; call++ {
				r.Working(call)
				r.Stop(syscall.SIGTERM)
				s := r.State(n)
				if u := s.Unfinished; len(s.Attempts) != 0 || u == nil || u.Session != testrig.Session || u.Commit == "" {
					t.Fatalf("attempts %+v, unfinished %+v; want none, and one that continues", s.Attempts, s.Unfinished)
				}
				if c.pushed {
					r.Push(fmt.Sprintf("pawl/issue-%d", n), "Mine", "b.txt", "by a person\n")
				}
				r.Data = c.data
				r.Start()
			}
			r.WantOneAttempt(n, c.stops+1)
			if got := r.Left("found-2"); got != "one\npart 1\n" {
				t.Errorf("the second call found %q in a.txt, want what the first one wrote", got)
			}
			here := c.data == "data"
			resumes := strings.Contains(r.Left("args-2"), "resume "+testrig.Session)
			mentioned := strings.Contains(r.Left("prompt-2"), "An earlier try was cut off")
			if resumes != here || !here && !mentioned {
				t.Errorf("the second call was %q, want the session continued: %t, and a note about the earlier try elsewhere: %t",
					r.Left("args-2"), here, mentioned)
			}
			if c.pushed {
				r.wantOnBranch(n, "b.txt", "by a person\n")
			}
		})
	}
}

// A CLI refuses a session with its own message, or without one. The agent then runs once more without the session.
func TestRefusedSessionIsRetriedOnceWithoutIt(t *testing.T) {
	t.Parallel()
	const codex = `echo '{"type":"thread.started","thread_id":"` + testrig.Session + `"}'; echo '{"type":"turn.started"}'
%s
echo '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Done."}}'; echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}'
`
	const claude = `echo '{"type":"system","subtype":"init","session_id":"` + testrig.Session + `","tools":[]}'
%s
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"Done."}]},"session_id":"` + testrig.Session + `"}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"Done.","session_id":"` + testrig.Session + `","usage":{"input_tokens":10,"output_tokens":5}}'
`
	const gemini = `echo '{"type":"init","session_id":"` + testrig.Session + `"}'
%s
echo '{"type":"message","role":"assistant","content":"Done."}'; echo '{"type":"result","status":"success","stats":{"total_tokens":15,"input_tokens":10,"output_tokens":5}}'
`
	for name, c := range map[string]struct {
		kind, stream, refuses string
		calls                 int // the agent's calls in the second attempt
	}{
		"codex, in words":             {"codex", codex, `echo 'Error: thread/resume failed: no rollout found' >&2; exit 1`, 2},
		"codex, silent":               {"codex", codex, `exit 0`, 2},
		"codex, always":               {"codex", codex, `touch "$CTRL/always"; exit 3`, 2},
		"claude, in words":            {"claude", claude, `echo 'No conversation found with session ID' >&2; exit 1`, 2},
		"claude, in unknown words":    {"claude", claude, `echo 'Sitzung unbekannt'; exit 7`, 2},
		"gemini, in words":            {"gemini", gemini, `echo 'Error resuming session: No previous sessions found for this project.' >&2; exit 42`, 2},
		"codex at its limit":          {"codex", codex, `echo '{"type":"turn.failed","error":{"message":"You have hit your usage limit. Try again later."}}'; exit 1`, 1},
		"codex without login":         {"codex", codex, `echo '{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}}'; exit 1`, 1},
		"codex, work without output":  {"codex", codex, `echo work >> a.txt; exit 1`, 1},
		"claude without network":      {"claude", claude, `echo '{"type":"result","subtype":"success","is_error":true,"num_turns":1,"result":"API Error: Connection error.","session_id":"` + testrig.Session + `"}'; exit 1`, 1},
		"gemini, output and an error": {"gemini", gemini, `echo '{"type":"message","role":"assistant","content":"I begin."}'; exit 1`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verify := `verify: ["test $(wc -l < a.txt) -gt 2"]` + "\n" // fails after the first attempt
			r := newRig(t, map[string]string{"a.txt": "one\n", config.RepoFile: verify})
			work := "[ -e \"$CTRL/always\" ] && exit 3\necho \"line $n\" >> a.txt"
			r.Agent(`[ "$1" = --version ] && { echo 99.0.0; exit 0; }
n=$(ls "$CTRL" | grep -c '^args-'); n=$((n+1))
cat > "$CTRL/prompt-$n"; echo "$@" > "$CTRL/args-$n"
case "$*" in *`+testrig.Session+`*) `+c.refuses+`;; esac
`+fmt.Sprintf(c.stream, work), "model: some")
			r.Config = strings.Replace(r.Config, "kind: command", "kind: "+c.kind, 1)
			r.Config += "policy: {caps: {per_repository_per_day: 2}}\n"
			r.Start()
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			r.Await("the second attempt", func() bool { a := r.State(n).Attempts; return len(a) > 1 && !a[1].EndedAt.IsZero() })
			second := r.State(n).Attempts[1]
			if second.Session != testrig.Session || !strings.Contains(r.Left("args-2"), testrig.Session) {
				t.Fatalf("the second attempt continues %q by %q", second.Session, r.Left("args-2"))
			}
			again := slices.ContainsFunc(second.Receipt.Reasons, func(why string) bool { return strings.Contains(why, "ran once more without the session") })
			if want := c.calls == 2; again != want || r.Has("args-3") != want {
				t.Fatalf("ran once more: %t (%q, %s), want %t", again, second.Receipt.Reasons, second.Receipt.Ending, want)
			}
			if c.calls == 1 {
				return
			}
			if strings.Contains(r.Left("args-3"), testrig.Session) || r.Left("prompt-3") != r.Left("prompt-2") {
				t.Errorf("the last call was %q with the prompt %q", r.Left("args-3"), r.Left("prompt-3"))
			}
			if always := name == "codex, always"; second.Receipt.Pushed == always {
				t.Errorf("pushed %t (%s %q)", second.Receipt.Pushed, second.Receipt.Ending, second.Receipt.Reasons)
			}
			if ranAgain := r.Has("args-4"); ranAgain && len(r.State(n).Attempts) == 2 {
				t.Error("the second attempt ran a third time")
			}
		})
	}
}

func TestRefusedSessionOfAHandedOverAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.CutOff(1)
	path := filepath.Join(r.Dir, "agent.sh")
	script, err := os.ReadFile(path)
	r.Must(err)
	refusing := strings.Replace(string(script), "cat > \"$CTRL/prompt-$n\"", "case \"$*\" in *resume*) touch \"$CTRL/refused\"; exit 1;; esac\ncat > \"$CTRL/prompt-$n\"", 1)
	r.Must(os.WriteFile(path, []byte(refusing), 0o700))
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Working(1)
	r.Stop(syscall.SIGTERM)
	r.Start()
	s := r.Ending(n)
	if a := r.State(n).Attempts; s.State != "done" || len(a) != 1 || !r.Has("refused") {
		t.Errorf("%s (%s %q) after %d attempts, refused: %t; want done by one", s.State, s.Rule, s.Reasons, len(a), r.Has("refused"))
	}
	if got := r.Left("found-3"); got != "one\npart 1\n" {
		t.Errorf("the last call found %q in a.txt, want what the first one wrote", got)
	}
}

func TestUncommittableWorkIsNotHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Touch("hang")
	n := r.AtWorkUntil(1)
	r.Stop(syscall.SIGTERM)
	s := r.State(n)
	if len(s.Attempts) != 0 || s.Unfinished == nil || s.Unfinished.Commit != "" || s.Acts[thread.ActUnfinished].SHA != "" {
		t.Errorf("attempts %+v, unfinished %+v, acts %+v; want nothing pushed", s.Attempts, s.Unfinished, s.Acts)
	}
	r.Start()
	if s := r.Ending(n); s.State != "done" || r.Left("found-2") != "one\n" {
		t.Errorf("%s (%s %q) after a call that found %q, want done from the branch's files", s.State, s.Rule, s.Reasons, r.Left("found-2"))
	}
}

func TestDrainingServerFinishesAttemptsOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Drain = "10m"
	n := r.AtWork()
	stopped := make(chan int)
	queue := r.Node.Store()
	go func() { stopped <- r.Stop(syscall.SIGTERM) }()
	r.Await("the drain", func() bool { return strings.Contains(r.Log.String(), `"message":"stopping"`) })
	other := r.Solve("Another line", "Please add another line to a.txt.")
	r.Await("the other thread to be queued", func() bool {
		stats, err := queue.Stats(t.Context())
		r.Must(err)
		return stats.Queued == 1
	})
	r.Touch("go")
	if code := <-stopped; code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if a := r.State(n).Attempts; len(a) != 1 || a[0].Receipt.Outcome != policy.WorkUnverified || r.PullOf(n) == 0 || r.Calls() != 1 {
		t.Errorf("%d calls, attempts %+v and pull request %d; want the attempt finished, and no other one", r.Calls(), a, r.PullOf(n))
	}
	r.Start()
	if s := r.Ending(other); s.State != "done" {
		t.Errorf("%s (%s %q) at the other thread, want done", s.State, s.Rule, s.Reasons)
	}
}

// A server stopped during a git push does not know whether GitHub accepts it.
func TestStopDuringPushLosesNoWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                string
		taken, moved, again bool
		data                string // data directory of the next server
		calls               int
	}{
		{name: "GitHub accepts it", taken: true, data: "data", calls: 1},
		{name: "GitHub accepts it, and a user pushes on top", taken: true, moved: true, data: "data", calls: 1},
		{name: "GitHub rejects it, and a user pushes", moved: true, data: "data", calls: 1},
		{name: "GitHub rejects it, and the next server is stopped", again: true, data: "data", calls: 1},
		{name: "GitHub rejects it but keeps it for another machine", data: "other", calls: 1},
		{name: "GitHub is away, and another machine asks the agent", data: "other", calls: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.CutOff(0)
			r.Start()
			held, release := r.HoldPush(c.taken)
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			stop := func() {
				<-held
				if c.calls > 1 {
					r.World.Inject(fakegithub.Fault{Route: "POST /{owner}/{repo}.git/git-receive-pack", Status: http.StatusServiceUnavailable, Times: -1})
				}
				r.Stop(syscall.SIGTERM)
				release()
				r.World.ClearFaults()
			}
			stop()
			var person string
			if c.moved {
				person = r.Push(fmt.Sprintf("pawl/issue-%d", n), "Mine", "b.txt", "by a person\n")
			}
			if c.again {
				held, release = r.HoldPush(false)
				r.Start()
				stop()
			}
			r.Data = c.data
			r.Start()
			r.Ending(n)
			r.wantOnBranch(n, "a.txt", "one\ntwo\n")
			r.Once(n)
			a := r.State(n).Attempts
			if last := a[len(a)-1].Receipt; len(a) != c.calls || r.Calls() != c.calls || !last.Pushed || last.Tokens.Output != 5 {
				t.Errorf("%d calls, attempts %+v; want %d, and one call in the last receipt", r.Calls(), a, c.calls)
			}
			if c.moved {
				r.wantOnBranch(n, "b.txt", "by a person\n")
			}
			if head := r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA; c.taken && c.moved && head != person {
				t.Errorf("the branch is at %s, want the user's commit %s without a merge", head, person)
			}
			r.WantNoUnfinished(n)
		})
	}
}

func TestStopKeepsALimitedAttempt(t *testing.T) {
	t.Parallel()
	limited := "echo two >> a.txt\n" + fmt.Sprintf(testrig.Limited, testrig.ResetText(time.Now().Add(5*time.Hour)))
	for name, agent := range map[string]string{
		"while its agent ends": strings.Replace(limited, "exit 1", testrig.Gated+"echo over; exec sleep 600", 1),
		"during its push":      limited,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Agent(agent, "stream: codex")
			r.Start()
			held, release := (<-chan struct{})(nil), func() {}
			if agent == limited {
				held, release = r.HoldPush(true)
			}
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			if held != nil {
				<-held
			} else {
				// Once a line is in the transcript, Pawl has parsed all earlier lines.
				r.AwaitRead("turn.failed")
				r.Touch("go")
				r.AwaitRead("over\n")
			}
			r.Stop(syscall.SIGTERM)
			release()
			r.Start()
			s := r.Ending(n)
			a := r.State(n).Attempts
			if s.State != "stopped" || s.Rule != "usage_limit" || r.Calls() != 1 || len(a) != 1 {
				t.Fatalf("%s (%s %q) after %d calls, attempts %+v; want stopped at the usage limit after one", s.State, s.Rule, s.Reasons, r.Calls(), a)
			}
			if got := a[0].Receipt; got.Outcome != policy.Outcome(policy.UsageLimit) || got.Limit == nil || !got.Pushed {
				t.Errorf("the receipt is %+v, want the usage limit and pushed work", got)
			}
			if b := r.Status().Breakers; len(b) != 1 || b[0].Claim.Consecutive != 1 {
				t.Errorf("breakers %+v, want one with one limit", b)
			}
			r.Once(n)
			r.wantOnBranch(n, "a.txt", "one\ntwo\n")
			r.WantNoUnfinished(n)
		})
	}
}
