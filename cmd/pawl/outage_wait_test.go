package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// A worker that slept for most of a minute would be missed by other threads.
func TestAWaitOf45SecondsForGitHubIsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	m := r.startTimed()
	r.world.Inject(fakegithub.Fault{Route: "POST /repos/{owner}/{repo}/pulls", Status: http.StatusTooManyRequests,
		Header: http.Header{"Retry-After": {"45"}}})
	n := r.solve("A second line", "Please add a second line to a.txt.")
	r.wantStoredWait(m)
	m.clock.reach(m.clock.now().Add(45 * time.Second))
	m.sweep()
	r.await("the end", func() bool { return m.view(n).State == "done" && len(r.world.Pulls(rigRepo)) == 1 })
	m.idle(n)
	r.once(n)
}
