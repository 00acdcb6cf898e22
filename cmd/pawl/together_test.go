package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestManyThreadsTogetherDoNotPassTheBreaker(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("sleep 0.3\n"+fmt.Sprintf(limited, resetText(time.Now().Add(3*time.Hour))), "stream: codex")
	r.config += "workers: 2\n"
	r.start()
	var threads []int
	for i := range 8 {
		threads = append(threads, r.solve(fmt.Sprintf("Issue %d", i), "Please add a line to a.txt."))
	}
	for _, n := range threads {
		r.over(threadName(n))
	}
	if got := r.calls(); got != 3 {
		t.Errorf("%d calls for 8 threads on one account, want 3", got)
	}
}

func TestAStopDoesNotWaitForGitHub(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("sleep 300\n", "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.await("the agent", func() bool { return r.calls() == 1 })
	r.world.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/issues/comments/{id}/reactions", Times: -1, Latency: 5 * time.Minute})
	asked := time.Now()
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl stop")
	r.must(err)
	// The receipt is written when the process is gone.
	r.await("the end of the attempt", func() bool { a := r.state(n).Attempts; return len(a) == 1 && !a[0].EndedAt.IsZero() })
	if took := r.state(n).Attempts[0].EndedAt.Sub(asked); took > 2*time.Minute {
		t.Errorf("the agent ended %s after the stop: it waited for GitHub", took)
	}
}

func TestWhatABackendWasGivenIsNotShown(t *testing.T) {
	t.Setenv("RIG_KEY", "key-0123456789-of-the-rig")
	r := newRig(t, nil)
	r.agent("echo two >> a.txt\necho \"the key is $RIG_KEY\"\n", "env: [RIG_KEY]")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	if s := r.over(threadName(n)); s.State != "done" {
		t.Fatalf("the thread is %s (%s), want done", s.State, s.Rule)
	}
	sha := r.world.Pulls(rigRepo)[0].Pull.HeadSHA
	r.await("the check run", func() bool { return r.check(sha, "pawl").Conclusion == "success" })
	_, page := r.get(fmt.Sprintf("/threads/%s/%d", rigRepo, n))
	shown := r.check(sha, "pawl").Summary + page
	for _, c := range r.world.Comments(rigRepo, n) {
		shown += c.Body
	}
	if strings.Contains(shown, "key-0123456789") || !strings.Contains(shown, "[hidden: RIG_KEY]") {
		t.Errorf("what people see holds the key, or not what stands for it:\n%s", shown)
	}
}
