package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestManyThreadsTogetherDoNotPassTheBreaker(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("sleep 0.3\n"+fmt.Sprintf(testrig.Limited, testrig.ResetText(time.Now().Add(3*time.Hour))), "stream: codex")
	r.Config += "workers: 2\n"
	r.Start()
	var threads []int
	for i := range 8 {
		threads = append(threads, r.Solve(fmt.Sprintf("Issue %d", i), "Please add a line to a.txt."))
	}
	for _, n := range threads {
		r.Over(testrig.ThreadName(n))
	}
	if got := r.Calls(); got != 3 {
		t.Errorf("%d calls for 8 threads on one account, want 3", got)
	}
}

func TestAStopDoesNotWaitForGitHub(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("sleep 300\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	r.Await("the agent", func() bool { return r.Calls() == 1 })
	r.World.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/issues/comments/{id}/reactions", Times: -1, Latency: 5 * time.Minute})
	asked := time.Now()
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl stop")
	r.Must(err)
	// The receipt is written when the process is gone.
	r.Await("the end of the attempt", func() bool { a := r.State(n).Attempts; return len(a) == 1 && !a[0].EndedAt.IsZero() })
	if took := r.State(n).Attempts[0].EndedAt.Sub(asked); took > 2*time.Minute {
		t.Errorf("the agent ended %s after the stop: it waited for GitHub", took)
	}
}

func TestWhatABackendWasGivenIsNotShown(t *testing.T) {
	t.Setenv("RIG_KEY", "key-0123456789-of-the-rig")
	r := newRig(t, nil)
	r.Agent("echo two >> a.txt\necho \"the key is $RIG_KEY\"\n", "env: [RIG_KEY]")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Over(testrig.ThreadName(n)); s.State != "done" {
		t.Fatalf("the thread is %s (%s), want done", s.State, s.Rule)
	}
	sha := r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA
	r.Await("the check run", func() bool { return r.Check(sha, "pawl").Conclusion == "success" })
	_, page := r.Get(fmt.Sprintf("/threads/%s/%d", testrig.Repo, n))
	shown := r.Check(sha, "pawl").Summary + page
	for _, c := range r.World.Comments(testrig.Repo, n) {
		shown += c.Body
	}
	if strings.Contains(shown, "key-0123456789") || !strings.Contains(shown, "[hidden: RIG_KEY]") {
		t.Errorf("what people see holds the key, or not what stands for it:\n%s", shown)
	}
}
