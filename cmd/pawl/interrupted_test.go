package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAnAttemptThatIsKilledAgainAndAgainWaitsAndIsNotStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("cat > /dev/null\ntouch \"$CTRL/ready-$(wc -l < \"$CTRL/calls\" | tr -d ' ')\"\n[ -f \"$CTRL/go\" ] || sleep 600\necho two >> a.txt\n", "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	for call := 1; call <= 3; call++ {
		r.await("the agent at work", func() bool { return r.has(fmt.Sprint("ready-", call)) })
		r.stop(syscall.SIGKILL)
		r.start()
	}
	r.await("the wait", func() bool { s := r.thread(threadName(n)); return s.State == "waiting" && s.Rule == "interrupted" })
	s, a := r.thread(threadName(n)), r.state(n).Attempts
	if len(a) != 3 || s.Until == nil || !s.Until.Equal(a[2].EndedAt.Add(time.Minute)) || !strings.Contains(fmt.Sprint(s.Reasons), "3 attempts in a row were interrupted") {
		t.Errorf("%d attempts, then a wait until %v (%q); want three and a minute", len(a), s.Until, s.Reasons)
	}
	r.touch("go")
	_, err := r.world.Comment(rigRepo, n, writer, "/pawl retry")
	r.must(err)
	r.wantSolved(n)
}
