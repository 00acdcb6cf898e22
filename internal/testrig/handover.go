package testrig

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/solver/thread"
)

// Session is the session ID of a CutOff agent.
const Session = "0199aaaa-0000-7000-8000-000000000001"

// CutOff makes an agent with a session the only backend. Its first calls, up to times, each add a line and then run
// until killed. Later calls add a last line and exit. Call n saves its prompt as prompt-n, its arguments as args-n, and
// the a.txt that it found as found-n.
func (r *Rig) CutOff(times int) {
	r.T.Helper()
	r.Agent(fmt.Sprintf(`n=$(wc -l < "$CTRL/calls" | tr -d ' ')
cat > "$CTRL/prompt-$n"; echo "$@" > "$CTRL/args-$n"; cp a.txt "$CTRL/found-$n"
echo '{"type":"thread.started","thread_id":"%s"}'
echo '{"type":"turn.started"}'
if [ -e "$CTRL/hang" ]; then rm "$CTRL/hang"; mkfifo .gitattributes; fi
if [ "$n" -le %d ]; then echo "part $n" >> a.txt; touch "$CTRL/ready-$n"; exec sleep 600; fi
echo two >> a.txt
echo '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"The line is there."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}'
`, Session, times), "")
	r.Config = strings.Replace(r.Config, "kind: command", "kind: codex", 1)
	path := filepath.Join(r.Dir, "agent.sh")
	script, err := os.ReadFile(path)
	r.Must(err)
	r.Must(os.WriteFile(path, []byte(strings.Replace(string(script), "\n", "\n[ \"$1\" = --version ] && exit 0\n", 1)), 0o700))
}

// AtWorkUntil starts the server with a CutOff agent, and returns the issue once the agent is in its first call.
func (r *Rig) AtWorkUntil(times int) (issue int) {
	r.T.Helper()
	r.CutOff(times)
	r.Start()
	issue = r.Solve("A second line", "Please add a second line to a.txt.")
	r.Working(1)
	return issue
}

// Working waits until the agent has begun its n-th call and changed a file.
func (r *Rig) Working(n int) {
	r.T.Helper()
	r.Await(fmt.Sprintf("call %d of the agent", n), func() bool { return r.Has(fmt.Sprintf("ready-%d", n)) })
}

// WantOneAttempt checks that one attempt solved the issue in the given number of calls, and that no unfinished work is
// left.
func (r *Rig) WantOneAttempt(n, calls int) {
	r.T.Helper()
	s := r.Ending(n)
	a := r.State(n).Attempts
	if s.State != "done" || r.Calls() != calls || len(a) != 1 || !a[0].Receipt.Outcome.Work() {
		r.T.Fatalf("%s (%s %q) after %d calls, attempts %+v; want done after %d calls and one attempt", s.State, s.Rule, s.Reasons, r.Calls(), a, calls)
	}
	r.Once(n)
	want := "one\n"
	for i := 1; i < calls; i++ {
		want += fmt.Sprintf("part %d\n", i)
	}
	if text, err := r.World.File(r.T.Context(), Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt"); err != nil || text != want+"two\n" {
		r.T.Errorf("a.txt on the branch is %q, %v; want the lines of all calls", text, err)
	}
	r.WantNoUnfinished(n)
}

// WantNoUnfinished checks that neither GitHub nor the server keeps unfinished work.
func (r *Rig) WantNoUnfinished(n int) {
	r.T.Helper()
	if act := r.State(n).Acts[thread.ActUnfinished]; act.SHA != "" || !act.Done {
		r.T.Errorf("the reference of unfinished work is %+v, want it removed", act)
	}
	for _, name := range []string{"work", "base"} {
		if left, err := filepath.Glob(filepath.Join(r.Dir, "*", "attempts", "*", "*", "*", name)); err != nil || len(left) > 0 {
			r.T.Errorf("folders are left: %v, %v", left, err)
		}
	}
}

// AwaitRead waits until the server has read the text from the output of any thread's first attempt.
func (r *Rig) AwaitRead(text string) {
	r.T.Helper()
	r.Await(text+" in the transcript", func() bool {
		files, _ := filepath.Glob(filepath.Join(r.Dir, "data", "attempts", "*", "*", "*", "1", "transcript"))
		return slices.ContainsFunc(files, func(file string) bool {
			read, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(read), text)
		})
	})
}

// HoldPush makes GitHub hold the next push until release is called. GitHub then accepts the push if taken is true, and
// drops it otherwise. held is closed when the push has arrived.
func (r *Rig) HoldPush(taken bool) (held <-chan struct{}, release func()) {
	begun, gone, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r.World.Inject(fakegithub.Fault{Route: "POST /{owner}/{repo}.git/git-receive-pack", Answer: func(w http.ResponseWriter, q *http.Request, github http.Handler) {
		defer close(done)
		pack, err := io.ReadAll(q.Body)
		close(begun)
		<-gone
		if q.Body = io.NopCloser(bytes.NewReader(pack)); taken && err == nil {
			github.ServeHTTP(w, q)
		}
	}})
	return begun, func() { close(gone); <-done }
}

// Waiting is an agent that waits for the file go, like Gated, and then adds a line.
const Waiting = "cat > /dev/null\n" + Gated + "echo two >> a.txt\n"

// AtWork starts the server with a Waiting agent, solves an issue, and returns once the agent waits.
func (r *Rig) AtWork() (n int) {
	r.T.Helper()
	r.Agent(Waiting, "")
	r.Start()
	n = r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the agent at work", func() bool { return r.Has("ready") })
	return n
}

// WantSolved checks that a Waiting agent solved the issue, and that GitHub has each item once (see Once).
func (r *Rig) WantSolved(n int) {
	r.T.Helper()
	if s := r.Ending(n); s.State != "done" {
		r.T.Errorf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	r.Once(n)
	text, err := r.World.File(r.T.Context(), Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt")
	if err != nil || text != "one\ntwo\n" {
		r.T.Errorf("a.txt on the branch is %q, %v", text, err)
	}
	sha := r.World.Pulls(Repo)[0].Pull.HeadSHA
	for name, want := range map[string]string{"pawl": "neutral", "pawl/severity": "success", "pawl/stagnation": "success"} {
		if c := r.Check(sha, name); c.Conclusion != want {
			r.T.Errorf("check run %s: %q, want %s", name, c.Conclusion, want)
		}
	}
}

// Once checks that GitHub has one pull request, one comment by Pawl on the thread, and one check run of each name on
// each commit.
func (r *Rig) Once(n int) {
	r.T.Helper()
	if p := r.World.Pulls(Repo); len(p) != 1 {
		r.T.Errorf("%d pull requests, want 1: %+v", len(p), p)
	}
	comments := 0
	for _, c := range r.World.Comments(Repo, n) {
		if c.ViaApp {
			comments++
		}
	}
	if comments != 1 {
		r.T.Errorf("%d comments by Pawl, want 1: %+v", comments, r.World.Comments(Repo, n))
	}
	seen := map[string]int{}
	for _, c := range r.World.CheckRuns(Repo) {
		seen[c.SHA[:7]+" "+c.Name]++
	}
	for name, count := range seen {
		if count != 1 {
			r.T.Errorf("check run %s exists %d times", name, count)
		}
	}
	if len(seen) == 0 {
		r.T.Error("there is no check run")
	}
}
